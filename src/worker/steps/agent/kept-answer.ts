import { hasEvent } from "../../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import type { AnsweredRecord } from "../../disk/session-folders.ts";

// A turn that has ended is recorded beside its folders before it is stored in the database, which may be unavailable
// for longer than the lease, or the worker may be killed. If the next claim of the session finds the folders on this
// disk as the turn left them, it takes the recorded answer instead of asking, and paying, again. Another worker has
// neither.

type Folders = Pick<AttemptServices, "folders">;

/** Records that a turn ended. Without a record, a crash before the database has it takes the turn again: it must not fail for that. */
export async function keepAnswer(
  { session, mask, logger }: Pick<Attempt, "session" | "mask" | "logger">,
  { folders }: Folders,
  { message, answer, events }: AnsweredRecord,
): Promise<void> {
  const masked = { message, answer: mask.text(answer), events: events.map((event) => mask.event(event)) };
  try {
    await folders.markAnswered(session.sessionId, masked);
  } catch (error) {
    logger.warn({ err: error }, "could not record on this disk that a turn ended");
  }
}

/**
 * The answer of a turn that ended in these folders and is not in the database; a notice says so on the session, after
 * the turn's last events.
 * @param messageId the message that was interrupted, as the database knows it
 * @returns null if there is none: the agent is to be asked
 * @throws LeaseLostError
 */
export async function keptAnswer(
  { session, emit }: Pick<Attempt, "session" | "emit">,
  { folders, database }: Folders & Pick<AttemptServices, "database">,
  messageId: string,
): Promise<string | null> {
  const kept = await folders.answered(session.sessionId);
  if (kept?.message !== messageId) return null;
  for (const event of kept.events) if (!(await hasEvent(database, session, event))) await emit(event);
  const text =
    "The agent had ended this turn when its worker lost the database or was ended: the turn counts, and is not repeated.";
  await emit({ type: "notice", data: { level: "info", text } });
  return kept.answer;
}
