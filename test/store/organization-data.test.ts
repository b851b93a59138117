import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import {
  beginErasure,
  continueErasure,
  finishErasure,
  erasedTables,
  lastErasure,
  unfinishedErasures,
} from "../../src/store/organization-data/erase.ts";
import { countMarkedDays } from "../../src/store/insight/count.ts";
import { exportOrganization } from "../../src/store/organization-data/export.ts";
import {
  eventTable,
  organizationTables,
  sessionTable,
  tablesLeftOut,
  tablesOfSessions,
} from "../../src/store/organization-data/exported-tables.ts";
import { defaultOrganization } from "../../src/domain/people/organization.ts";
import { bootstrap } from "../../src/store/people/organizations.ts";
import { tarHeader } from "../../src/store/organization-data/tar.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { createPrincipalFinder } from "../../src/store/people/principals.ts";
import { appendAudit } from "../../src/store/requests/audit.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { createTestDatabase } from "../database.ts";
import { addOrganization, requireClaim, signInUser } from "./fixtures.ts";

let api: TestApp;
let database: Database;
let folder: string;

beforeAll(async () => {
  api = await createTestApp();
  ({ database } = api);
  folder = mkdtempSync(join(tmpdir(), "offstage-export-"));
});

afterAll(async () => {
  await api?.close();
  rmSync(folder, { recursive: true, force: true });
});

const { signal } = new AbortController();
const secretValue = "the-value-of-a-secret-4711";
const hookToken = "/services/T0/hook-token-0815";

interface Filled {
  readonly organizationId: string;
  readonly name: string;
  readonly key: string;
  readonly sessions: readonly string[];
}

/** An organization with something of each kind, in all of whose texts is the word. */
async function fill(word: string, events = 1_200): Promise<Filled> {
  const { pool } = database;
  const organizationId = await addOrganization(database);
  const { key } = await createKey(database, organizationId, { name: word, scopes: ["admin"] });
  const post = async (path: string, body: unknown) => {
    const answer = await api.post(path, body, { key });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const { id: repositoryId } = await post("/repository/create", { url: `https://git.example.com/acme/${word}` });
  const { id: automationId } = await post("/automation/create", {
    name: word,
    macro: "same",
    instructions: word,
    codeRepoIds: [repositoryId],
    triggers: [{ type: "webhook", verify: { type: "hmac", header: "X-Signature" }, secret: secretValue }],
  });
  await post(`/repository/${repositoryId}/automation-files`, { enabled: true });
  await pool.query(
    "insert into automation_file (repository_id, organization_id, path, problem) values ($1, $2, $3, $3)",
    [repositoryId, organizationId, word],
  );
  await post(`/automation/${automationId}/state/update`, { set: { seen: word } });
  await post("/secret/create", { name: "TOKEN", value: secretValue, repositoryId });
  await post("/registry/create", { kind: "npm", url: "https://npm.example/", scope: `@${word}`, token: secretValue });
  const credential = { type: "token", token: secretValue };
  await post("/connection/create", { kind: "gitea", name: word, webUrl: "https://git.example.com", credential });
  const { id: webhook } = await post("/webhook/create", { url: `https://hooks.example.com${hookToken}` });
  await post(`/webhook/${webhook}/test`, {});
  await pool.query(
    "insert into webhook_attempt (delivery_id, duration_ms, error) select id, 5, $2 from webhook_delivery where organization_id = $1",
    [organizationId, word],
  );
  await post(`/automation/${automationId}/trigger`, { word });
  const sessions: string[] = [];
  for (const queueRightAway of [false, false, true]) {
    const { id } = await post("/session/create", {
      prompt: word,
      codeRepoIds: [repositoryId],
      labels: [word],
      queueRightAway,
    });
    sessions.push(id);
  }
  const [ended = ""] = sessions;
  await pool.query("update session set status = 'completed', finished_at = now() where id = $1", [ended]);
  await pool.query(
    `insert into event (session_id, seq, type, data)
     select $1, seq, 'notice', jsonb_build_object('level', 'info', 'text', $2::text || seq) from generate_series(100, $3::integer) seq`,
    [ended, word, events + 99],
  );
  await pool.query("update session_repository set patch = $2, base_sha = $3 where session_id = $1", [
    ended,
    `--- a/${word}\n+++ b/${word}\n`,
    "0".repeat(40),
  ]);
  await pool.query("insert into session_reply (session_id, trigger_id, target) values ($1, $1, $2)", [
    ended,
    JSON.stringify({ service: "slack", channel: word, threadId: "1" }),
  ]);
  await pool.query("insert into session_gate (session_id, script, output) values ($1, $2, $2)", [ended, word]);
  await pool.query("insert into session_told (session_id, repository_id, connection_id) values ($1, $2, $2)", [
    ended,
    repositoryId,
  ]);
  await pool.query("insert into session_commit (session_id, position, sha) values ($1, 1, $2)", [
    ended,
    "1".repeat(40),
  ]);
  await pool.query(
    `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url)
     values (gen_random_uuid(), $1, $2, $3, $4, 'main', 1, 'https://git.example.com/1')`,
    [organizationId, ended, repositoryId, word],
  );
  await pool.query(
    "insert into checkpoint (session_id, content, sealed_key, master_key, bytes) values ($1, '{}', $2, 'm', 9)",
    [ended, secretValue],
  );
  await pool.query("insert into stored_object (key, bucket, bytes) values ($1, 'bucket', 9)", [`object-${word}`]);
  await pool.query(
    `insert into checkpoint_piece (session_id, id, position, sealed, object_key)
     select $1, gen_random_uuid(), 1, case when n > 1 then $3::bytea end, case when n = 1 then $2 end from generate_series(1, 120) n`,
    [ended, `object-${word}`, secretValue],
  );
  const more = [
    `insert into user_account (id, organization_id, issuer, subject, email, name, role)
     values (gen_random_uuid(), $1, 'https://id.example.com', $2, $2 || '@example.com', $2, 'member')`,
    `with made as (
       insert into forge_account (id, organization_id, user_id, kind, web_url, api_url, name, sealed, master_key, state)
       select gen_random_uuid(), $1, user_account.id, 'gitea', 'https://' || $2, 'https://' || $2, $2, '', 'm', 'ok'
       from user_account where organization_id = $1 limit 1 returning id)
     insert into forge_account_refusal (account_id, repository_id, words)
     select made.id, repository.id, $2 from made, repository where repository.organization_id = $1 limit 1`,
    `insert into browser_session (hash, organization_id, scopes, user_agent, expires_at)
     values (sha256($2::bytea), $1, '{admin}', $2, now() + interval '1 hour')`,
    "insert into login_link (hash, organization_id, scopes, expires_at) values (sha256(('l' || $2)::bytea), $1, '{admin}', now())",
    "insert into model_spend (organization_id, month, spent_usd) values ($1, '2026-01-01', length($2))",
    `insert into answer (organization_id, key, action, text, host)
     values ($1, $2, '{"kind": "service"}', $2, 'slack')`,
    "insert into arrival (id, organization_id, outcome, reason) values (gen_random_uuid(), $1, 'filtered', $2)",
    `with made as (
       insert into repository (id, organization_id, name, url, address_key)
       values (gen_random_uuid(), $1, $2, 'https://talk.example.com/' || $2, 'talk.example.com/' || $2) returning id),
     spoken as (
       insert into conversation (organization_id, repository_id, kind, number, state)
       select $1, id, 'issue', 1, '{}' from made returning id)
     insert into conversation_item (organization_id, conversation_id, key) select $1, id, $2 from spoken`,
    "insert into received_key (organization_id, scope, key, ledger_id) values ($1, $1, $2, $1)",
    "insert into idempotency (organization_id, key, request_hash, body) values ($1, $2, '', $2)",
    `insert into audit_entry (id, organization_id, actor, action, target, status, address)
     values (gen_random_uuid(), $1, 'command', 'test', $2, 200, '192.0.2.1')`,
  ];
  for (const sql of more) await pool.query(sql, [organizationId, word]);
  await pool.query(
    `insert into session_usage (session_id, organization_id, day, provider, model, input_tokens, output_tokens, cache_read_tokens,
       cache_write_tokens, reasoning_tokens, cost_usd) values ($1, $2, '2026-01-01', 'p', $3, 1, 2, 3, 4, 5, 0.25)`,
    [ended, organizationId, word],
  );
  await pool.query("insert into insight_kept_day (organization_id, day) values ($1, '2026-01-02')", [organizationId]);
  await countMarkedDays(database, signal);
  await pool.query("insert into model_hold (session_id, organization_id, held_usd) values ($1, $2, 1)", [
    ended,
    organizationId,
  ]);
  await pool.query("update job set session_id = $2 where organization_id = $1", [organizationId, ended]);
  return { organizationId, name: `organization ${organizationId}`, key, sessions };
}

/** Every row of every table as text, by table. */
async function everything(): Promise<Record<string, string[]>> {
  const { rows: tables } = await database.pool.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = current_schema() and tablename not in ('migration', 'sql_definition') order by 1",
  );
  const found: Record<string, string[]> = {};
  for (const { name } of tables) {
    const { rows } = await database.pool.query<{ line: string }>(`select t::text as line from "${name}" t order by 1`);
    found[name] = rows.map(({ line }) => line);
  }
  return found;
}

test("every column of every table is either exported or left out for a reason", async () => {
  const { rows } = await database.pool.query<{ table: string; columns: string[] }>(
    `select table_name as table, array_agg(column_name::text order by column_name) as columns from information_schema.columns
     where table_schema = current_schema() group by 1`,
  );
  const decided = new Map(
    [...organizationTables, sessionTable, ...tablesOfSessions, eventTable].map(({ table, columns, leftOut }) => [
      table,
      [...columns, ...Object.keys(leftOut)].toSorted(),
    ]),
  );
  const found = rows.map(({ table, columns }) => [
    table,
    tablesLeftOut[table] === undefined ? columns.toSorted() : "left out",
  ]);
  const leftOut = Object.keys(tablesLeftOut).map((table) => [table, "left out"]);
  expect(Object.fromEntries(found)).toEqual(Object.fromEntries([...decided, ...leftOut]));
});

test("an export has everything of one organization, nothing of another and no secret, and unpacks with tar", async () => {
  const mine = await fill("mineword");
  const other = await fill("otherword");
  const recordings = join(folder, "recordings");
  mkdirSync(recordings);
  for (const { sessions } of [mine, other]) writeFileSync(join(recordings, `${sessions[0]}.jsonl`), '{"recorded":1}\n');
  const parts: Buffer[] = [];
  const source = { database, organizationId: mine.organizationId, recordingsDirectory: recordings };
  let largest = 0;
  for await (const part of exportOrganization(source)) {
    parts.push(part);
    largest = Math.max(largest, part.length);
  }
  expect(largest).toBeLessThan(4 * 1024 * 1024);
  const archive = Buffer.concat(parts);
  const absent = ["otherword", other.organizationId, secretValue, hookToken, mine.key];
  expect(absent.filter((text) => archive.includes(text))).toEqual([]);
  const sealed = Buffer.from(secretValue).toString("hex");
  expect(archive.includes(sealed)).toBe(false);

  const unpacked = join(folder, "unpacked");
  mkdirSync(unpacked);
  execFileSync("tar", ["-x", "-C", unpacked], { input: archive });
  const linesOf = (table: string): Record<string, unknown>[] =>
    readdirSync(join(unpacked, table))
      .toSorted()
      .flatMap((name) =>
        readFileSync(join(unpacked, table, name), "utf8")
          .trimEnd()
          .split("\n"),
      )
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const manifest = JSON.parse(readFileSync(join(unpacked, "manifest.json"), "utf8"));
  expect(manifest).toMatchObject({
    format: "offstage-organization",
    version: 1,
    organization: { id: mine.organizationId, name: mine.name },
  });
  const end = JSON.parse(readFileSync(join(unpacked, "end.json"), "utf8"));
  expect(end).toMatchObject({ complete: true, diffs: 1, recordings: 1 });
  for (const [table, count] of Object.entries(end.rows)) {
    const lines = linesOf(table);
    expect([table, lines.length]).toEqual([table, count]);
    for (const line of lines) expect(manifest.tables[table].fields).toEqual(Object.keys(line));
  }
  expect(Object.keys(end.rows).toSorted()).toEqual(Object.keys(manifest.tables).toSorted());
  expect(linesOf("session").map(({ id }) => id)).toEqual(mine.sessions);
  const events = linesOf("event").filter(({ sessionId }) => sessionId === mine.sessions[0]);
  expect(events.filter(({ seq }) => (seq as number) >= 100).map(({ seq }) => seq)).toEqual(
    Array.from({ length: 1_200 }, (_, index) => index + 100),
  );
  const changed = linesOf("session_repository").find(({ diff }) => diff !== null);
  expect(readFileSync(join(unpacked, String(changed?.["diff"])), "utf8")).toContain("+++ b/mineword");
  expect(readdirSync(join(unpacked, "recordings"))).toEqual([`${mine.sessions[0]}.jsonl`]);
  expect(linesOf("webhook")).toMatchObject([{ host: "hooks.example.com" }]);
  expect(linesOf("webhook_delivery")[0]).toMatchObject({ attempts: [{ error: "mineword", durationMs: 5 }] });
});

test("a recording of many gigabytes is no reason to fail", () => {
  for (const bytes of [8 * 1024 ** 3 - 1, 8 * 1024 ** 3, 9 * 1024 ** 4 + 1]) {
    const { stdout } = spawnSync("tar", ["-t", "-v"], {
      input: tarHeader("recordings/a.jsonl", bytes, new Date()),
      encoding: "utf8",
    });
    expect(stdout).toMatch(new RegExp(` ${bytes} .*recordings/a.jsonl`, "u"));
  }
});

test("what was made after an export began is not in it", async () => {
  const { organizationId, key } = await fill("laterword", 1);
  const parts: string[] = [];
  const reading = exportOrganization({ database, organizationId, recordingsDirectory: null });
  parts.push(String((await reading.next()).value));
  const { body } = await api.post("/session/create", { prompt: "made meanwhile" }, { key });
  for await (const part of reading) parts.push(part.toString());
  expect(body.id).toMatch(/^[0-9a-f-]{36}$/u);
  expect(parts.join("")).toContain("laterword");
  expect(parts.join("")).not.toContain("made meanwhile");
});

test("an export with the API is an admin's, and is in the audit log", async () => {
  const { organizationId, key } = await fill("apiword", 1);
  const reader = await createKey(database, organizationId, { name: "reader", scopes: ["read", "write"] });
  expect((await api.get("/organization/export", { key: reader.key })).status).toBe(403);
  const response = await api.app.inject({ url: "/organization/export", headers: { authorization: `Bearer ${key}` } });
  expect(response.statusCode).toBe(200);
  expect(response.headers["content-type"]).toBe("application/x-tar");
  const names = execFileSync("tar", ["-t"], { input: response.rawPayload, encoding: "utf8" }).trim().split("\n");
  expect(names.at(0)).toBe("manifest.json");
  expect(names.at(-1)).toBe("end.json");
  const { body } = await api.get("/audit/list?action=exportOrganization&outcome=allowed", { key });
  expect(body.entries).toHaveLength(1);
});

test("a client that reads an export slowly does not keep the server from stopping", async () => {
  const own = await createTestApp();
  const { pool } = own.database;
  const organizationId = await addOrganization(own.database);
  const { key } = await createKey(own.database, organizationId, { name: "admin", scopes: ["admin"] });
  await pool.query(
    `insert into audit_entry (id, organization_id, actor, action, target, status)
     select gen_random_uuid(), $1, 'command', 'test', repeat(md5(n::text), 300), 200 from generate_series(1, 5000) n`,
    [organizationId],
  );
  await own.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = own.app.server.address() as { port: number };
  const request = get({ port, path: "/organization/export", headers: { authorization: `Bearer ${key}` } });
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  expect(answer.statusCode).toBe(200);
  const cut = once(answer, "error");
  await own.close();
  answer.resume();
  await cut;
});

test("large rows fill many pages, and each is in the export once", async () => {
  const { organizationId } = await fill("largeword", 1);
  const { rows } = await database.pool.query<{ id: string }>("select id from automation where organization_id = $1", [
    organizationId,
  ]);
  await database.pool.query(
    `insert into job (id, organization_id, automation_id, status, priority, payload)
     select gen_random_uuid(), $1, $2, 'completed', 5, jsonb_build_object('n', n, 'x', repeat('x', 500000))
     from generate_series(1, 60) n`,
    [organizationId, rows[0]?.id],
  );
  let text = "";
  for await (const part of exportOrganization({ database, organizationId, recordingsDirectory: null }))
    text += part.toString("latin1");
  const numbers = [...text.matchAll(/"payload":\{"n": ?(\d+)/gu)].map(([, n]) => Number(n));
  expect(numbers.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
});

test("every table that belongs to an organization is erased with it", async () => {
  const { rows } = await database.pool.query<{ table: string }>(
    `select table_name as table from information_schema.columns
     where table_schema = current_schema() and column_name = 'organization_id' and table_name <> 'erasure'`,
  );
  const withSession = new Set(["model_hold", "session_label", "session_usage"]);
  const expected = [...rows.map(({ table }) => table).filter((table) => !withSession.has(table)), "organization"];
  expect([...erasedTables].toSorted()).toEqual(expected.toSorted());
});

test("nothing is left of an erased organization but that it was, however often its erasure is killed", async () => {
  const kept = await fill("keptword", 10);
  await requireClaimOf(kept);
  const before = await everything();
  const erased = await fill("erasedword", 2_500);
  await expect(beginErasure(database, erased.organizationId, "another name")).rejects.toThrow(/to confirm/u);
  expect(await createPrincipalFinder(database)(erased.key)).not.toBeNull();
  await beginErasure(database, erased.organizationId, erased.name);
  expect(await createPrincipalFinder(database)(erased.key)).toBeNull();
  expect(await unfinishedErasures(database)).toEqual([erased.organizationId]);

  // Each time it gets one query further than the time before.
  let done = false;
  for (let queries = 1; !done; queries += 1) {
    expect(queries).toBeLessThan(300);
    done = await continueErasure(killedAfter(queries), erased.organizationId, signal).catch((error: unknown) => {
      if (error instanceof Killed) return false;
      throw error;
    });
  }
  const after = await everything();
  const left = Object.entries(after).flatMap(([table, lines]) =>
    lines.filter((line) => line.includes(erased.organizationId) || line.includes("erasedword")).map(() => table),
  );
  // The objects go when the object store has been swept.
  expect(left.toSorted()).toEqual(["audit_entry", "erasure", "stored_object"]);
  const { rows } = await database.pool.query(
    `select actor, action, key_id, user_id, address, organization_id from audit_entry where target = $1`,
    [erased.organizationId],
  );
  expect(rows).toEqual([
    {
      actor: "command",
      action: "organization erased",
      key_id: null,
      user_id: null,
      address: null,
      organization_id: null,
    },
  ]);
  expect(await unfinishedErasures(database)).toEqual([]);
  expect(await lastErasure(database)).not.toBeNull();
  const swept = await database.pool.query<{ old: boolean }>(
    "select used_at < now() - interval '2 hours' as old from stored_object where key = 'object-erasedword'",
  );
  expect(swept.rows).toEqual([{ old: true }]);
  // Positive control: what another organization has is as it was.
  for (const [table, lines] of Object.entries(before))
    expect([table, after[table]]).toEqual([table, expect.arrayContaining(lines)]);
});

test("a server starts again with the operator's key while the erasure is under way", async () => {
  const { database: other, close } = await createTestDatabase();
  const adminKey = "a-key-that-the-operator-chose";
  const { organizationId } = await bootstrap(other, { adminKey });
  await beginErasure(other, organizationId, defaultOrganization);
  const again = await bootstrap(other, { adminKey });
  expect(again).toMatchObject({ created: true });
  expect(await createPrincipalFinder(other)(adminKey)).toMatchObject({ organizationId: again.organizationId });
  expect(await continueErasure(other, organizationId, signal)).toBe(true);
  expect(await createPrincipalFinder(other)(adminKey)).toMatchObject({ organizationId: again.organizationId });
  await close();
});

test("what an erased organization asked last takes no other's entry of the audit log along", async () => {
  const kept = await addOrganization(database);
  const rest = { keyId: null, userId: null, target: null, status: 200, address: null, requestId: null };
  const entryOf = (organizationId: string | null) =>
    ({ organizationId, actor: "nobody", action: "audited together", ...rest }) as const;
  await appendAudit(database, [entryOf(kept), entryOf(crypto.randomUUID()), entryOf(null)]);
  const { rows } = await database.pool.query(
    "select organization_id as id from audit_entry where action = 'audited together' order by 1",
  );
  expect(rows).toEqual([{ id: kept }, { id: null }]);
});

test("a running session is cancelled first, and its worker ends it", async () => {
  const running = await fill("runningword", 1);
  const claimed = await requireClaimOf(running);
  await beginErasure(database, running.organizationId, running.name);
  expect(await continueErasure(database, running.organizationId, signal)).toBe(false);
  const { rows } = await database.pool.query(
    "select status, cancel_requested from session where organization_id = $1",
    [running.organizationId],
  );
  expect(rows).toEqual([{ status: "running", cancel_requested: true }]);
  // The worker dies, and its session is not ended.
  await database.pool.query("update session set lease_until = now() - interval '1 second' where id = $1", [
    claimed.sessionId,
  ]);
  // Again and again: the last write of when its key was used may still be under way.
  expect(await finishErasure(database, running.organizationId, signal)).toBe(true);
});

test("an erased user is gone: from their sessions, their keys and their provider's id", async () => {
  const { organizationId, key, sessions } = await fill("personword", 1);
  const identity = {
    issuer: "https://id.example",
    subject: "ada-of-example",
    name: "Ada",
    login: null,
    organizations: [],
  };
  const signIn = (role: "admin" | "member") =>
    signInUser(database, organizationId, { ...identity, email: "ada@example.com" }, role);
  const ada = await signIn("admin");
  const theirs = await createKey(database, organizationId, { name: "laptop", scopes: ["read"], userId: ada?.id });
  await database.pool.query("update session set requested_by = $2 where id = $1", [sessions[0], ada?.id]);
  expect((await api.get(`/session/${sessions[0]}`, { key })).body.requestedBy.name).toBe("Ada");
  expect(await api.post(`/user/${ada?.id}/erase`, {}, { key })).toMatchObject({ status: 409 });
  await database.pool.query("update user_account set role = 'member' where id = $1", [ada?.id]);

  const { status, body } = await api.post(`/user/${ada?.id}/erase`, {}, { key });
  expect(status).toBe(200);
  expect(body).toMatchObject({ id: ada?.id, name: "deleted user", email: null, issuer: "" });
  expect((await api.get(`/session/${sessions[0]}`, { key })).body.requestedBy.name).toBe("deleted user");
  expect(await createPrincipalFinder(database)(theirs.key)).toBeNull();
  const { rows } = await database.pool.query<{ line: string }>(
    "select u::text as line from user_account u where id = $1",
    [ada?.id],
  );
  for (const word of ["Ada", "ada@", "ada-of", "id.example"]) expect(rows[0]?.line).not.toContain(word);
  expect((await signIn("member"))?.id).not.toBe(ada?.id);
});

class Killed extends Error {}

/** The database, until it was asked so often. */
function killedAfter(queries: number): Database {
  let left = queries;
  const counted = <T extends object>(queryable: T): T =>
    new Proxy(queryable, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (name !== "query") return typeof value === "function" ? value.bind(target) : value;
        return (...given: unknown[]) => {
          if ((left -= 1) < 0) throw new Killed();
          return (value as (...all: unknown[]) => unknown).apply(target, given);
        };
      },
    });
  return {
    ...database,
    pool: counted(database.pool),
    transaction: (work) => database.transaction((transaction) => work(counted(transaction))),
  };
}

async function requireClaimOf({ organizationId, sessions }: Filled) {
  await database.pool.query("update session set priority = 0 where id = $1", [sessions.at(-1)]);
  for (;;) {
    const claimed = await requireClaim(database, {});
    if (claimed.organizationId === organizationId) return claimed;
  }
}
