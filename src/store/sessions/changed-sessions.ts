import type { Database } from "../../database/database.ts";
import { sessionColumns, type SessionRecord } from "./session-record.ts";

/** Channel on which those who watch lists learn that a session was deleted: `<organization> <session>`. */
export const listedChannel = "offstage_listed";

/** Most running sessions of one organization that are polled. */
const underWayAtMost = 500;

/** Those of these sessions that are of one of the organizations. */
export async function readSessions(
  database: Database,
  organizationIds: readonly string[],
  ids: readonly string[],
): Promise<SessionRecord[]> {
  const { rows } = await database.pool.query<SessionRecord>({
    name: "read_sessions",
    text: `select ${sessionColumns} from session where session.id = any($1::uuid[]) and session.organization_id = any($2::uuid[])
           order by session.updated_at, session.id`,
    values: [ids, organizationIds],
  });
  return rows;
}

/** Ids of the organizations' sessions that run or wait, and of those that are queued. */
export async function listUnderWay(database: Database, organizationIds: readonly string[]): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    `select found.id from unnest($1::uuid[]) as watched (organization_id), lateral (
       (select id from session where organization_id = watched.organization_id and status = 'running' limit ${underWayAtMost})
       union all
       (select id from session where organization_id = watched.organization_id and status = 'waiting' limit ${underWayAtMost})
       union all
       (select id from session where organization_id = watched.organization_id and claimable(session) limit ${underWayAtMost})) as found`,
    [organizationIds],
  );
  return rows.map(({ id }) => id);
}
