import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { openDatabase } from "../../src/database/database.ts";
import { startEmbeddedServer } from "../../src/database/embedded/embedded.ts";
import { createLogger } from "../../src/observability.ts";
import { freePorts } from "../fleet.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { startModelServer } from "../model/server.ts";
import { testEnvironment } from "../test-environment.ts";
import { createDatabaseLink, type DatabaseLink } from "./database-link.ts";
import { createNetworkLink } from "./network-link.ts";
import { startChaosNode, type ChaosNode } from "./node.ts";
import { script } from "./script.ts";

export const chaosKey = "chaos-admin-key-0123456789abcdefghijklmnop";

export interface ChaosWorker extends ChaosNode {
  readonly link: DatabaseLink;
  /** Leaves no room on its disk for a while; false where it has no disk of its own. */
  fillDisk(forMs: number): Promise<boolean>;
  diskIsFull(): boolean;
}

/** A whole fleet with everything around it, as processes that can be hurt. */
export interface ChaosFleet {
  readonly folder: string;
  readonly forge: TestForge;
  readonly apis: readonly (ChaosNode & { readonly url: string })[];
  readonly workers: readonly ChaosWorker[];
  /** Straight to the database, past every link. */
  readonly store: pg.Pool;
  signalDatabase(signal: NodeJS.Signals): Promise<void>;
  close(): Promise<void>;
}

const diskMegabytes = 256;
/** Of each session's lease. */
export const leaseMs = 3_000;

/**
 * @param counts.places of each worker; 4 if omitted
 * @param counts.namespaces whether workers reach the database over networks of their own, which can be cut
 */
export async function startChaosFleet(counts: {
  readonly apis: number;
  readonly workers: number;
  readonly namespaces?: boolean;
  readonly places?: number;
}): Promise<ChaosFleet> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-chaos-"));
  // The database's unprivileged user must be able to pass.
  await chmod(folder, 0o755);
  const logger = createLogger("silent");
  const database = join(folder, "postgres");
  const server = await startEmbeddedServer({ directory: database, logger });
  // Once, before anything goes wrong.
  await (await openDatabase({ url: server.url, directory: folder, logger })).close();
  const socketFolder = decodeURIComponent(new URL(server.url.replace("@/", "@host/")).searchParams.get("host") ?? "");
  const forge = await startForge();
  // As real ones do: what was pushed or opened shows only later.
  forge.lag(10_000, 0);
  const model = await startModelServer({ script });
  const ports = await freePorts(counts.apis);
  const shared = {
    ...testEnvironment(),
    OFFSTAGE_ADMIN_KEY: chaosKey,
    OFFSTAGE_MASTER_KEY: randomBytes(32).toString("base64"),
    OFFSTAGE_PUBLIC_URL: `http://127.0.0.1:${ports[0]}`,
    OFFSTAGE_FORGES: JSON.stringify([{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }]),
    OFFSTAGE_MODEL_BASE_URL: `${model.url}/v1`,
    OFFSTAGE_MODEL_API_KEY: "sk-of-the-chaos",
    OFFSTAGE_MODEL: "scripted",
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_LEASE_SECONDS: String(leaseMs / 1_000),
    OFFSTAGE_LOG_LEVEL: "info",
    OFFSTAGE_RATE_LIMIT_PER_MINUTE: "1000000",
    OFFSTAGE_MAX_RUNNING_PER_ORGANIZATION: "100",
    OFFSTAGE_CONCURRENCY: String(counts.places ?? 4),
    // Of the workers' small disks.
    OFFSTAGE_MIN_FREE_MB: "32",
    OFFSTAGE_DRAIN_SECONDS: "2",
    OFFSTAGE_CHECK_SECONDS: "1",
  };

  async function startApi(port: number, index: number) {
    const name = `api-${index}`;
    const link = await createDatabaseLink(socketFolder, join(folder, `${name}-link`));
    const node = await startChaosNode({
      command: "api",
      name,
      data: join(folder, name),
      log: join(folder, `${name}.log`),
      environment: { ...shared, DATABASE_URL: link.url, OFFSTAGE_PORT: String(port) },
    });
    return { ...node, url: `http://127.0.0.1:${port}`, link };
  }

  async function startWorker(index: number): Promise<ChaosWorker> {
    const name = `worker-${index}`;
    const data = join(folder, name);
    await mkdir(data, { recursive: true });
    const mounted = mountDisk(data);
    const link = counts.namespaces
      ? await createNetworkLink(index, socketFolder)
      : await createDatabaseLink(socketFolder, join(folder, `${name}-link`));
    const node = await startChaosNode({
      command: "worker",
      name,
      data,
      log: join(folder, `${name}.log`),
      environment: { ...shared, DATABASE_URL: link.url },
    });
    const filler = join(data, "filler");
    let fills = 0;
    return {
      ...node,
      link,
      async fillDisk(forMs) {
        if (!mounted) return false;
        fills += 1;
        await writeFile(filler, Buffer.alloc(diskMegabytes * 1024 * 1024)).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== "ENOSPC") throw error;
        });
        setTimeout(() => {
          void truncate(filler)
            .catch(() => undefined)
            .then(() => (fills -= 1));
        }, forMs);
        return true;
      },
      diskIsFull: () => fills > 0,
    };
  }

  const apis = await Promise.all(ports.map(startApi));
  const workers = await Promise.all(Array.from({ length: counts.workers }, (_, index) => startWorker(index)));
  const store = new pg.Pool({ connectionString: server.url, max: 4 });
  // A restarted database breaks idle connections: the pool replaces them.
  store.on("error", () => undefined);
  return {
    folder,
    forge,
    apis,
    workers,
    store,
    async signalDatabase(signal) {
      const pid = Number((await readFile(join(database, "postmaster.pid"), "utf8").catch(() => "")).split("\n")[0]);
      if (pid > 0) process.kill(pid, signal);
    },
    async close() {
      await store.end();
      for (const { link } of [...apis, ...workers]) await link.close();
      await server.stop();
      await model.close();
      await forge.close();
      for (const { data } of workers) spawnSync("umount", ["--lazy", data], { stdio: "ignore" });
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A small disk of its own, where this user may mount one. */
function mountDisk(path: string): boolean {
  if (process.getuid?.() !== 0) return false;
  return spawnSync("mount", ["-t", "tmpfs", "-o", `size=${diskMegabytes}m`, "tmpfs", path]).status === 0;
}
