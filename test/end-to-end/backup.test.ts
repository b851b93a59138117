import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "../database.ts";
import { startServerProcess, type ServerProcess } from "../server-process.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, untilOver, type World } from "../world.ts";
import { waitingScript } from "./script.ts";

const main = join(import.meta.dirname, "../../src/main.ts");
let world: World;
let folder: string;
let target: TestDatabase;
const servers: ServerProcess[] = [];
/** Whether the server of a session at work was killed. */
let isKilled: boolean;

beforeEach(async () => {
  isKilled = false;
  world = await createWorld(
    waitingScript(() => isKilled),
    { embedded: true },
  );
  target = await createEmptyDatabase();
  folder = await mkdtemp(join(tmpdir(), "offstage-backup-"));
  await chmod(folder, 0o755);
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill("SIGTERM");
  await target.close();
  await rm(folder, { recursive: true, force: true });
  await world.close();
});

const fast = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" };

async function start(overrides: Record<string, string> = {}): Promise<ServerProcess> {
  const server = await startServerProcess(world, { ...fast, ...overrides });
  servers.push(server);
  return server;
}

function command(argv: readonly string[], variables: Record<string, string> = {}) {
  const child = spawn(process.execPath, [main, ...argv], {
    env: { ...world.variables, ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise<{ code: number | null; said: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, said })),
  );
  return { ended, kill: () => child.kill("SIGKILL") };
}

/** A session that is at work until its server is killed, and its repository. */
async function sessionAtWork(server: ServerProcess, name: string): Promise<string> {
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
  const prompt = "write one.txt: first, then shell sleep 600, then write two.txt: second";
  const { id } = await server.client.session.create({ prompt, repositories: [url] });
  for await (const event of server.client.streamEvents(id)) if (event.type === "agent.tool") break;
  return id;
}

async function expectOnePullRequest(server: ServerProcess, id: string, name: string): Promise<void> {
  expect(await untilOver(server.client, id)).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  const patch = (await server.client.session.diff(id)).repositories[0]?.patch ?? "";
  expect(patch).toContain("+first");
  expect(patch).toContain("+second");
}

test("a backup taken while a session runs is restored elsewhere, where the session goes on to one pull request", async () => {
  const server = await start();
  const id = await sessionAtWork(server, "carried");
  const file = join(folder, "all.backup");
  const { code, said } = await command(["backup", file]).ended;
  expect(said).toContain("master key is not in it");
  expect(said).toContain(join(world.data, "master.key"));
  expect(code).toBe(0);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await server.kill("SIGKILL");
  isKilled = true;

  const elsewhere = { OFFSTAGE_DATA: join(folder, "data"), DATABASE_URL: target.url };
  expect((await command(["restore", file], elsewhere).ended).code).toBe(0);
  const { rows } = await target.database.pool.query("select status from session where id = $1", [id]);
  expect(rows).toEqual([{ status: "running" }]);
  const again = await command(["restore", file], elsewhere).ended;
  expect(again).toMatchObject({ code: 1, said: expect.stringContaining("not empty") as string });

  const restored = await start(elsewhere);
  await expectOnePullRequest(restored, id, "carried");
  expect(restored.output()).not.toContain("Admin key");
});

test("a backup goes into an embedded database of its own, but into none that a server runs on", async () => {
  const server = await start();
  const file = join(folder, "all.backup");
  expect((await command(["backup", file]).ended).code).toBe(0);
  const onRunning = await command(["restore", file]).ended;
  expect(onRunning).toMatchObject({ code: 1, said: expect.stringContaining("in use by another") as string });
  const data = join(folder, "data");
  expect((await command(["restore", file, "--data", data]).ended).code).toBe(0);
  const restored = await start({ OFFSTAGE_DATA: data });
  expect(await restored.client.session.list()).toEqual({ sessions: [], nextCursor: null });
  // Both are of one history: the restored one knows of its restore.
  const { entries } = await restored.client.audit.list();
  expect(entries.map(({ action }) => action)).toContain("restore");
  expect(server.output()).toContain("answers at");
});

test("the embedded database moves to PostgreSQL once its server is stopped, sessions included", async () => {
  const server = await start();
  const id = await sessionAtWork(server, "moved");
  const refused = await command(["move", target.url]).ended;
  expect(refused).toMatchObject({ code: 1, said: expect.stringContaining("stop that one") as string });
  // Killed, it leaves its database running: that one is taken over, not mistaken for a server.
  await server.kill("SIGKILL");
  isKilled = true;
  const moved = await command(["move", target.url]).ended;
  expect(moved.said).toContain("DATABASE_URL");
  expect(moved.said).toContain(`OFFSTAGE_MASTER_KEY to the lines of ${join(world.data, "master.key")}`);
  expect(moved.code).toBe(0);
  const again = await command(["move", target.url]).ended;
  expect(again).toMatchObject({ code: 1, said: expect.stringContaining("not empty") as string });
  const now = await start({ DATABASE_URL: target.url });
  await expectOnePullRequest(now, id, "moved");
});

test("commands on a folder without a database say so and make none", async () => {
  const data = join(folder, "nothing");
  for (const argv of [
    ["backup", join(folder, "file")],
    ["move", target.url],
    ["keys", "list"],
    ["login-link"],
    ["secrets", "rotate"],
    ["replay", crypto.randomUUID()],
  ]) {
    const { code, said } = await command([...argv, "--data", data]).ended;
    expect(said).toContain("there is no database in");
    expect(code).toBe(1);
  }
  expect(existsSync(data)).toBe(false);
});

test("kill -9 in the middle of a backup or a restore leaves nothing that looks whole", async () => {
  const source = await createTestDatabase();
  try {
    const { pool } = source.database;
    await pool.query("insert into organization (id, name) values (gen_random_uuid(), 'default')");
    await pool.query(
      `insert into session (id, organization_id, title, description, status, branch_name)
       select gen_random_uuid(), id, '', '', 'completed', '' from organization`,
    );
    // So many that there is a middle.
    await pool.query(
      `insert into event (session_id, seq, type, data)
       select id, seq, 'notice', jsonb_build_object('text', repeat(md5(seq::text), 20)) from session, generate_series(1, 100000) seq`,
    );
    const untilCopies = (database: TestDatabase, direction: "to" | "from"): Promise<unknown> =>
      waitFor(async () => {
        const { rows } = await pool.query<{ tuples: string }>(
          "select tuples_processed as tuples from pg_stat_progress_copy where datname = $1 and command = $2",
          [/\/(test_\w+)\?/u.exec(database.url)?.[1], `COPY ${direction.toUpperCase()}`],
        );
        return Number(rows[0]?.tuples ?? 0) > 1_000;
      }, `rows are copied ${direction} the database`);
    const file = join(folder, "all.backup");
    const backup = command(["backup", file], { DATABASE_URL: source.url });
    await untilCopies(source, "to");
    backup.kill();
    await backup.ended;
    expect(existsSync(file)).toBe(false);
    expect((await readdir(folder)).every((name) => name.endsWith(".unfinished"))).toBe(true);

    expect((await command(["backup", file], { DATABASE_URL: source.url }).ended).code).toBe(0);
    const onTarget = { DATABASE_URL: target.url };
    const restore = command(["restore", file], onTarget);
    await untilCopies(target, "from");
    restore.kill();
    await restore.ended;
    await waitFor(async () => {
      const { rowCount } = await target.database.pool.query(
        "select 1 from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
      );
      return rowCount === 0;
    }, "the server has noticed");
    const { rowCount } = await target.database.pool.query(
      "select 1 from pg_class where relnamespace = 'public'::regnamespace",
    );
    expect(rowCount).toBe(0);
    const repeated = await command(["restore", file], onTarget).ended;
    expect(repeated.said).toContain("Restored 100");
    expect(repeated.code).toBe(0);
    const { rows } = await target.database.pool.query("select count(*)::integer as count from event");
    expect(rows).toEqual([{ count: 100_000 }]);
  } finally {
    await source.close();
  }
});

test("what was stored under a master key is read after a restore with that key, and with no other", async () => {
  const server = await start();
  const created = await fetch(`${server.url}/secret/create`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "TOKEN", value: "a-value-that-is-sealed", phases: ["agent"] }),
  });
  expect(created.status).toBe(200);
  const file = join(folder, "all.backup");
  expect((await command(["backup", file]).ended).code).toBe(0);
  await server.kill("SIGTERM");
  const key = (await readFile(join(world.data, "master.key"), "utf8")).trim();
  expect((await readFile(file)).includes(key)).toBe(false);
  const elsewhere = { OFFSTAGE_DATA: join(folder, "data"), DATABASE_URL: target.url };
  const { said } = await command(["restore", file], elsewhere).ended;
  expect(said).toContain(join(folder, "data", "master.key"));
  const without = await start(elsewhere);
  const lost = await without.client.session.create({ prompt: "say hello" });
  expect((await untilOver(without.client, lost.id)).failure?.code).toBe("secret_unavailable");
  const { events } = await without.client.session.events(lost.id);
  expect(events).toContainEqual(
    expect.objectContaining({
      type: "step.failed",
      data: expect.objectContaining({
        step: "prepare",
        failure: expect.objectContaining({ code: "secret_unavailable" }),
      }),
    }),
  );
  await without.kill("SIGTERM");
  const withKey = await start({ ...elsewhere, OFFSTAGE_MASTER_KEY: key });
  const { id } = await withKey.client.session.create({ prompt: "say hello" });
  expect((await untilOver(withKey.client, id)).status).toBe("completed");
});
