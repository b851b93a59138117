import type { Database } from "../../database/database.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { WorkerMachine } from "../../domain/system/health.ts";

/** A worker and its capacity. */
export interface WorkerNode {
  readonly id: string;
  readonly agents: readonly Agent[];
  readonly defaultAgent: string | null;
  /** Sessions that it runs at once. */
  readonly concurrency: number;
}

/** A worker as its heartbeat reports it. */
export interface ReportedWorker extends WorkerNode {
  /** Null or omitted: it could not be found out. */
  readonly machine?: WorkerMachine | null;
}

/** A worker without a heartbeat for this long does not count. */
export const countedFor = "45 seconds";
const forgottenAfter = "1 day";

/** Sends a worker's heartbeat. It must be repeated well within `countedFor`. */
export async function reportWorker(database: Database, worker: ReportedWorker): Promise<void> {
  const { id, agents, defaultAgent, concurrency, machine = null } = worker;
  await database.pool.query(
    `insert into worker_node (id, agents, default_agent, concurrency, machine, machine_at) values ($1, $2, $3, $4, $5, now())
     on conflict (id) do update set agents = excluded.agents, default_agent = excluded.default_agent,
       concurrency = excluded.concurrency, machine = excluded.machine, machine_at = now(), seen_at = now()`,
    [id, JSON.stringify(agents), defaultAgent, concurrency, machine],
  );
}

/** Removes a worker that stops. */
export async function removeWorker(database: Database, id: string): Promise<void> {
  await database.pool.query("delete from worker_node where id = $1", [id]);
}

/** The workers with a recent heartbeat, oldest start first. */
export async function listWorkers(database: Database): Promise<WorkerNode[]> {
  const { rows } = await database.pool.query<WorkerNode>(
    `select id, agents, default_agent as "defaultAgent", concurrency from worker_node
     where seen_at > now() - interval '${countedFor}' order by started_at, id`,
  );
  return rows;
}

/**
 * Deletes workers that disappeared without `removeWorker`.
 * @returns how many
 */
export async function pruneWorkers(database: Database): Promise<number> {
  const { rowCount } = await database.pool.query(
    `delete from worker_node where seen_at < now() - interval '${forgottenAfter}'`,
  );
  return rowCount ?? 0;
}
