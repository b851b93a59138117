import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Client } from "../src/client.ts";
import { readConfig } from "../src/config/config.ts";
import type { SessionDetail } from "../src/domain/sessions/session.ts";
import { createLogger } from "../src/observability.ts";
import { startOffstage, type Offstage } from "../src/server/offstage.ts";
import { removeFolder } from "../src/worker/disk/remove-folder.ts";
import { createTestDatabase } from "./database.ts";
import { startForge, type TestForge } from "./forge/server.ts";
import { startModelServer, type ModelServer, type Script } from "./model/server.ts";
import { testEnvironment } from "./test-environment.ts";

export const adminKey = "test-admin-key-0123456789abcdefghijklmnop";
export const modelKey = "sk-model-key-that-must-not-leak";

/** Everything real around one Offstage: database, forge, model, sandbox, harness. */
export interface World {
  readonly data: string;
  readonly forge: TestForge;
  readonly model: ModelServer;
  /** What `readConfig` or a child process gets. */
  readonly variables: Record<string, string>;
  close(): Promise<void>;
}

/** @param options `embedded`: with the product's own database below `data`, outside of the test runner too */
export async function createWorld(script: Script, options: { readonly embedded?: boolean } = {}): Promise<World> {
  const data = await mkdtemp(join(tmpdir(), "offstage-test-"));
  // The embedded database's unprivileged user must be able to pass.
  await chmod(data, 0o755);
  const forge = await startForge();
  const model = await startModelServer({ script });
  const database = options.embedded === true ? null : await createTestDatabase();
  await database?.database.close();
  const forges = [{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }];
  return {
    data,
    forge,
    model,
    variables: {
      ...testEnvironment(),
      ...(database !== null && { DATABASE_URL: database.url }),
      OFFSTAGE_DATA: data,
      OFFSTAGE_PORT: "0",
      OFFSTAGE_ADMIN_KEY: adminKey,
      OFFSTAGE_FORGES: JSON.stringify(forges),
      OFFSTAGE_MODEL_BASE_URL: `${model.url}/v1`,
      OFFSTAGE_MODEL_API_KEY: modelKey,
      OFFSTAGE_MODEL: "scripted",
      OFFSTAGE_DEFAULT_AGENT: "opencode:scripted",
      // Tests ask many times a second whether something has happened.
      OFFSTAGE_RATE_LIMIT_PER_MINUTE: "100000",
      OFFSTAGE_LEASE_SECONDS: "3",
      OFFSTAGE_DRAIN_SECONDS: "1",
      // What makes sandboxes ready in the background takes the processor from other tests: those of it ask for it.
      OFFSTAGE_WARM: "0",
      OFFSTAGE_LOG_LEVEL: "warn",
      // How clones get their files, for a run of the suites in another way than this machine's best.
      ...(process.env["OFFSTAGE_WORKSPACES"] !== undefined && {
        OFFSTAGE_WORKSPACES: process.env["OFFSTAGE_WORKSPACES"],
      }),
    },
    async close() {
      await model.close();
      await forge.close();
      await database?.close();
      // A worker that was killed, and whose node never started again, leaves the overlays of its workspaces mounted.
      await removeFolder(data);
    },
  };
}

/** Offstage inside the test's own process. */
export async function startInProcess(
  world: World,
  overrides: Record<string, string> = {},
): Promise<{ offstage: Offstage; client: Client }> {
  const config = readConfig({ ...world.variables, ...overrides });
  const offstage = await startOffstage(config, createLogger(config.logLevel));
  return { offstage, client: createClient({ baseUrl: offstage.url, key: adminKey }) };
}

/** What a session's notices say, in their order. */
export async function noticesOf(client: Client, id: string): Promise<string[]> {
  const { events } = await client.session.events(id, { limit: 1_000 });
  return events.flatMap((event) => (event.type === "notice" ? [event.data.text] : []));
}

/** Follows a session's events until it is over, and returns it as it is then. */
export async function untilOver(client: Client, id: string): Promise<SessionDetail> {
  for await (const event of client.streamEvents(id, {})) void event;
  return client.session.get(id);
}
