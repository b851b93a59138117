import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import { readConfig } from "../../src/config/config.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { createAttemptServices } from "../../src/server/attempt-services.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { createForgeReach, openForges } from "../../src/server/open-forges.ts";
import { createAgentRegistry } from "../../src/server/agent-registry.ts";
import { createSandbox } from "../../src/server/create-sandbox.ts";
import { openVault } from "../../src/server/open-stores.ts";
import { noTraces } from "../../src/traces.ts";
import { pruneWorkspaces } from "../../src/worker/background/prune-workspaces.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let offstage: Offstage;
let client: Client;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_RECORD: "true",
  }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

const prune = (days: number): Promise<number> => {
  const config = readConfig(world.variables);
  const { database } = offstage;
  const [logger, vault] = [createLogger("warn"), openVault(config)];
  const services = createAttemptServices(config, {
    database,
    logger,
    metrics: createMetrics(),
    traces: noTraces,
    vault,
    sandbox: createSandbox(config),
    providers: createAgentRegistry(config),
    forges: openForges(config, { database, vault, logger, reach: createForgeReach(config) }),
    publicUrl: () => "",
    workerId: "test",
  });
  return pruneWorkspaces(services, days, new AbortController().signal);
};

const folderOf = (id: string): string => join(world.data, "sessions", id);
const pins = (id: string): string[] =>
  readdirSync(join(world.data, "mirrors")).flatMap((mirror) =>
    execFileSync("git", ["-C", join(world.data, "mirrors", mirror), "for-each-ref", `refs/offstage/${id}/`], {
      encoding: "utf8",
    })
      .split("\n")
      .filter((line) => line !== ""),
  );
const age = (id: string): Promise<unknown> =>
  offstage.database.pool.query("update session set finished_at = now() - interval '20 days' where id = $1", [id]);

test("what was over for long is removed with its pins, and a follow-up works all the same", async () => {
  const { url } = await world.forge.createRepository("acme", "kept", { "README.md": "# Before\n" });
  const old = await client.session.create({ prompt: "write a.txt: alpha", repositories: [url] });
  const fresh = await client.session.create({ prompt: "write b.txt: beta", repositories: [url] });
  for (const { id } of [old, fresh]) await untilOver(client, id);
  await age(old.id);
  expect(pins(old.id)).not.toEqual([]);
  expect(await prune(14)).toBe(1);
  expect(existsSync(folderOf(old.id))).toBe(false);
  expect(pins(old.id)).toEqual([]);
  expect(existsSync(folderOf(fresh.id))).toBe(true);
  expect(pins(fresh.id)).not.toEqual([]);

  await client.session.message(old.id, { message: "write c.txt: gamma" });
  expect(await untilOver(client, old.id)).toMatchObject({ status: "completed", failure: null });
  const { patch } = (await client.session.diff(old.id)).repositories[0] ?? { patch: "" };
  expect(patch).toContain("+alpha");
  expect(patch).toContain("+gamma");
  expect(await world.forge.pullRequests("acme", "kept")).toHaveLength(2);
});

test("what is at work, waits or is queued is left alone, however old", async () => {
  const { id } = await client.session.create({ prompt: "shell sleep 2, then say done" });
  for await (const event of client.streamEvents(id, {})) if (event.type === "agent.tool") break;
  await offstage.database.pool.query(
    "update session set created_at = now() - interval '90 days', updated_at = now() - interval '90 days' where id = $1",
    [id],
  );
  await prune(1);
  expect(existsSync(folderOf(id))).toBe(true);
  expect((await untilOver(client, id)).status).toBe("completed");
});

test("what a killed replay or an interrupted removal left goes too", async () => {
  const left = [folderOf(`replay-${crypto.randomUUID()}`), folderOf(`removed-${crypto.randomUUID()}`)];
  for (const folder of left) await mkdir(join(folder, "workspace"), { recursive: true });
  // One that was made just now may be at work.
  expect(await prune(14)).toBe(1);
  const yesterday = new Date(Date.now() - 2 * 24 * 60 * 60 * 1_000);
  for (const folder of left.filter((path) => existsSync(path))) {
    for (const path of [join(folder, "workspace"), folder]) await utimes(path, yesterday, yesterday);
  }
  expect(await prune(14)).toBe(1);
  expect(left.filter((folder) => existsSync(folder))).toEqual([]);
});

/** Tables with rows of a session, and how many. */
async function rowsOf(id: string): Promise<Record<string, number>> {
  const { pool } = offstage.database;
  const { rows: tables } = await pool.query<{ name: string; column: string }>(
    `select table_name as name, column_name as column from information_schema.columns
     where table_schema = current_schema() and (column_name = 'session_id' or (table_name = 'session' and column_name = 'id'))`,
  );
  const counts: Record<string, number> = {};
  for (const { name, column } of tables) {
    const { rowCount } = await pool.query(`select from ${name} where ${column} = $1`, [id]);
    if (rowCount !== null && rowCount > 0) counts[name] = rowCount;
  }
  return counts;
}

test("a deleted session is gone with all that there was of it, and what refers to it stays readable", async () => {
  const { url } = await world.forge.createRepository("acme", "deleted", { "README.md": "# Before\n" });
  await client.automation.create({
    name: "Delete",
    macro: "delete",
    instructions: "write a.txt: a, then shell sleep {{ event.seconds }}",
    repositories: [url],
  });
  const job = await client.automation.trigger("delete", { seconds: 600 });
  const id = await waitFor(async () => (await client.job.get(job.id)).sessionId, "the job has its session");
  await waitFor(async () => (await client.session.get(id)).status === "running", "it runs");
  await expect(client.session.delete(id)).rejects.toMatchObject({
    status: 409,
    message: `session ${id} is running: cancel it first`,
  });
  await client.session.cancel(id);
  await untilOver(client, id);
  await client.session.message(id, { message: "write b.txt: b" });
  expect((await untilOver(client, id)).pullRequests).toHaveLength(1);
  const recording = join(world.data, "recordings", `${id}.jsonl`);
  const isThere = (): boolean[] => [existsSync(folderOf(id)), existsSync(recording), pins(id).length > 0];
  expect(isThere()).toEqual([true, true, true]);
  expect(Object.keys(await rowsOf(id))).toEqual(
    expect.arrayContaining(["session", "event", "message", "session_repository", "pull_request", "job", "checkpoint"]),
  );
  await client.session.delete(id);
  expect(await rowsOf(id)).toEqual({});
  await expect(client.session.get(id)).rejects.toMatchObject({ status: 404 });
  await expect(client.session.delete(id)).rejects.toMatchObject({ status: 404 });
  await waitFor(() => isThere().every((there) => !there), "the worker has removed its files");
  expect(await client.job.get(job.id)).toMatchObject({ status: "completed", sessionId: null });
  expect((await client.ledger.list()).entries[0]).toMatchObject({ outcome: expect.any(String) as string });
  expect((await client.audit.list()).entries.filter(({ action }) => action === "deleteSession")).toEqual(
    expect.arrayContaining([expect.objectContaining({ outcome: "allowed", target: id })]),
  );
});

// The last test: nothing of the organization is left for another.
test("an erased organization leaves nothing on a worker's disk, whatever ran", async () => {
  const { url } = await world.forge.createRepository("acme", "erased", { "README.md": "# Before\n" });
  const ended = await client.session.create({ prompt: "write a.txt: a", repositories: [url] });
  await untilOver(client, ended.id);
  const running = await client.session.create({ prompt: "shell sleep 600", repositories: [url] });
  await waitFor(async () => existsSync(folderOf(running.id)), "it runs");
  const folder = (name: string): string[] =>
    existsSync(join(world.data, name)) ? readdirSync(join(world.data, name)) : [];
  const onDisk = (): string[] => ["sessions", "mirrors", "recordings", "environments"].flatMap(folder);
  expect(onDisk()).toEqual(expect.arrayContaining([ended.id, running.id, `${ended.id}.jsonl`]));
  expect(folder("mirrors")).not.toEqual([]);

  const erase = (name: string): Promise<Response> =>
    fetch(`${offstage.url}/organization/erase`, {
      method: "POST",
      headers: { authorization: `Bearer ${adminKey}` },
      body: JSON.stringify({ name }),
    });
  expect((await erase("defualt")).status).toBe(400);
  expect((await client.session.get(running.id)).status).toBe("running");
  expect((await erase("default")).status).toBe(200);
  await expect(client.session.get(ended.id)).rejects.toMatchObject({ status: 401 });
  const { pool } = offstage.database;
  const isGone = async (): Promise<boolean> => (await pool.query("select from organization")).rowCount === 0;
  await waitFor(isGone, "the organization is gone");
  await waitFor(() => onDisk().length === 0, "nothing is on the disk");
  expect(await rowsOf(ended.id)).toEqual({});
});
