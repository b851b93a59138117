import type { Database } from "../database/database.ts";
import type { Agent } from "../domain/agent.ts";

/** What a worker can do. */
export interface WorkerNode {
  readonly id: string;
  readonly agents: readonly Agent[];
  readonly defaultAgent: string | null;
}

/** A worker that did not say anything for so long is not counted on. */
export const countedFor = "45 seconds";
const forgottenAfter = "1 day";

/** Says that a worker is there. To be said again well within the time for which it counts. */
export async function reportWorker(database: Database, { id, agents, defaultAgent }: WorkerNode): Promise<void> {
  await database.pool.query(
    `insert into worker_node (id, agents, default_agent) values ($1, $2, $3)
     on conflict (id) do update set agents = excluded.agents, default_agent = excluded.default_agent, seen_at = now()`,
    [id, JSON.stringify(agents), defaultAgent],
  );
}

/** Takes a worker off the list that stops. */
export async function removeWorker(database: Database, id: string): Promise<void> {
  await database.pool.query("delete from worker_node where id = $1", [id]);
}

/** The workers that are there, the longest running first. */
export async function listWorkers(database: Database): Promise<WorkerNode[]> {
  const { rows } = await database.pool.query<WorkerNode>(
    `select id, agents, default_agent as "defaultAgent" from worker_node
     where seen_at > now() - interval '${countedFor}' order by started_at, id`,
  );
  return rows;
}

/** Forgets workers that never said that they stop. @returns how many */
export async function pruneWorkers(database: Database): Promise<number> {
  const { rowCount } = await database.pool.query(
    `delete from worker_node where seen_at < now() - interval '${forgottenAfter}'`,
  );
  return rowCount ?? 0;
}
