import type { Database } from "../../database/database.ts";
import { isHeld } from "../../store/queue/lease.ts";
import type { Attempt } from "./attempt.ts";
import { endOf, type AttemptEnd } from "./end.ts";

/**
 * Returns why an attempt ended, as `endOf` does, and asks the database whether it still has the session before it
 * counts as failed: a worker that was frozen goes on for a moment with a session that is another's by now, and its
 * errors then are no failure of the session's.
 */
export async function knownEnd(
  error: unknown,
  { session, signal, logger }: Pick<Attempt, "session" | "signal" | "logger">,
  database: Database,
): Promise<AttemptEnd> {
  const end = endOf(error, signal);
  if (end.why !== "failed") return end;
  try {
    if (await isHeld(database, session)) return end;
  } catch (problem) {
    // Recording the failure waits for the database, which refuses it if the claim is lost.
    logger.warn({ err: problem }, "could not ask whether the lease of a failed attempt was lost");
    return end;
  }
  logger.warn({ err: error }, "an attempt broke after its lease was lost");
  return { why: "lost" };
}
