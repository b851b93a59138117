import { isConnectionError } from "../../database/connection-errors.ts";
import type { ListenerHandle } from "../../database/notifications.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import { createService, type Service } from "../../lifecycle/service.ts";
import type { Logger } from "../../observability.ts";
import { openAllSecrets } from "../../store/secrets/secrets.ts";
import type { CheckpointStore } from "../../store/checkpoints/checkpoints.ts";
import {
  answerFileRequest,
  fileRequestChannel,
  takeFileRequests,
  type FileRequest,
} from "../../store/sessions/file-requests.ts";
import { lookAtFiles } from "./look-at-files.ts";
import type { SnapshotPlaces } from "./snapshot.ts";

/** Questions that a worker answers at once; others wait. */
const atOnce = 4;
/** Most time of an answer, in ms: whoever asked waits no longer. */
const limitMs = 19_000;

/** What answering needs of the worker. */
export interface FileAnswersOptions extends SnapshotPlaces, CheckpointStore {
  readonly logger: Logger;
  readonly workerId: string;
  /** Masks the server's own secrets. */
  readonly mask: Mask;
  /** The credentials of an organization's forges. */
  readonly forgesOf: (organizationId: string) => Promise<{ readonly secrets: () => readonly string[] }>;
}

/** Makes the service that answers API nodes what is in the workspaces of sessions whose folders this worker has. */
export function createFileAnswers(options: FileAnswersOptions): Service {
  const { database, logger, workerId, vault, forgesOf, mask } = options;
  const answering = new Set<Promise<void>>();
  const stopping = new AbortController();
  let subscription: ListenerHandle | null = null;

  async function maskOf(organizationId: string): Promise<Mask> {
    const [secrets, forges] = await Promise.all([
      openAllSecrets(database, vault, organizationId),
      forgesOf(organizationId),
    ]);
    return mask.with([...secrets, ...forges.secrets()]);
  }

  async function takeMore(): Promise<void> {
    if (stopping.signal.aborted || answering.size >= atOnce) return;
    try {
      for (const request of await takeFileRequests(database, workerId, atOnce - answering.size)) begin(request);
    } catch (error) {
      logger.warn({ err: error }, "could not look for questions about files; who asked asks again");
    }
  }

  function begin(request: FileRequest): void {
    const answered = answer(request).finally(() => {
      answering.delete(answered);
      void takeMore();
    });
    answering.add(answered);
  }

  async function answer({ id, sessionId, question }: FileRequest): Promise<void> {
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(limitMs)]);
    try {
      await answerFileRequest(database, id, await lookAtFiles({ ...options, maskOf }, sessionId, question, signal));
    } catch (error) {
      // Nobody is answered: who asked is told to ask again.
      if (stopping.signal.aborted || isConnectionError(error)) return;
      logger.warn({ err: error, sessionId }, "could not look at a session's files");
      await answerFileRequest(database, id, { problem: "failed" }).catch(() => undefined);
    }
  }

  return createService({
    async start() {
      // "" if notifications may have been lost.
      subscription = await database.listen(fileRequestChannel, (asked) => {
        if (asked === "" || asked === workerId) void takeMore();
      });
    },
    async stop() {
      await subscription?.close();
      stopping.abort();
      await Promise.all(answering);
    },
  });
}
