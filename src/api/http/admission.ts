import type { Database } from "../../database/database.ts";
import { UnavailableError } from "../../domain/errors.ts";
import { queueDepth } from "../../store/queue/queue.ts";

export interface AdmissionOptions {
  readonly database: Database;
  /** Sessions and jobs of one organization that may wait at once. */
  readonly queueLimit: number;
  /** Whether there is room for more rows; asked at most once a second. */
  readonly hasRoom: () => Promise<boolean>;
  readonly now?: () => number;
}

/** Refuses more work where taking it would be no kindness. @throws UnavailableError */
export type Admission = (organizationId: string) => Promise<void>;

/** A count is taken again after so long: in between a little more than the limit may come in. */
const countedForMs = 1_000;
const queueFullSeconds = 30;
const diskFullSeconds = 60;

/** Better a 503 now, which the client tries again, than an answer that never comes and a disk that takes nothing. */
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
