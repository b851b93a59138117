import { createApp } from "../../src/api/app.ts";
import { checkInstructions, renderInstructions } from "../../src/domain/template.ts";
import { createLogger } from "../../src/observability.ts";
import { bootstrap } from "../../src/store/organizations.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

export interface TestApp {
  readonly app: Awaited<ReturnType<typeof createApp>>;
  readonly testDatabase: TestDatabase;
  readonly organizationId: string;
  readonly adminKey: string;
  request(method: "GET" | "POST", url: string, call?: Call): Promise<Answer>;
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

type Options = Partial<Parameters<typeof createApp>[0]>;

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
    isDefault: true,
  };
  const app = await createApp({
    database: testDatabase.database,
    logger: createLogger("silent"),
    publicUrl: () => "http://offstage.test",
    sandboxed: true,
    allowLocalRepositories: false,
    rateLimitPerMinute: 10_000,
    defaultAgent: () => Promise.resolve("opencode:m"),
    agents: () => Promise.resolve([agent]),
    integrationOf: () => undefined,
    renderInstructions,
    checkInstructions,
    webDirectory: null,
    ready: () => Promise.resolve(true),
    ...options,
  });
  return {
    app,
    testDatabase,
    organizationId,
    adminKey: key,
    async request(method, url, call = {}) {
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
      const body: unknown = response.body === "" ? null : response.json();
      return { status: response.statusCode, headers: response.headers, body };
    },
    async close() {
      await app.close();
      await testDatabase.close();
    },
  };
}
