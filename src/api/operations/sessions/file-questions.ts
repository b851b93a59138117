import type { Database } from "../../../database/database.ts";
import { UnavailableError } from "../../../domain/errors/errors.ts";
import type { FileAnswer, FileQuestion } from "../../../domain/sessions/workspace-file.ts";
import type { SessionRecord } from "../../../store/sessions/session-record.ts";
import { countedFor } from "../../../store/queue/worker-nodes.ts";
import {
  askForFiles,
  fileAnswerChannel,
  forgetFileRequest,
  takeFileAnswer,
} from "../../../store/sessions/file-requests.ts";

/** How long an answer is waited for, in ms. */
const patienceMs = 20_000;
/** How often an answer is looked for whose notification was lost, in ms. */
const lookAgainMs = 1_000;
/** Questions that this node has open at once, and of them those of one organization. */
const openAtMost = { all: 64, ofOrganization: 24 };

/** The session whose files are asked for. */
type AskedSession = Pick<SessionRecord, "id" | "organizationId">;

/** Asks workers for what is in sessions' workspaces: API nodes have no files. */
export interface FileQuestions {
  /** @throws UnavailableError if no worker is there, or none answers */
  ask(session: AskedSession, question: FileQuestion): Promise<FileAnswer>;
  /** Gives up what is open. */
  close(): Promise<void>;
}

/** Makes a node's questions to workers. One LISTEN of the process wakes all that wait. */
export async function createFileQuestions(database: Database): Promise<FileQuestions> {
  const waiting = new Map<string, () => void>();
  /** The organizations of what is open, from before it is written. */
  const open = new Set<{ readonly organizationId: string }>();
  let isClosing = false;
  const subscription = await database.listen(fileAnswerChannel, (id) => {
    if (id === "") wakeAll();
    else waiting.get(id)?.();
  });

  function wakeAll(): void {
    for (const wake of waiting.values()) wake();
  }

  /** Waits until an answer may be there. */
  async function untilWoken(id: string, ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      waiting.set(id, resolve);
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
  }

  async function askWorker(sessionId: string, question: FileQuestion): Promise<FileAnswer> {
    const asked = await askForFiles(database, sessionId, question, countedFor);
    if (asked === "no folders") return { problem: "not kept" };
    if (asked === "no worker") {
      throw new UnavailableError("no worker is running that could look at the session's files");
    }
    const { id } = asked;
    try {
      const until = performance.now() + patienceMs;
      for (let left = patienceMs; left > 0 && !isClosing; left = until - performance.now()) {
        const answer = await takeFileAnswer(database, id);
        if (answer !== null) return answer;
        await untilWoken(id, Math.min(left, lookAgainMs));
      }
    } finally {
      waiting.delete(id);
    }
    await forgetFileRequest(database, id);
    throw new UnavailableError("the worker that has the session's files did not answer in time: try again");
  }

  return {
    async ask({ id, organizationId }, question) {
      const ofOrganization = [...open].filter((one) => one.organizationId === organizationId).length;
      if (open.size >= openAtMost.all || ofOrganization >= openAtMost.ofOrganization) {
        throw new UnavailableError("too many files are being looked at: try again", 1);
      }
      const one = { organizationId };
      open.add(one);
      try {
        return await askWorker(id, question);
      } finally {
        open.delete(one);
      }
    },
    async close() {
      isClosing = true;
      wakeAll();
      await subscription.close();
    },
  };
}
