import { randomBytes } from "node:crypto";
import { createApp } from "../../src/api/app.ts";
import type { Database } from "../../src/database/database.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createMask } from "../../src/domain/masking/mask.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { bootstrap } from "../../src/store/people/organizations.ts";
import { createForgeChoices } from "../../src/server/browse-forges.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { createPrincipalFinder } from "../../src/store/people/principals.ts";
import { createBatchedInserts } from "../../src/store/sessions/batched-inserts.ts";
import { createTemplates, type Templates } from "../../src/templates/templates.ts";
import { noTraces } from "../../src/traces.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

type Options = Partial<Parameters<typeof createApp>[0]>;

export interface TestApp {
  readonly app: Awaited<ReturnType<typeof createApp>>;
  readonly testDatabase: TestDatabase;
  readonly database: Database;
  readonly organizationId: string;
  readonly adminKey: string;
  readonly templates: Templates;
  request(method: "GET" | "POST", url: string, call?: Call): Promise<Answer>;
  get(url: string, call?: Call): Promise<Answer>;
  post(url: string, body: unknown, call?: Call): Promise<Answer>;
  /** Another app on the same database, as a second process would be. */
  another(options?: Options): Promise<TestApp["app"]>;
  close(): Promise<void>;
}

export interface Call {
  /** Undefined: the admin's; null: none. */
  readonly key?: string | null;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  /** A body as it is sent, which need be no JSON. */
  readonly raw?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
  readonly body: any;
}

const isJson = (type: string): boolean => type.startsWith("application/json");

/** The API on a database of its own, without a worker: what is queued stays so. */
export async function createTestApp(options: Options = {}): Promise<TestApp> {
  const testDatabase = await createTestDatabase();
  const { organizationId, adminKey } = await bootstrap(testDatabase.database, { adminKey: null });
  const key = adminKey ?? "";
  const agent = {
    id: "opencode",
    name: "OpenCode",
    available: true,
    problem: null,
    defaultModel: "m",
    reasoningLevels: ["low", "medium", "high"],
    isDefault: true,
  };
  const ownForges = { ...createForges([]), secrets: () => [] };
  const apps: TestApp["app"][] = [];
  const templates = createTemplates();
  const settings: Parameters<typeof createApp>[0] = {
    database: testDatabase.database,
    inserts: createBatchedInserts(testDatabase.database),
    findPrincipal: createPrincipalFinder(testDatabase.database),
    vault: createVault(environmentKeyring(randomBytes(32).toString("base64"))),
    logger: createLogger("silent"),
    metrics: createMetrics(),
    metricsToken: null,
    traces: noTraces,
    publicUrl: () => "http://offstage.test",
    sandboxed: true,
    allowLocalRepositories: false,
    rateLimitPerMinute: 10_000,
    deliveriesPerMinute: 1_000_000,
    mention: "offstage",
    maxRunningPerOrganization: 20,
    queueLimit: 1_000_000,
    hasRoom: () => Promise.resolve(true),
    choices: createForgeChoices({ forges: { of: () => Promise.resolve(ownForges) } }),
    pushPublicKey: () => Promise.resolve("a-public-key"),
    sendsMail: true,
    hosts: [],
    trustedProxies: [],
    signInDays: 30,
    readClientDocument: () => Promise.reject(new Error("there is no network")),
    signInMethods: [],
    signInPolicy: { admins: [], domains: [], githubOrganizations: [], defaultRole: "member" },
    defaultAgent: () => Promise.resolve("opencode:m"),
    agents: () => Promise.resolve([agent, { ...agent, id: "codex", name: "Codex", isDefault: false }]),
    integrationOf: () => undefined,
    maskOf: () => Promise.resolve(createMask([])),
    connections: {
      check: () => Promise.resolve({ account: null, problems: [] }),
      changed: () => Promise.resolve(),
      appManifest: () => ({}),
      convertAppManifest: () => Promise.reject(new Error("there is no GitHub")),
    },
    accounts: {
      placeOf: (_, webUrl) => Promise.resolve({ kind: "gitea", webUrl, apiUrl: `${webUrl}/api/v1` }),
      check: () => Promise.resolve({ account: "somebody", problems: [] }),
    },
    repositoryKeyOf: createForges([]).keyOf,
    templates,
    webDirectory: null,
    ready: () => Promise.resolve(true),
    version: "0.0.0",
    diskSpace: () => Promise.resolve({ freeBytes: 2e12, totalBytes: 4e12, neededBytes: 1e9 }),
    ...options,
  };
  async function another(more: Options = {}): Promise<TestApp["app"]> {
    const made = await createApp({ ...settings, ...more });
    apps.push(made);
    return made;
  }
  const app = await another();
  async function request(method: "GET" | "POST", url: string, call: Call = {}): Promise<Answer> {
    const presented = call.key === undefined ? key : call.key;
    const response = await app.inject({
      method,
      url,
      headers: {
        ...(method === "POST" && { "content-type": "application/json" }),
        ...(presented !== null && { authorization: `Bearer ${presented}` }),
        ...call.headers,
      },
      ...(method === "POST" && { payload: call.raw ?? JSON.stringify(call.body ?? {}) }),
    });
    const body: unknown =
      response.body === "" ? null : isJson(String(response.headers["content-type"])) ? response.json() : response.body;
    return { status: response.statusCode, headers: response.headers, body };
  }
  return {
    app,
    testDatabase,
    database: testDatabase.database,
    organizationId,
    adminKey: key,
    templates,
    request,
    get: (url, call) => request("GET", url, call),
    post: (url, body, call) => request("POST", url, { ...call, body }),
    another,
    async close() {
      for (const each of apps) await each.close();
      await templates.close();
      await testDatabase.close();
    },
  };
}
