import { execFile } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { deliveryOf } from "../forge/deliveries/deliveries.ts";
import type { Told } from "../forge/deliveries/told.ts";
import type { Place } from "../forge/state.ts";
import type { ChaosFleet } from "./fleet.ts";
import { deliver, type Accepted, type Senders } from "./requests.ts";
import { firstRun, mended } from "./script.ts";

const run = promisify(execFile);

/** One thing that a person or CI did on a session's pull request: it must become one turn, with one answer if it is answered. */
export interface LoopEvent {
  readonly sessionId: string;
  readonly repository: string;
  /** Of the pull request. */
  readonly pullRequest: number;
  /**
   * What its turn's message contains, and no other's: earlier comments in a prompt are JSON, in which no line begins
   * so.
   */
  readonly sign: string;
  /** The reaction that it gets, as the forge keeps it; null: none. */
  readonly reaction: string | null;
  /** Whether it is answered by words; if not, what is pushed speaks for itself. */
  readonly answered: boolean;
  /** The thread in which it is; null: it is answered by a comment on the pull request. */
  readonly thread: string | null;
  /** What its turn writes; what is answered names it. */
  readonly file: string;
  readonly content: string;
}

/** What was delivered, and what came of it at once. */
export interface Loop {
  readonly events: LoopEvent[];
  /** Deliveries that were answered with `duplicate`. */
  duplicates: number;
  /** Deliveries that were answered otherwise than they must be, a sentence each. */
  readonly broken: string[];
  /** Settles once the first delivery was sent. */
  readonly begun: Promise<void>;
  /** Settles when all was delivered, and delivered again. */
  readonly done: Promise<void>;
}

/** On the pull request of one of so many pieces of work something happens. */
const every = 4;
const pollMs = 100;

interface Happened {
  readonly event: LoopEvent;
  readonly told: Told;
}

/** Something that happens on the pull request of one piece of work. */
interface Scene {
  readonly fleet: ChaosFleet;
  readonly place: Place;
  readonly work: Accepted;
  readonly sessionId: string;
  readonly pullRequest: number;
  readonly headSha: string;
  readonly branch: string;
}

const by = "ann";
const lines = { path: "README.md", line: 1, hunk: "@@ -1 +1 @@\n # chaos" };

/** In turn: two comments, a review with two comments on lines, a red check, a comment in a thread. */
const stories: readonly ((scene: Scene) => Happened[])[] = [
  (scene) => [commented(scene, 1), commented(scene, 2)],
  (scene) => {
    const id = 5_000 + scene.work.number;
    return [onLines(scene, 1, id), reviewed(scene, 2, id), onLines(scene, 3, id)];
  },
  (scene) => [turnedRed(scene)],
  (scene) => [onLines(scene, 1, null)],
];

/**
 * Has people and CI answer on pull requests of sessions as they complete, and delivers it to the fleet while things go wrong: each at
 * once to every node, again a little later, and again as another delivery when its turn has long ended; of one pull request all at
 * once, then in the opposite order.
 * @param accepted grows while it runs
 * @param expected how many pieces of work there will be
 */
export function runLoop(
  fleet: ChaosFleet,
  { connection }: Senders,
  accepted: readonly Accepted[],
  expected: number,
  signal: AbortSignal,
): Loop {
  const begun = Promise.withResolvers<void>();
  const loop = { events: [] as LoopEvent[], duplicates: 0, broken: [] as string[], begun: begun.promise };
  const send = async (told: Told): Promise<void> => {
    const made = deliveryOf({ kind: "github", secret: connection.secret }, told);
    if (made === null) throw new Error(`GitHub delivers no ${told.type}`);
    const { headers, body } = made;
    const { duplicates } = await deliver(fleet, { path: `/hook/forge/${connection.id}`, headers, body });
    loop.duplicates += duplicates;
  };
  const play = async (number: number): Promise<void> => {
    const scene = await untilOpened(fleet, accepted, number, signal);
    if (scene === null) return;
    const happened = stories[Math.floor(number / every) % stories.length]?.(scene) ?? [];
    loop.events.push(...happened.map(({ event }) => event));
    begun.resolve();
    await Promise.all(happened.map(({ told }) => send(told)));
    await untilTaken(fleet, happened, signal);
    for (const { told } of happened.toReversed()) if (!signal.aborted) await send(told);
  };
  const numbers = Array.from({ length: Math.ceil((expected - 1) / every) }, (_, index) => 1 + index * every);
  const done = Promise.all(
    numbers.map((number) => play(number).catch((error: unknown) => loop.broken.push(String(error)))),
  ).then(() => begun.resolve());
  return Object.assign(loop, { done });
}

/** The scene once the work's session has completed and its pull request is recorded; null: nothing more is to be done. */
async function untilOpened(
  fleet: ChaosFleet,
  accepted: readonly Accepted[],
  number: number,
  signal: AbortSignal,
): Promise<Scene | null> {
  for (; !signal.aborted; await pause(pollMs)) {
    const work = accepted.find((each) => each.number === number);
    if (work === undefined) continue;
    const { rows } = await fleet.store
      .query<Pick<Scene, "sessionId" | "pullRequest" | "branch">>(
        `select session.id as "sessionId", opened.number as "pullRequest", opened.head as branch
         from session left join job on job.id = session.job_id join pull_request opened on opened.session_id = session.id
         where $1::uuid in (session.id, session.job_id, job.event_id) and session.status = 'completed'`,
        [work.id],
      )
      .catch(() => ({ rows: [] }));
    const [found] = rows;
    if (found === undefined) continue;
    const bare = fleet.forge.pathOf("acme", work.repository);
    const { stdout } = await run("git", ["-C", bare, "rev-parse", found.branch]);
    return { fleet, place: fleet.forge.place("acme", work.repository), work, headSha: stdout.trim(), ...found };
  }
  return null;
}

/** Waits until the turns of what happened have ended. */
async function untilTaken(fleet: ChaosFleet, happened: readonly Happened[], signal: AbortSignal): Promise<void> {
  for (; !signal.aborted; await pause(pollMs)) {
    const { rows } = await fleet.store
      .query<{ text: string }>(
        "select text from message where session_id = any($1) and position > 1 and status = 'done'",
        [happened.map(({ event }) => event.sessionId)],
      )
      .catch(() => ({ rows: [] }));
    if (happened.every(({ event }) => rows.some(({ text }) => text.includes(event.sign)))) return;
  }
}

/** What all things that happen there have in common: the n-th has its own file. */
function inScene({ sessionId, pullRequest, work }: Scene, index: number) {
  const file = `loop-${work.number}-${index}.txt`;
  const content = `said as ${index} of ${work.number}`;
  const order = `write ${file}: ${content}, then shell sleep 0.5`;
  return {
    order,
    event: { sessionId, repository: work.repository, pullRequest, sign: `\nwrite ${file}`, file, content },
  };
}

function commented(scene: Scene, index: number): Happened {
  const { order, event } = inScene(scene, index);
  const happens = scene.fleet.forge.happenings("github");
  const { comment, told } = happens.say(scene.place, scene.pullRequest, { by, body: `@offstage\n${order}` });
  const reaction = `issues/comments/${comment.id} eyes`;
  return { told, event: { ...event, reaction, answered: true, thread: null } };
}

/** @param reviewId of the review that it is a part of; null: it calls Offstage itself */
function onLines(scene: Scene, index: number, reviewId: number | null): Happened {
  const { order, event } = inScene(scene, index);
  const body = reviewId === null ? `@offstage\n${order}` : order;
  const happens = scene.fleet.forge.happenings("github");
  const { comment, told } = happens.say(scene.place, scene.pullRequest, {
    by,
    body,
    lines,
    ...(reviewId !== null && { reviewId }),
  });
  const reaction = `pulls/comments/${comment.id} eyes`;
  return { told, event: { ...event, reaction, answered: true, thread: comment.thread } };
}

/** A review that asks for changes. */
function reviewed(scene: Scene, index: number, id: number): Happened {
  const { order, event } = inScene(scene, index);
  const told = scene.fleet.forge.happenings("github").review(scene.place, scene.pullRequest, { by, body: order, id });
  const reaction = `pulls/${scene.pullRequest}/reviews/${id} eyes`;
  return { told, event: { ...event, reaction, answered: true, thread: null } };
}

/** What mends it is the answer. */
function turnedRed(scene: Scene): Happened {
  const { place, headSha: sha, branch, work } = scene;
  const { event } = inScene(scene, 0);
  const id = firstRun + work.number;
  const told = scene.fleet.forge.happenings("github").failed(place, { id, sha, branch }, "it does not work\n");
  const mending = { sign: `/runs/${id}"`, file: mended(work.number), content: "green" };
  return { told, event: { ...event, ...mending, reaction: null, answered: false, thread: null } };
}
