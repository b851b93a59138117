import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "../src/client.ts";
import { commentMarkKey } from "../src/domain/repositories/comment-mark.ts";
import type { SessionDetail } from "../src/domain/sessions/session.ts";
import { mustGit } from "../src/worker/git/git.ts";
import {
  begin,
  closePullRequest,
  expecting,
  same,
  unless,
  type Expectation,
  type Subject,
  type Trial,
} from "./forge-trial.ts";
import type { ListedComment, LoopForge, LoopThread, LoopThreads } from "./loop-forges/loop-forge.ts";
import { createLoopForge } from "./loop-forges/loop-forges.ts";

/** A running Offstage that the forge delivers to. */
export interface LoopSubject extends Subject {
  readonly offstage: {
    readonly url: string;
    readonly key: string;
    /** The word that calls it, without `@`. */
    readonly mention: string;
    /** How long one turn may take, in ms. */
    readonly turnMs: number;
  };
  /**
   * A second person, who may write too: most forges allow no author to ask for changes of their own pull request. Null:
   * no review is tried.
   */
  readonly reviewer: Subject["settings"] | null;
}

type Step = readonly [name: string, act: () => Promise<void>];

/** What a file is to say: an order that a model understands, and the scripted one of the tests. */
const order = (file: string, content: string): string =>
  `write ${file}: ${content}\n\n(Make the file ${file} say just that, and change nothing else.)`;

/** How long a forge may be asked for what Offstage does not hear of: each minute one question, and another minute between two of one pull request. */
const askedWithinMs = 180_000;

/**
 * Tries the feedback loop of a running Offstage on a real forge: a session opens a pull request, people and a check answer it, its target
 * moves, and what comes of that is looked for on the forge. The pull request stays, closed; it is for a branch of the trial's own.
 * @param report called with each expectation as it is known; after one that is not met, those that need it are not tried
 * @returns whether all are met
 * @throws Error if the trial can't begin
 */
export async function acceptLoop(subject: LoopSubject, report: (met: Expectation) => void): Promise<boolean> {
  const { trial, end } = await begin(subject);
  const { expect, isMet } = expecting(report);
  const loop = createLoop(subject, trial);
  const { forge } = loop;
  const steps: readonly Step[] = [
    ...opened(loop),
    ...commented(loop),
    ...(forge.threads === null ? [] : inThread(loop, forge.threads)),
    ...(subject.reviewer === null ? [] : reviewed(loop, createLoopForge({ ...subject, settings: subject.reviewer }))),
    ...(forge.failCheck === null ? [] : checked(loop, forge.failCheck)),
    ...collided(loop),
    ...ended(loop),
  ];
  try {
    for (const [name, act] of steps) {
      await expect(name, act);
      if (!isMet()) break;
    }
  } finally {
    const { at, target } = loop;
    if (at.number !== 0 && !isMet()) await closePullRequest(subject, trial.address, at.number).catch(() => undefined);
    await expect("the branches are deleted", () => trial.remove(at.branch === "" ? [target] : [target, at.branch]));
    await end();
  }
  return isMet();
}

/** What the steps share. */
interface Loop {
  readonly subject: LoopSubject;
  readonly trial: Trial;
  readonly forge: LoopForge;
  /** The file that the session writes. */
  readonly file: string;
  /** The trial's own branch, for which the pull request is. */
  readonly target: string;
  /** How far it is: the session, its pull request, and how many turns there are to be by now. */
  readonly at: { session: string; number: number; branch: string; headSha: string; targetSha: string; turns: number };
  /** A message that calls Offstage. */
  called(content: string): string;
  create(prompt: string): Promise<string>;
  readSession(): Promise<SessionDetail>;
  untilOver(): Promise<SessionDetail>;
  /** The session's messages, one for each turn after the first. */
  messages(): Promise<readonly string[]>;
  turns(): Promise<number>;
  /** Until the pull request has another commit than the last one that was looked for. @param moreMs beside the time of one turn */
  untilPushed(moreMs?: number): Promise<void>;
  /** Reads which commit the pull request has now. */
  lookAtHead(): Promise<void>;
  /** What Offstage answered beside the pull request. */
  answers(): Promise<readonly ListedComment[]>;
}

function createLoop(subject: LoopSubject, trial: Trial): Loop {
  const { offstage, repositoryUrl } = subject;
  const client = createClient({ baseUrl: offstage.url, key: offstage.key });
  const forge = createLoopForge(subject);
  const name = randomBytes(6).toString("hex");
  const [file, target] = [`offstage-acceptance-${name}.txt`, `offstage-acceptance-${name}`];
  const at = { session: "", number: 0, branch: "", headSha: "", targetSha: "", turns: 1 };
  const readSession = () => client.session.get(at.session);
  const events = async () => (await client.session.events(at.session, { limit: 1_000 })).events;
  const readHead = async () => (await trial.forge.readPullRequest(trial.address, at.number, trial.signal)).headSha;
  return {
    subject,
    trial,
    forge,
    file,
    target,
    at,
    called: (content) => `@${offstage.mention}\n${order(file, content)}`,
    create: async (prompt) =>
      (await client.session.create({ prompt, repositories: [repositoryUrl], targetBranch: target })).id,
    readSession,
    untilOver: () => until(offstage.turnMs, readSession, ({ status }) => isOver(status)),
    messages: async () => (await events()).flatMap((event) => (event.type === "message.user" ? [event.data.text] : [])),
    turns: async () => (await events()).filter(({ type }) => type === "agent.started").length,
    async untilPushed(moreMs = 0) {
      at.headSha = (await until(offstage.turnMs + moreMs, readHead, (now) => now !== at.headSha)) ?? "";
    },
    lookAtHead: async () => void (at.headSha = (await readHead()) ?? ""),
    answers: async () => (await forge.comments(at.number)).filter(isAnswer),
  };
}

/** Its own words, but for those that say no more than that something was seen. */
const isAnswer = ({ body }: ListedComment): boolean => commentMarkKey(body) !== null && !body.startsWith("Seen.");

function opened({ at, trial, target, file, create, untilOver, lookAtHead }: Loop): readonly Step[] {
  return [
    [
      "a session opens a pull request",
      async () => {
        at.targetSha = await trial.commit(null);
        await trial.push(at.targetSha, target);
        at.session = await create(order(file, "one"));
        const { status, pullRequests, branchName } = await untilOver();
        at.branch = branchName;
        same([status, pullRequests.length], ["completed", 1], "how it ended, and its pull requests");
        at.number = pullRequests[0]?.number ?? 0;
        await lookAtHead();
      },
    ],
  ];
}

function commented(loop: Loop): readonly Step[] {
  const { at, forge, subject, called, readSession, untilOver, untilPushed, turns, answers } = loop;
  let comment = "";
  return [
    [
      "a person comments on it, and calls Offstage",
      async () => {
        at.turns += 1;
        comment = await forge.comment(at.number, called("two"));
      },
    ],
    ["a sign shows that it was seen", () => untilSeen(loop, () => forge.isSeen(at.number, comment))],
    [
      "a commit follows on the same pull request",
      async () => {
        await untilPushed();
        same((await readSession()).pullRequests.length, 1, "how many pull requests the session has");
      },
    ],
    [
      "the comment is answered once, with the commit",
      async () => {
        await untilOver();
        requireAnswer(loop, await until(subject.lagMs + 30_000, answers, ({ length }) => length > 0));
      },
    ],
    [
      "its own answer and commit start nothing",
      async () => {
        // By then the forge has delivered them.
        await pause(Math.min(subject.lagMs, 10_000));
        same([(await readSession()).status, await turns()], ["completed", at.turns], "its status and turns");
        same((await answers()).length, 1, "how many answers there are");
      },
    ],
  ];
}

function inThread(loop: Loop, threads: LoopThreads): readonly Step[] {
  const { at, file, subject, called, untilOver, untilPushed, turns } = loop;
  let thread: LoopThread = { id: "", comment: "" };
  const replies = async () => (await threads.replies(at.number, thread)).filter(isAnswer);
  return [
    [
      "a person calls Offstage in a thread on a line of the change",
      async () => {
        at.turns += 1;
        thread = await threads.begin(at.number, { path: file, sha: at.headSha }, called("of the thread"));
        await untilSeen(loop, () => threads.isSeen(at.number, thread));
      },
    ],
    [
      "the thread is answered once, in it, with its commit",
      async () => {
        await untilPushed();
        await untilOver();
        requireAnswer(loop, await until(subject.lagMs + 30_000, replies, ({ length }) => length > 0));
        // By then the forge has delivered the answer.
        await pause(Math.min(subject.lagMs, 10_000));
        same([await turns(), (await replies()).length], [at.turns, 1], "turns and answers");
      },
    ],
  ];
}

/** @param reviewer the forge as the second person */
function reviewed(loop: Loop, reviewer: LoopForge): readonly Step[] {
  const { at, file, untilOver, untilPushed, turns, messages } = loop;
  return [
    [
      "a review that asks for changes becomes one turn and a commit, without a mention",
      async () => {
        at.turns += 1;
        await reviewer.askForChanges(at.number, order(file, "of the review"));
        await untilPushed();
        await untilOver();
        same(await turns(), at.turns, "its turns");
        unless((await messages()).at(-1)?.includes("of the review") !== true, "its message lacks the review's text");
      },
    ],
  ];
}

function checked(loop: Loop, failCheck: NonNullable<LoopForge["failCheck"]>): readonly Step[] {
  const { at, subject, untilOver, turns, messages, lookAtHead } = loop;
  const name = "offstage-acceptance";
  return [
    [
      "a check that fails on its commit becomes one turn",
      async () => {
        at.turns += 1;
        await lookAtHead();
        const description = "It fails on purpose: nothing is wrong.";
        await failCheck({ sha: at.headSha, branch: at.branch, name, description });
        // It waits for other checks that fail.
        await until(subject.offstage.turnMs + askedWithinMs, turns, (found) => found >= at.turns);
        await untilOver();
        same(await turns(), at.turns, "its turns");
        const last = (await messages()).at(-1) ?? "";
        unless(!last.includes(name), `its message does not name ${name}: ${last.slice(0, 500)}`);
      },
    ],
  ];
}

function collided(loop: Loop): readonly Step[] {
  const { at, file, target, trial, untilOver, untilPushed, turns, lookAtHead } = loop;
  return [
    [
      "a target that collides with it is merged into it",
      async () => {
        at.turns += 1;
        await lookAtHead();
        const { cwd, signal } = trial.remote;
        const theirs = await trial.commit(at.targetSha, { path: file, content: "theirs\n" });
        await trial.push(theirs, target);
        await untilPushed(askedWithinMs);
        await untilOver();
        await lookAtHead();
        same(await turns(), at.turns, "its turns");
        await mustGit(["fetch", "--quiet", trial.address.cloneUrl, `refs/heads/${at.branch}`], trial.remote);
        await mustGit(["merge-base", "--is-ancestor", theirs, at.headSha], { cwd, signal });
      },
    ],
  ];
}

function ended({ at, trial, subject, forge, called, readSession, answers, turns }: Loop): readonly Step[] {
  return [
    [
      "the pull request's end is heard of",
      async () => {
        await closePullRequest(subject, trial.address, at.number);
        const state = async () => (await readSession()).pullRequests[0]?.state;
        // A forge that does not tell is asked once a minute.
        await until(subject.lagMs + 90_000, state, (now) => now === "closed");
      },
    ],
    [
      "a person who calls Offstage after that gets an answer that says so, and nothing is started",
      async () => {
        await forge.comment(at.number, called("too late"));
        // GitLab and others list what is said in threads beside the rest.
        await until(subject.lagMs + 30_000, answers, (found) => found.some(({ body }) => body.includes("closed")));
        same(await turns(), at.turns, "its turns");
      },
    ],
  ];
}

async function untilSeen({ subject }: Loop, isSeen: () => Promise<boolean>): Promise<void> {
  await until(Math.max(subject.lagMs, 10_000), isSeen, (seen) => seen);
}

function requireAnswer({ at }: Loop, found: readonly ListedComment[]): void {
  same(found.length, 1, "how many answers there are");
  const [body, commit] = [found[0]?.body ?? "", at.headSha.slice(0, 10)];
  unless(!body.includes(commit), `it does not name ${commit}, but says: ${body.slice(0, 500)}`);
}

const isOver = (status: string): boolean => ["completed", "failed", "cancelled"].includes(status);

/** Asks until it is so. @throws Error after so many ms, with the last answer */
async function until<Found>(limitMs: number, ask: () => Promise<Found>, isSo: (found: Found) => boolean) {
  const limit = performance.now() + limitMs;
  for (;;) {
    const found = await ask();
    if (isSo(found)) return found;
    if (performance.now() > limit)
      throw new Error(`after ${Math.round(limitMs / 1_000)} s it was still ${JSON.stringify(found)?.slice(0, 500)}`);
    await pause(250);
  }
}
