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
/** While the next count is made, the one before lets work in, if it was begun so recently. It refuses none. */
const standsInForMs = 2 * countedForMs;
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
    /** Its result; null: it is still being made. */
    counted: number | null;
    /** The one before, while this one is being made; null: there is none that is recent enough. */
    before: Count | null;
    readonly at: number;
  }
  const counts = new Map<string, Count>();
  let room: { readonly is: Promise<boolean>; readonly at: number } | null = null;

  function begin(organizationId: string, last: Count | undefined): Count {
    const isRecent = last !== undefined && last.counted !== null && now() - last.at < standsInForMs;
    const depth = queueDepth(database, organizationId, queueLimit);
    const begun: Count = { admitted: 0, depth, counted: null, before: isRecent ? last : null, at: now() };
    counts.set(organizationId, begun);
    depth.then(
      (counted) => {
        begun.counted = counted;
        begun.before = null;
      },
      () => {
        if (counts.get(organizationId) === begun) counts.delete(organizationId);
      },
    );
    return begun;
  }

  /**
   * Requests that come while a count is made wait for that one, instead of each making its own; not even for that one if the count before
   * lets them in: a long queue takes the database longer to count than a request lasts.
   */
  async function depthOf(organizationId: string): Promise<number> {
    const last = counts.get(organizationId);
    const count = last === undefined || now() - last.at >= countedForMs ? begin(organizationId, last) : last;
    const own = (count.admitted += 1);
    const { before } = count;
    if (before !== null && before.counted !== null) {
      const estimate = before.counted + (before.admitted += 1);
      if (estimate <= queueLimit) return estimate;
    }
    return (await count.depth) + own;
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
