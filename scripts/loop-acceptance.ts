import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "../src/client.ts";
import { commentMarkKey } from "../src/domain/repositories/comment-mark.ts";
import type { SessionDetail } from "../src/domain/sessions/session.ts";
import { begin, closePullRequest, expecting, same, unless, type Expectation, type Subject } from "./forge-trial.ts";
import { createLoopForge, type ListedComment, type LoopThread, type LoopThreads } from "./loop-forge.ts";

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
}

type Step = readonly [name: string, act: () => Promise<void>];

/** What a whole file is to say: an order that a model understands, and the scripted one of the tests. */
const order = (file: string, content: string): string =>
  `write ${file}: ${content}\n\n(Make the file ${file} say just that, and change nothing else.)`;

/**
 * Tries the feedback loop of a running Offstage on a real forge: a session opens a pull request, a comment calls Offstage, and
 * what comes of it is looked for on the forge: the reaction, the commit, one answer, and the end. The pull request stays, closed.
 * @param report called with each expectation as it is known; after one that is not met, those that need it are not tried
 * @returns whether all are met
 * @throws Error if the trial can't begin
 */
export async function acceptLoop(subject: LoopSubject, report: (met: Expectation) => void): Promise<boolean> {
  const { offstage, repositoryUrl } = subject;
  const loop = createLoopForge(subject);
  const { trial, end } = await begin(subject);
  const { forge, address, signal, target } = trial;
  const client = createClient({ baseUrl: offstage.url, key: offstage.key });
  const { expect, isMet } = expecting(report);
  const file = `offstage-acceptance-${randomBytes(6).toString("hex")}.txt`;
  let session: SessionDetail | null = null;
  let comment = "";
  let headSha = "";
  let number = 0;
  const answers = async () => (await loop.comments(number)).filter(({ body }) => commentMarkKey(body) !== null);
  const readSession = async (): Promise<SessionDetail> => client.session.get(session?.id ?? "");
  const turns = async (): Promise<number> => {
    const { events } = await client.session.events(session?.id ?? "", { limit: 1_000 });
    return events.filter(({ type }) => type === "agent.started").length;
  };

  /** Until the pull request has another commit than the last one that was looked for. */
  const untilPushed = async (): Promise<void> => {
    const read = () => forge.readPullRequest(address, number, signal);
    const { headSha: after } = await until(offstage.turnMs, read, ({ headSha: now }) => now !== headSha);
    headSha = after ?? "";
  };
  const requireAnswer = (found: readonly ListedComment[]): void => {
    same(found.length, 1, "how many answers there are");
    unless(found[0]?.body.includes(headSha.slice(0, 10)) !== true, `it does not name ${headSha.slice(0, 10)}`);
  };
  const reactionLimitMs = Math.max(subject.lagMs, 10_000);
  const hasEyes = (found: readonly string[]): boolean => found.includes("eyes");
  let expectedTurns = 2;
  const inThread = (threads: LoopThreads): readonly Step[] => {
    let thread: LoopThread = { id: "", comment: "" };
    const replies = async () =>
      (await threads.replies(number, thread)).filter(({ body }) => commentMarkKey(body) !== null);
    return [
      [
        "somebody calls Offstage in a thread on a line of the change",
        async () => {
          const place = { path: file, sha: headSha };
          thread = await threads.begin(number, place, `@${offstage.mention}\n${order(file, "of the thread")}`);
          expectedTurns += 1;
          await until(reactionLimitMs, () => threads.reactions(number, thread), hasEyes);
        },
      ],
      [
        "the thread is answered once, in it, with its commit",
        async () => {
          await untilPushed();
          await until(offstage.turnMs, readSession, ({ status }) => isOver(status));
          requireAnswer(await until(subject.lagMs + 30_000, replies, ({ length }) => length > 0));
          // By then the forge has told of the answer.
          await pause(Math.min(subject.lagMs, 10_000));
          same([await turns(), (await replies()).length], [expectedTurns, 1], "turns and answers");
        },
      ],
    ];
  };

  const steps: readonly Step[] = [
    [
      "a session opens a pull request",
      async () => {
        session = await client.session
          .create({ prompt: order(file, "one"), repositories: [repositoryUrl] })
          .then(({ id }) => client.session.get(id));
        session = await until(offstage.turnMs, readSession, ({ status }) => isOver(status));
        same([session.status, session.pullRequests.length], ["completed", 1], "how it ended, and its pull requests");
        number = session.pullRequests[0]?.number ?? 0;
        headSha = (await forge.readPullRequest(address, number, signal)).headSha ?? "";
      },
    ],
    [
      "somebody comments on it, and calls Offstage",
      async () => void (comment = await loop.comment(number, `@${offstage.mention}\n${order(file, "two")}`)),
    ],
    [
      "a reaction shows that it was seen",
      async () => {
        await until(reactionLimitMs, () => loop.reactions(number, comment), hasEyes);
      },
    ],
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
        await until(offstage.turnMs, readSession, ({ status }) => isOver(status));
        requireAnswer(await until(subject.lagMs + 30_000, answers, ({ length }) => length > 0));
      },
    ],
    [
      "its own answer and commit start nothing",
      async () => {
        // By then the forge has told of them.
        await pause(Math.min(subject.lagMs, 10_000));
        same([(await readSession()).status, await turns()], ["completed", 2], "its status and turns");
        same((await answers()).length, 1, "how many answers there are");
      },
    ],
    ...(loop.threads === null ? [] : inThread(loop.threads)),
    [
      "the pull request's end is heard of",
      async () => {
        await closePullRequest(subject, address, number);
        const state = async () => (await readSession()).pullRequests[0]?.state;
        // A forge that does not tell is asked once a minute.
        await until(subject.lagMs + 90_000, state, (now) => now === "closed");
      },
    ],
    [
      "who calls Offstage after that is told so, and nothing is started",
      async () => {
        await loop.comment(number, `@${offstage.mention}\n${order(file, "too late")}`);
        // GitLab lists what is said in threads beside the rest.
        await until(subject.lagMs + 30_000, answers, (found) => found.some(({ body }) => body.includes("closed")));
        same(await turns(), expectedTurns, "its turns");
      },
    ],
  ];
  try {
    for (const [name, act] of steps) {
      await expect(name, act);
      if (!isMet()) break;
    }
  } finally {
    const branch = (session as SessionDetail | null)?.branchName;
    if (number !== 0 && !isMet()) await closePullRequest(subject, address, number).catch(() => undefined);
    await expect("the branch is deleted", async () => {
      if (branch !== undefined && branch !== target) await trial.remove([branch]);
    });
    await end();
  }
  return isMet();
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
