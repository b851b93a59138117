import { type Database, migrationsDirectory } from "../../database/database.ts";
import { readDatabaseBytes, readDatabaseState } from "../../database/state.ts";
import { systemHealthSchema, type SystemHealth } from "../../domain/system/health.ts";
import { systemProblems } from "../../domain/system/problems.ts";
import { readQueueHealth, readWorkers } from "../../store/queue/system-health.ts";
import { requireServerAdmin } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { answers } from "../http/shapes.ts";

type SystemOptions = Pick<ApiOptions, "database" | "version" | "diskSpace" | "workerId">;

/** How long an answer is given again, in ms: however many pages watch, the database is asked once. */
const answerMs = 1_000;
/** The same for the database's size, for which PostgreSQL reads the size of each of its files. */
const bytesMs = 60_000;

/** Adds the operation for the state of the server, its workers, its queue and its database. */
export function addSystemOperations(app: App, options: SystemOptions): void {
  const startedAt = new Date(Date.now() - process.uptime() * 1_000).toISOString();
  const readBytes = remembered(bytesMs, () => readDatabaseBytes(options.database.pool));
  const read = remembered(answerMs, () => readHealth(options, startedAt, readBytes));
  app.get(
    "/system/health",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags: ["System"],
        operationId: "getSystemHealth",
        summary: "How the server is: workers, queue, database, disk, versions, and what is wrong with them",
        response: answers(systemHealthSchema),
      },
    },
    async (request) => {
      await requireServerAdmin(options.database, request);
      return read();
    },
  );
}

async function readHealth(
  { database, version, diskSpace, workerId = null }: SystemOptions,
  startedAt: string,
  readBytes: () => Promise<number>,
): Promise<SystemHealth> {
  const [workers, queue, databaseHealth, disk] = await Promise.all([
    readWorkers(database),
    readQueueHealth(database),
    databaseHealthOf(database, readBytes),
    diskSpace(),
  ]);
  const server = { version, nodeVersion: process.versions.node, startedAt, disk, workerId };
  const health = { checkedAt: new Date().toISOString(), server, workers, queue, database: databaseHealth };
  return { ...health, problems: systemProblems(health) };
}

async function databaseHealthOf(
  database: Database,
  readBytes: () => Promise<number>,
): Promise<SystemHealth["database"]> {
  const [state, bytes] = await Promise.all([readDatabaseState(database.pool, migrationsDirectory), readBytes()]);
  return { ...state, bytes };
}

/** Reads once for all who ask within a time. What failed is read again. */
function remembered<T>(ms: number, read: () => Promise<T>): () => Promise<T> {
  let known: { readonly at: number; readonly value: Promise<T> } | null = null;
  return () => {
    if (known !== null && performance.now() - known.at < ms) return known.value;
    const value = read();
    const asked = { at: performance.now(), value };
    known = asked;
    value.catch(() => {
      if (known === asked) known = null;
    });
    return value;
  };
}
