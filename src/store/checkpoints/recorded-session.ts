import type { Database } from "../../database/database.ts";
import { NotFoundError } from "../../domain/errors/errors.ts";
import { readClaimed, type ClaimedSession } from "../queue/claims.ts";

/** What is needed to run a recorded session again. */
export interface RecordedSession {
  /** With the agent that it really used. */
  readonly session: ClaimedSession;
  /** The texts of the messages that were answered, in order. */
  readonly messages: readonly string[];
  /** Each repository's diff, in the order of the repositories; null if there is none. */
  readonly patches: readonly (string | null)[];
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
  const attempt = found.rows[0]?.attempt;
  if (attempt === undefined) throw new NotFoundError(`session ${id} was not found`);
  const session = await readClaimed(database, { sessionId: id, organizationId, attempt });
  const messages = await database.pool.query<{ text: string }>(
    "select text from message where session_id = $1 and status = 'done' order by position",
    [id],
  );
  const patches = await database.pool.query<{ patch: string | null }>(
    "select patch from session_repository where session_id = $1 order by position",
    [id],
  );
  const started = await database.pool.query<{ provider: string; model: string | null }>(
    `select data ->> 'provider' as provider, data ->> 'model' as model from event
     where session_id = $1 and type = 'agent.started' order by seq limit 1`,
    [id],
  );
  const agent = started.rows[0];
  const named =
    agent === undefined ? session.agent : `${agent.provider}${agent.model === null ? "" : `:${agent.model}`}`;
  return {
    // The earlier conversation of the harness is not resumed: a replay starts a new one.
    session: { ...session, agent: named, harness: null },
    messages: messages.rows.map(({ text }) => text),
    patches: patches.rows.map(({ patch }) => patch),
  };
}
