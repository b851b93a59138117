import type { Database } from "../../database/database.ts";
import { readClaimed, type ClaimedSession } from "../queue/claims.ts";
import { one } from "../one-row.ts";

/** The data for running a recorded session again. */
export interface RecordedSession {
  /** With the agent that it really used. */
  readonly session: ClaimedSession;
  /** The texts of the messages that were answered, in order. */
  readonly messages: readonly string[];
  /** Each repository's diff, by its position in the session; empty if nothing was exported. */
  readonly patches: ReadonlyMap<number, string>;
}

/**
 * Reads a session to run it again.
 * @throws NotFoundError
 */
export async function readRecordedSession(
  database: Database,
  organizationId: string,
  id: string,
): Promise<RecordedSession> {
  const found = await database.pool.query<{ attempt: number }>(
    "select attempt from session where id = $1 and organization_id = $2",
    [id, organizationId],
  );
  const { attempt } = one(found.rows, "session", id);
  const session = await readClaimed(database.pool, { sessionId: id, organizationId, attempt });
  const messages = await database.pool.query<{ text: string }>(
    "select text from message where session_id = $1 and status = 'done' order by position",
    [id],
  );
  const patches = await database.pool.query<{ position: number; patch: string }>(
    "select position, coalesce(patch, '') as patch from session_repository where session_id = $1",
    [id],
  );
  return {
    // The earlier conversation of the harness is not resumed: a replay starts a new one.
    session: { ...session, agent: usedAgent(session), harness: null },
    messages: messages.rows.map(({ text }) => text),
    patches: new Map(patches.rows.map(({ position, patch }) => [position, patch])),
  };
}

/** The agent of the session's last turn; its own choice if none began. */
function usedAgent({ agent, harness }: ClaimedSession): string | null {
  if (harness?.model === undefined) return agent;
  return harness.model === null ? harness.provider : `${harness.provider}:${harness.model}`;
}
