import { execFileSync } from "node:child_process";
import type { QueryConfig } from "pg";
import type { Database, Queryable } from "../../../src/database/database.ts";
import { createGatewayProcesses } from "../../../src/gateway/process/process.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { createSafePoints } from "../../../src/worker/attempt/safe-points.ts";
import { createCheckpointer, type Checkpointer } from "../../../src/worker/checkpoints/checkpointer.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { exportWork } from "../../../src/worker/steps/commit/export-work.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import type { AgentServices, Turns } from "../../../src/worker/steps/take-turns.ts";
import type { StepServices } from "./step-world.ts";

/** The folder of a session's first clone. */
export const folderOf = (clones: readonly Clone[]): string => clones[0]?.folder ?? "";

/** git as the agent runs it in the first clone. @returns its stdout */
export function gitIn(clones: readonly Clone[], ...parameters: string[]): string {
  const identity = ["-c", "user.name=Agent", "-c", "user.email=agent@example.com"];
  return execFileSync("git", ["-C", folderOf(clones), ...identity, ...parameters], { encoding: "utf8" }).trim();
}

/** Takes the work out, pushes it, and opens its pull request. */
export async function publish(attempt: Attempt, services: StepServices, clones: readonly Clone[]) {
  const works = await exportWork(attempt, services, clones);
  const pushes = await push(
    attempt,
    services,
    works.filter(({ isChanged }) => isChanged),
  );
  await openPullRequests(attempt, services, pushes.pushed, "", pushes.refused);
  return { works, ...pushes };
}

/** A worker's services with what the turns need besides; no agent can run on it. */
export function withoutAgents(services: StepServices): StepServices & AgentServices {
  return {
    ...services,
    defaultAgent: () => Promise.resolve(null),
    stallMs: 1_000,
    turnLimitMs: 1_000,
    permissions: "allow",
    gateways: createGatewayProcesses(),
    egress: { open: false, rules: [] },
    registryHosts: [],
    sandboxAuthorities: [],
    socketDirectory: "/nonexistent",
    modelPermits: [],
    models: {},
    prices: {},
    allowedModels: ["*"],
    recordingsDirectory: null,
  };
}

/** Turns whose checkpointer the test stops. */
export interface PreparedTurns extends Turns {
  readonly checkpointer: Checkpointer;
}

/** Makes or finds the clones, for turns of which none has to be handed over. */
export async function prepareTurns(attempt: Attempt, services: StepServices): Promise<PreparedTurns> {
  const { clones, environments } = await prepareWorkspace(attempt, services);
  const checkpointer = createCheckpointer(attempt, services);
  const safePoints = createSafePoints(new AbortController().signal, () => undefined);
  return { clones, environments, origin: "disk", checkpointer, safePoints };
}

/** Takes one checkpoint. @returns whether everything is stored */
export async function takeCheckpoint(
  attempt: Attempt,
  services: StepServices,
  clones: readonly Clone[],
): Promise<boolean> {
  const checkpointer = createCheckpointer(attempt, services);
  checkpointer.start(clones);
  const isStored = await checkpointer.take();
  await checkpointer.stop();
  return isStored;
}

/** A database whose connection ends, once, at the first statement of a transaction that has these words. */
export function breakingAt(database: Database, words: string): { readonly database: Database; breaks(): number } {
  let breaks = 0;
  const breaking = (transaction: Queryable): Queryable => {
    const query = async (statement: string | QueryConfig, values?: unknown[]) => {
      const text = typeof statement === "string" ? statement : statement.text;
      if (breaks === 0 && text.includes(words)) {
        breaks += 1;
        await transaction.query("select pg_terminate_backend(pg_backend_pid())");
      }
      return transaction.query(statement, values);
    };
    return { query: query as Queryable["query"] };
  };
  const transaction = <T>(work: (transaction: Queryable) => Promise<T>): Promise<T> =>
    database.transaction((each) => work(breaking(each)));
  return { database: { ...database, transaction }, breaks: () => breaks };
}
