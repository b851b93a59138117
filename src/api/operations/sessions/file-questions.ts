import type { Database } from "../../../database/database.ts";
import { UnavailableError } from "../../../domain/errors/errors.ts";
import type { FileAnswer, FileQuestion } from "../../../domain/sessions/workspace-file.ts";
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
/** Questions that this node has open at once. */
const openAtMost = 64;

/** Asks workers for what is in sessions' workspaces: API nodes have no files. */
export interface FileQuestions {
  /** @throws UnavailableError if no worker is there, or none answers */
  ask(sessionId: string, question: FileQuestion): Promise<FileAnswer>;
  /** Gives up what is open. */
  close(): Promise<void>;
}

/** Makes a node's questions to workers. One LISTEN of the process wakes all that wait. */
export async function createFileQuestions(database: Database): Promise<FileQuestions> {
  const waiting = new Map<string, () => void>();
  const closing = new AbortController();
  const subscription = await database.listen(fileAnswerChannel, (id) => {
    if (id === "") for (const wake of waiting.values()) wake();
    else waiting.get(id)?.();
  });

  /** Waits until an answer may be there. */
  async function untilWoken(id: string, ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      waiting.set(id, resolve);
      timer = setTimeout(resolve, ms);
      closing.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    clearTimeout(timer);
  }

  return {
    async ask(sessionId, question) {
      if (waiting.size >= openAtMost) throw new UnavailableError("too many files are being looked at: try again", 1);
      const asked = await askForFiles(database, sessionId, question, countedFor);
      if (asked === "no folders") return { problem: "not kept" };
      if (asked === "no worker") {
        throw new UnavailableError("no worker is running that could look at the session's files");
      }
      const { id } = asked;
      try {
        const until = performance.now() + patienceMs;
        for (let left = patienceMs; left > 0 && !closing.signal.aborted; left = until - performance.now()) {
          const answer = await takeFileAnswer(database, id);
          if (answer !== null) return answer;
          await untilWoken(id, Math.min(left, lookAgainMs));
        }
      } finally {
        waiting.delete(id);
      }
      await forgetFileRequest(database, id);
      throw new UnavailableError("the worker that has the session's files did not answer in time: try again");
    },
    async close() {
      closing.abort();
      await subscription.close();
    },
  };
}
