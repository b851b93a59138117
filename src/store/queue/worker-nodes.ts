import type { Database } from "../../database/database.ts";
import type { Agent } from "../../domain/agent.ts";

/** What a worker can do. */
export interface WorkerNode {
  readonly id: string;
  readonly agents: readonly Agent[];
  readonly defaultAgent: string | null;
  /** Sessions that it carries out at once. */
  readonly concurrency: number;
}

/** A worker that did not say anything for so long is not counted on. */
export const countedFor = "45 seconds";
const forgottenAfter = "1 day";

/** Says that a worker is there. To be said again well within the time for which it counts. */
export async function reportWorker(database: Database, worker: WorkerNode): Promise<void> {
  await database.pool.query(
    `insert into worker_node (id, agents, default_agent, concurrency) values ($1, $2, $3, $4)
     on conflict (id) do update set agents = excluded.agents, default_agent = excluded.default_agent,
       concurrency = excluded.concurrency, seen_at = now()`,
    [worker.id, JSON.stringify(worker.agents), worker.defaultAgent, worker.concurrency],
  );
}

/** Takes a worker off the list that stops. */
export async function removeWorker(database: Database, id: string): Promise<void> {
  await database.pool.query("delete from worker_node where id = $1", [id]);
}

/** The workers that are there, the longest running first. */
export async function listWorkers(database: Database): Promise<WorkerNode[]> {
  const { rows } = await database.pool.query<WorkerNode>(
    `select id, agents, default_agent as "defaultAgent", concurrency from worker_node
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
