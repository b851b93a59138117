import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { openDatabase, type Database } from "../src/database/database.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { newSession, type NewSession } from "../src/domain/sessions/new-session.ts";
import { createLogger } from "../src/observability.ts";
import { bootstrap } from "../src/store/people/organizations.ts";
import { createBatchedInserts } from "../src/store/sessions/batched-inserts.ts";
import { createSession } from "../src/store/sessions/new-session.ts";
import { load, machine, summarize, table } from "./measure.ts";

/**
 * The store's one statement beside the same rows in a transaction of single statements, and beside the session and one
 * event alone: the same tables, over the same pool, interleaved. No HTTP.
 *
 *   npm run bench:creation-store
 */
const rounds = 6;
const roundMs = 2_000;
const connections = 50;

const session = (): NewSession => newSession({ prompt: "Fix the test", repositories: [], sandboxed: true });

const insertSession = {
  name: "bare_session",
  text: `insert into session (id, organization_id, title, description, prompt, status, branch_name, priority, sandboxed,
    last_event, queued_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now())`,
};
const insertEvent = {
  name: "bare_event",
  text: "insert into event (session_id, seq, type, data) values ($1, $2, $3, $4)",
};
const insertMessage = {
  name: "bare_message",
  text: "insert into message (id, session_id, position, text) values ($1, $2, 1, $3)",
};

/** BEGIN, the inserts, COMMIT. @param all every row that the store writes, else the session and its first event */
function transaction(pool: pg.Pool, organizationId: string, all: boolean): () => Promise<void> {
  return async () => {
    const one = session();
    const client = await pool.connect();
    try {
      const { id, title, description, prompt, status, branchName, priority, sandboxed, message } = one;
      const events = all ? 2 : 1;
      await client.query("begin");
      await client.query({
        ...insertSession,
        values: [id, organizationId, title, description, prompt, status, branchName, priority, sandboxed, events],
      });
      await client.query({ ...insertEvent, values: [id, 1, "session.created", JSON.stringify({ title })] });
      if (all) {
        const data = JSON.stringify({ messageId: id, text: message, from: null });
        await client.query({ ...insertEvent, values: [id, 2, "message.user", data] });
        await client.query({ ...insertMessage, values: [id, id, message] });
      }
      await client.query("commit");
    } finally {
      client.release();
    }
  };
}

const logger = createLogger("error");
const folder = await mkdtemp(join(tmpdir(), "offstage-creation-"));
// The unprivileged user that the database runs as under root must be able to pass.
await chmod(folder, 0o755);
const server = await startEmbeddedServer({ directory: join(folder, "postgres"), logger });
try {
  const own = await openDatabase({ url: server.url, directory: "", logger });
  const { organizationId } = await bootstrap(own, { adminKey: null });
  const pool = new pg.Pool({ connectionString: server.url, max: connections });
  // The service's own pool has fewer connections: all ways get the same.
  const database: Database = { ...own, pool };
  const inserts = createBatchedInserts(database);
  const ways: Record<string, () => Promise<void>> = {
    "BEGIN, session, event, COMMIT": transaction(pool, organizationId, false),
    "BEGIN, all four rows, COMMIT": transaction(pool, organizationId, true),
    "createSession, all four rows": async () => void (await createSession(database, organizationId, session())),
    "in batches, all four rows": async () => void (await inserts.createSession(organizationId, session())),
  };
  const took: Record<string, number[]> = {};
  for (let round = -1; round < rounds; round += 1) {
    for (const [name, work] of Object.entries(ways)) {
      const all = await load(work, { concurrency: connections, durationMs: round < 0 ? 500 : roundMs });
      // The first round warms up.
      if (round >= 0) (took[name] ??= []).push(...all);
    }
  }
  const measured = Object.entries(took).map(([name, all]) => ({ name, ...summarize(all, rounds * roundMs) }));
  const bare = measured[0]?.perSecond ?? Number.NaN;
  const lines = measured.map((one) => [
    one.name,
    one.perSecond.toFixed(0),
    (one.perSecond / bare).toFixed(2),
    one.p50Ms.toFixed(2),
    one.p99Ms.toFixed(2),
  ]);
  const head = [`${connections} connections`, "per second", "of the first", "p50 ms", "p99 ms"];
  process.stdout.write(`${machine()}\n\n${table(head, lines)}`);
  await pool.end();
  await own.close();
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
