import type { Database } from "../../database/database.ts";
import { UnavailableError } from "../../domain/errors/errors.ts";
import { queueDepth } from "../../store/queue/queue.ts";

/** What admission depends on. */
export interface AdmissionOptions {
  readonly database: Database;
  /** Limit of sessions and jobs of one organization that wait. */
  readonly queueLimit: number;
  /** Whether the disk has room for more rows; called at most once a second. */
  readonly hasRoom: () => Promise<boolean>;
  readonly now?: () => number;
}

/**
 * Rejects new work if the queue or the disk is full.
 * @throws UnavailableError
 */
export type Admission = (organizationId: string) => Promise<void>;

/** A count is reused for this long, so slightly more than the limit may be accepted meanwhile. */
const countedForMs = 1_000;
const queueFullSeconds = 30;
const diskFullSeconds = 60;

/**
 * Makes an admission check. A 503 now, which clients retry, is better than work that waits without end or a full
 * disk.
 */
export function createAdmission({ database, queueLimit, hasRoom, now = Date.now }: AdmissionOptions): Admission {
  const depths = new Map<string, { depth: number; at: number }>();
  let room = { is: true, at: Number.NEGATIVE_INFINITY };

  async function depthOf(organizationId: string): Promise<number> {
    const known = depths.get(organizationId);
    if (known !== undefined && now() - known.at < countedForMs) {
      known.depth += 1;
      return known.depth;
    }
    const depth = await queueDepth(database, organizationId, queueLimit);
    depths.set(organizationId, { depth: depth + 1, at: now() });
    return depth + 1;
  }

  return async (organizationId) => {
    if (now() - room.at >= countedForMs) room = { is: await hasRoom(), at: now() };
    if (!room.is)
      throw new UnavailableError(
        "the server's disk is nearly full and it accepts no more work: try again later",
        diskFullSeconds,
      );
    if ((await depthOf(organizationId)) > queueLimit) {
      throw new UnavailableError(
        `the organization already has ${queueLimit} sessions and jobs waiting (OFFSTAGE_QUEUE_LIMIT): try again later`,
        queueFullSeconds,
      );
    }
  };
}
