import type { Database } from "../../database/database.ts";
import type { Claim } from "./lease.ts";

/** A dead worker's rows are of no use: what they name has ended with it. */
const forgottenAfter = "1 day";

/** Records a sandbox that a worker keeps ready. @param sandbox.key digest of all that its harness was started with */
export async function addWarmSandbox(
  database: Database,
  sandbox: { readonly id: string; readonly worker: string; readonly key: string },
): Promise<void> {
  await database.pool.query("insert into warm_sandbox (id, worker, key) values ($1, $2, $3)", [
    sandbox.id,
    sandbox.worker,
    sandbox.key,
  ]);
}

/**
 * Makes a warm sandbox a session's, for ever.
 * @returns false if another attempt has it, or the claim was lost
 */
export async function takeWarmSandbox(
  database: Database,
  { sessionId, attempt }: Claim,
  sandbox: { readonly id: string; readonly worker: string; readonly key: string },
): Promise<boolean> {
  const { rowCount } = await database.pool.query({
    name: "take_warm_sandbox",
    text: `update warm_sandbox set session_id = $1, attempt = $2
           where id = $3 and worker = $4 and key = $5 and session_id is null
             and exists (select from session where id = $1 and attempt = $2 and status = 'running'
               and lease_until > clock_timestamp())`,
    values: [sessionId, attempt, sandbox.id, sandbox.worker, sandbox.key],
  });
  return rowCount === 1;
}

/** Deletes the row of a warm sandbox that has ended, or whose session's attempt has. */
export async function removeWarmSandbox(database: Database, id: string): Promise<void> {
  await database.pool.query("delete from warm_sandbox where id = $1", [id]);
}

/** Deletes all warm sandboxes' rows of a worker that starts or stops: none of an earlier process is left. */
export async function removeWarmSandboxesOf(database: Database, worker: string): Promise<void> {
  await database.pool.query("delete from warm_sandbox where worker = $1", [worker]);
}

/** Deletes rows of warm sandboxes of workers that are gone. @returns how many */
export async function pruneWarmSandboxes(database: Database): Promise<number> {
  const { rowCount } = await database.pool.query(
    `delete from warm_sandbox where created_at < now() - interval '${forgottenAfter}'
       and not exists (select from worker_node where worker_node.id = warm_sandbox.worker)`,
  );
  return rowCount ?? 0;
}
