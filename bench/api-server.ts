import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApp } from "../src/api/app.ts";
import { openDatabase } from "../src/database/database.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { createMask } from "../src/domain/masking/mask.ts";
import { createMetrics } from "../src/metrics/metrics.ts";
import { createLogger } from "../src/observability.ts";
import { bootstrap } from "../src/store/people/organizations.ts";
import { environmentKeyring } from "../src/store/secrets/keyring.ts";
import { createVault } from "../src/store/secrets/vault.ts";
import { createPrincipalFinder } from "../src/store/people/principals.ts";
import { createBatchedInserts } from "../src/store/sessions/batched-inserts.ts";
import { createTemplates } from "../src/templates/templates.ts";
import { noTraces } from "../src/traces.ts";

/**
 * The real API over the real embedded database, without a worker that would carry out what is created.
 * A separate process, so that the load is not made by the process that bears it. It reports its address by IPC.
 */
export interface ApiServerReady {
  readonly url: string;
  readonly databaseUrl: string;
  /** Of the database's first process. */
  readonly databasePid: number;
}

export const benchKey = "bench-admin-key-0123456789abcdefghijklmnop";

async function serve(): Promise<void> {
  const logger = createLogger("error");
  const directory = await mkdtemp(join(tmpdir(), "offstage-bench-"));
  // The database runs as an unprivileged user if we are root, and must reach its folder.
  await chmod(directory, 0o711);
  const embedded = await startEmbeddedServer({ directory: join(directory, "postgres"), logger });
  const database = await openDatabase({ url: embedded.url, directory, logger });
  await bootstrap(database, { adminKey: benchKey });
  const templates = createTemplates();
  let url = "http://127.0.0.1";
  const app = await createApp({
    hosts: [],
    trustedProxies: [],
    signInDays: 30,
    readClientDocument: () => Promise.reject(new Error("no program describes itself here")),
    signInMethods: [],
    signInPolicy: { admins: [], domains: [], githubOrganizations: [], defaultRole: "member" },
    vault: createVault(environmentKeyring(randomBytes(32).toString("base64"))),
    database,
    inserts: createBatchedInserts(database),
    findPrincipal: createPrincipalFinder(database),
    logger,
    metrics: createMetrics(),
    metricsToken: null,
    traces: noTraces,
    publicUrl: () => url,
    sandboxed: true,
    allowLocalRepositories: false,
    rateLimitPerMinute: 1_000_000,
    deliveriesPerMinute: 1_000_000,
    mention: "offstage",
    maxRunningPerOrganization: 20,
    queueLimit: 1_000_000,
    hasRoom: () => Promise.resolve(true),
    defaultAgent: () => Promise.resolve(null),
    agents: () => Promise.resolve([]),
    integrationOf: () => undefined,
    maskOf: () => Promise.resolve(createMask([])),
    pushPublicKey: () => Promise.resolve(""),
    sendsMail: false,
    choices: {
      repositories: () => Promise.resolve({ repositories: [], complete: true, problems: [] }),
      branches: () => Promise.resolve({ branches: [], complete: true }),
      files: () => Promise.resolve({ paths: [], complete: true }),
    },
    accounts: {
      placeOf: () => Promise.resolve("there is no forge"),
      check: () => Promise.resolve({ account: null, problems: [] }),
    },
    connections: {
      check: () => Promise.resolve({ account: null, problems: [] }),
      changed: () => Promise.resolve(),
      appManifest: () => ({}),
      convertAppManifest: () => Promise.reject(new Error("there is no GitHub")),
    },
    repositoryKeyOf: ({ key }) => key,
    templates,
    webDirectory: null,
    ready: () => Promise.resolve(true),
    version: "0.0.0",
    diskSpace: () => Promise.resolve({ freeBytes: 2e12, totalBytes: 4e12, neededBytes: 1e9 }),
  });
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  const [databasePid] = (await readFile(join(directory, "postgres", "postmaster.pid"), "utf8")).split("\n");
  const ready: ApiServerReady = { url, databaseUrl: embedded.url, databasePid: Number(databasePid) };
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuMs: (user + system) / 1_000 });
  });
  process.send?.(ready);
  await new Promise<void>((resolve) => process.once("disconnect", () => resolve()));
  await app.close();
  await templates.close();
  await database.close();
  await embedded.stop();
  await rm(directory, { recursive: true, force: true });
}

if (process.send !== undefined) await serve();
