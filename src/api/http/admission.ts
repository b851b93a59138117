import type { Database } from "../../database/database.ts";
import { UnavailableError } from "../../domain/errors/errors.ts";
import { queueDepth } from "../../store/queue/queue.ts";

/** Dependencies of admission. */
export interface AdmissionOptions {
  readonly database: Database;
  /** Limit of sessions and jobs of one organization that wait. */
  readonly queueLimit: number;
  /** Whether the disk has room for more rows; called at most once a second. */
  readonly hasRoom: () => Promise<boolean>;
  /** A clock in milliseconds that never goes back. */
  readonly now?: () => number;
}

/**
 * Rejects new work if the queue or the disk is full.
 * @throws UnavailableError
 */
export type AdmissionCheck = (organizationId: string) => Promise<void>;

/** A count is reused for this long, so slightly more than the limit may be accepted meanwhile. */
const countedForMs = 1_000;
const queueFullSeconds = 30;
const diskFullSeconds = 60;

/**
 * Makes an admission check. A 503 now, which clients retry, is better than work that waits without end or a full
 * disk.
 */
export function createAdmission({
  database,
  queueLimit,
  hasRoom,
  now = () => performance.now(),
}: AdmissionOptions): AdmissionCheck {
  interface Count {
    /** Those that were admitted since it was begun. */
    admitted: number;
    readonly depth: Promise<number>;
    readonly at: number;
  }
  const counts = new Map<string, Count>();
  let room: { readonly is: Promise<boolean>; readonly at: number } | null = null;

  /** Requests that come while a count is made wait for that one, instead of each making its own. */
  async function depthOf(organizationId: string): Promise<number> {
    let count = counts.get(organizationId);
    if (count === undefined || now() - count.at >= countedForMs) {
      const depth = queueDepth(database, organizationId, queueLimit);
      const begun = { admitted: 0, depth, at: now() };
      counts.set(organizationId, (count = begun));
      depth.catch(() => {
        if (counts.get(organizationId) === begun) counts.delete(organizationId);
      });
    }
    const before = (count.admitted += 1);
    return (await count.depth) + before;
  }

  function isRoomLeft(): Promise<boolean> {
    if (room !== null && now() - room.at < countedForMs) return room.is;
    const asked = { is: hasRoom(), at: now() };
    room = asked;
    asked.is.catch(() => {
      if (room === asked) room = null;
    });
    return asked.is;
  }

  return async (organizationId) => {
    if (!(await isRoomLeft()))
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
