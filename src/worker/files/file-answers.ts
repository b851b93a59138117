import { isConnectionError } from "../../database/connection-errors.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import { withListener } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
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

/** Questions that a worker answers at once; of them those of one organization, whose archives may take long to read. Others wait. */
const atOnce = { all: 8, ofOrganization: 4 };
/** Interval, in ms, at which is looked for questions whose notification was lost. */
const everyMs = 5_000;
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
  async function maskOf(organizationId: string): Promise<Mask> {
    const [secrets, forges] = await Promise.all([
      openAllSecrets(database, vault, organizationId),
      forgesOf(organizationId),
    ]);
    return mask.with([...secrets, ...forges.secrets()]);
  }

  async function answer({ id, sessionId, question }: FileRequest, stopping: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(limitMs)]);
    try {
      await answerFileRequest(database, id, await lookAtFiles({ ...options, maskOf }, sessionId, question, signal));
    } catch (error) {
      // Nobody is answered: who asked is told to ask again.
      if (stopping.aborted || isConnectionError(error)) return;
      logger.warn({ err: error, sessionId }, "could not look at a session's files");
      await answerFileRequest(database, id, { problem: "failed" }).catch(() => undefined);
    }
  }

  const loop = createClaimLoop<FileRequest>({
    atOnce: atOnce.all,
    everyMs,
    claim: (underWay) => {
      const counted = Map.groupBy(underWay, ({ organizationId }) => organizationId);
      const busy = [...counted].filter(([, of]) => of.length >= atOnce.ofOrganization).map(([id]) => id);
      return takeFileRequests(database, workerId, { most: 1, busy });
    },
    work: answer,
    graceMs: 0,
    onClaimFailure: (error) =>
      logger.warn({ err: error }, "could not look for questions about files; who asked asks again"),
    onWorkFailure: (error, { sessionId }) => logger.warn({ err: error, sessionId }, "could not answer about files"),
  });
  // "" if notifications may have been lost.
  return withListener(loop, (now) =>
    database.listen(fileRequestChannel, (asked) => {
      if (asked === "" || asked === workerId) now();
    }),
  );
}
