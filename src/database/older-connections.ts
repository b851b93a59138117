import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";

/**
 * The first migration of programs whose prepared statements name the columns that they return. An older program has prepared
 * `returning *`, which PostgreSQL refuses once the table has another column ("cached plan must not change result type").
 */
export const firstWithNamedColumns = 31;

/** `application_name` of a connection that waits for its turn to migrate. */
const waitingName = "offstage migration";

/** How long, in ms, connections that are in use are waited for. */
const waitMs = 10_000;
const pollMs = 50;

/** SQL that marks the connection as one that waits, so that the node which migrates does not close it. Never true. */
export const markAsWaiting = `set_config('application_name', '${waitingName}', false) is null`;

/** Takes back {@link markAsWaiting}. */
export async function unmarkAsWaiting(client: pg.ClientBase): Promise<void> {
  await client.query("reset application_name");
}

/**
 * Closes the connections that were open before a change of the schema, each as soon as it is idle, so that the nodes of the
 * version before open new ones and prepare their statements for the new schema. Their pools replace an idle connection that
 * is closed. A connection that stays in use for ten seconds is left alone: its next statement fails once. So is one that holds an advisory
 * lock from one statement to the next: by it the process that owns an embedded database is known to live.
 * @param client the connection that has migrated; it is not closed
 */
export async function closeOlderConnections(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ now: string }>("select clock_timestamp()::text as now");
  const changedAt = rows[0]?.now;
  const end = performance.now() + waitMs;
  while (performance.now() < end) {
    const older = await client.query<{ closed: boolean }>(
      `select state = 'idle' and pg_terminate_backend(pid) as closed from pg_stat_activity
       where datname = current_database() and usename = current_user and backend_type = 'client backend'
         and pid <> pg_backend_pid() and backend_start < $1 and application_name <> $2
         and not (state = 'idle' and exists (
           select from pg_locks where pg_locks.pid = pg_stat_activity.pid and locktype = 'advisory'))`,
      [changedAt, waitingName],
    );
    if (older.rows.length === 0) return;
    await pause(pollMs);
  }
}
