import type { Provider } from "../agents/harness.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import type { Agent } from "../domain/agents/agent.ts";
import { listWorkers, type WorkerNode } from "../store/queue/worker-nodes.ts";

/** Lists the providers with whether each can run on this machine. */
export async function listAgents(
  providers: readonly Provider[],
  defaultAgent: () => Promise<string | null>,
): Promise<Agent[]> {
  const byDefault = (await defaultAgent())?.split(":")[0];
  return Promise.all(
    providers.map(async (provider) => {
      const problem = await provider.problem();
      return {
        id: provider.id,
        name: provider.name,
        available: problem === null,
        problem,
        defaultModel: provider.defaultModel,
        reasoningLevels: [...provider.reasoningLevels],
        isDefault: provider.id === byDefault,
      };
    }),
  );
}

/** The operator's default agent, or that of the first worker that has one. */
export async function fleetDefaultAgent(config: Config, database: Database): Promise<string | null> {
  return (
    config.defaultAgent ??
    (await listWorkers(database)).find((worker) => worker.defaultAgent !== null)?.defaultAgent ??
    null
  );
}

/**
 * Lists the agents that any running worker offers. Providers that no worker offers are listed too, because a session
 * can wait for a worker that has one.
 * @param known the providers of this process
 * @param byDefault name of the default agent
 */
export function fleetAgents(
  known: readonly Agent[],
  workers: readonly WorkerNode[],
  byDefault: string | null,
): Agent[] {
  const offered = workers.flatMap(({ agents }) => agents);
  const ids = new Set([...known, ...offered].map(({ id }) => id));
  return [...ids].flatMap((id) => {
    const able = offered.find((agent) => agent.id === id && agent.available);
    const named = able ?? offered.find((agent) => agent.id === id) ?? known.find((agent) => agent.id === id);
    if (named === undefined) return [];
    const problem = able !== undefined ? null : workers.length === 0 ? "no worker is running" : named.problem;
    return { ...named, available: able !== undefined, problem, isDefault: id === byDefault?.split(":")[0] };
  });
}
