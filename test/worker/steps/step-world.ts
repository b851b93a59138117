import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../../../src/config/config.ts";
import type { Database } from "../../../src/database/database.ts";
import { createMask } from "../../../src/domain/masking/mask.ts";
import type { SessionRequest } from "../../../src/domain/sessions/new-session.ts";
import { createForges, type Forges } from "../../../src/forges/forges.ts";
import { createMetrics } from "../../../src/metrics/metrics.ts";
import { createLogger } from "../../../src/observability.ts";
import { createUnsandboxed } from "../../../src/sandboxes/none.ts";
import { createRepository } from "../../../src/store/repositories/repositories.ts";
import { fileKeyring } from "../../../src/store/secrets/keyring.ts";
import { createVault } from "../../../src/store/secrets/vault.ts";
import { noTraces } from "../../../src/traces.ts";
import { beginAttempt, type Attempt, type AttemptServices } from "../../../src/worker/attempt/attempt.ts";
import { createSharedCheckouts } from "../../../src/worker/checkouts/shared-checkouts.ts";
import { createSessionFolders } from "../../../src/worker/disk/session-folders.ts";
import { createMirrors } from "../../../src/worker/git/mirrors/mirrors.ts";
import { createTestDatabase } from "../../database.ts";
import { startForge, type TestForge } from "../../forge/server.ts";
import { addOrganization, addSession, requireClaim } from "../../store/fixtures.ts";

/** What the steps between the claim and the turns, and after them, take of a worker's services. */
export type StepServices = Pick<
  AttemptServices,
  | "workerId"
  | "database"
  | "vault"
  | "objects"
  | "metrics"
  | "traces"
  | "folders"
  | "mirrors"
  | "checkouts"
  | "sandbox"
  | "limits"
  | "author"
  | "committer"
  | "signer"
  | "providers"
  | "forgeOf"
  | "repositoryKeyOf"
  | "forks"
  | "devcontainerImages"
  | "checkpointBytes"
  | "publicUrl"
  | "diskIsFull"
  | "ownDiskIsFull"
>;

/** A database, a forge with one repository, and workers that have a data folder each. */
export interface StepWorld {
  readonly database: Database;
  readonly forge: TestForge;
  /** A worker's services, with a data folder of its own. */
  worker(id: string): StepServices;
  /** A claimed session on the repository, or on none. */
  begin(request?: Partial<SessionRequest>): Promise<Attempt>;
  /** The next attempt at a session, as another claim makes it. */
  again(attempt: Attempt, worker: string): Promise<Attempt>;
  /** The repository on the forge. */
  git(...parameters: string[]): string;
  /** The types of a session's events, with the words of its notices; how far a fetch is, only a slow machine says. */
  events(attempt: Attempt): Promise<string[]>;
  close(): Promise<void>;
}

/** @param secrets values that the server's mask hides */
export async function createStepWorld(secrets: readonly string[] = []): Promise<StepWorld> {
  const data = await mkdtemp(join(tmpdir(), "offstage-steps-"));
  const testDatabase = await createTestDatabase();
  const { database } = testDatabase;
  const forge = await startForge();
  const { url } = await forge.createRepository("acme", "app", { "README.md": "An app\n" });
  const forges: Forges = createForges([
    { kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token },
  ]);
  const organizationId = await addOrganization(database);
  const input = { url, key: url.replace("http://", ""), name: "acme/app", branch: null, description: null };
  const repository = await createRepository(database, organizationId, input);
  const mask = createMask(secrets);
  const logger = createLogger("silent");
  const signal = new AbortController().signal;
  return {
    database,
    forge,
    worker(id) {
      const folder = join(data, id);
      const sandbox = createUnsandboxed();
      return {
        workerId: id,
        database,
        vault: createVault(fileKeyring(join(data, "master.key"))),
        objects: null,
        metrics: createMetrics(),
        traces: noTraces,
        folders: createSessionFolders(folder),
        mirrors: createMirrors({ dataDirectory: folder, allowLocalRepositories: false }),
        checkouts: createSharedCheckouts({ dataDirectory: folder, asked: "auto", sandbox }),
        sandbox,
        limits: readConfig({}).limits,
        author: { name: "Offstage", email: "offstage@localhost" },
        committer: { name: "Offstage", email: "offstage@localhost" },
        signer: null,
        providers: [],
        forgeOf: forges.forgeOf,
        repositoryKeyOf: forges.keyOf,
        forks: false,
        devcontainerImages: [],
        checkpointBytes: 2 ** 30,
        publicUrl: () => "https://offstage.example",
        diskIsFull: () => Promise.resolve(false),
        ownDiskIsFull: () => Promise.resolve(false),
      };
    },
    async begin(request = {}) {
      const { id } = await addSession(database, organizationId, {
        repositories: [repository],
        ...request,
      });
      const session = await requireClaim(database);
      if (session.sessionId !== id) throw new Error("claimed another session");
      return beginAttempt({ session, signal, logger }, { database, mask });
    },
    async again({ session: { sessionId } }, worker) {
      await database.pool.query(
        "update session set status = 'queued', worker = null, lease_until = null where id = $1",
        [sessionId],
      );
      const session = await requireClaim(database, { worker });
      return beginAttempt({ session, signal, logger }, { database, mask });
    },
    git: (...parameters) =>
      execFileSync("git", ["-C", forge.pathOf("acme", "app"), ...parameters], { encoding: "utf8" }).trim(),
    async events({ session: { sessionId } }) {
      const { rows } = await database.pool.query<{ line: string }>(
        `select concat_ws(' ', type, data ->> 'step', data ->> 'text', data -> 'failure' ->> 'code') as line from event
         where session_id = $1 and type not in ('session.created', 'session.status', 'message.user', 'step.progress') order by seq`,
        [sessionId],
      );
      return rows.map(({ line }) => line);
    },
    async close() {
      await forge.close();
      await testDatabase.close();
      await rm(data, { recursive: true, force: true });
    },
  };
}
