import { afterAll, beforeAll, expect, test } from "vitest";
import { openDatabase } from "../../src/database/database.ts";
import { createLogger } from "../../src/observability.ts";
import { countWithWords, searchSessions } from "../../src/store/sessions/search.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession } from "./fixtures.ts";

let testDatabase: TestDatabase;
let organization: string;

/**
 * Number 1 is the oldest. Most of the newest have "often"; the oldest ones "seldom", too many for the index to be sorted
 * "crowd". The second runs. "occasionally" stands in every 300th, "lately" in four of the newest alone.
 */
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  organization = await addOrganization(testDatabase.database);
  await testDatabase.database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, created_at)
     select gen_random_uuid(), $1, 'number' || n,
       case when n <= 3 then 'seldom words' when n > 8000 then 'often' else 'crowd' end || ' worded'
         || case when n % 300 = 0 then ' occasionally' else '' end || case when n % 100 = 0 and n > 9100 then ' lately' else '' end,
       case when n = 2 then 'running' else 'completed' end, 'b',
       now() - interval '1 day' + n * interval '1 second'
     from generate_series(1, 9500) n`,
    [organization],
  );
});

afterAll(() => testDatabase?.close());

async function search(
  q: string,
  query: { limit?: number; cursor?: string; requestedBy?: string } = {},
): Promise<string[]> {
  const { items } = await searchSessions(testDatabase.database, organization, q, { limit: 2, ...query });
  return items.map(({ title }) => title);
}

test("words of the newest sessions are found among those", async () => {
  expect(await search("often")).toEqual(["number9500", "number9499"]);
});

test("words of old sessions alone are found, newest first", async () => {
  expect(await search("seldom")).toEqual(["number3", "number2"]);
});

test("words of so many old sessions that they aren't sorted are found, newest first", async () => {
  expect(await search("crowd")).toEqual(["number8000", "number7999"]);
});

test("words of a session now and then are found further on, newest first", async () => {
  const found = await search("occasionally", { limit: 5 });
  expect(found).toEqual(["number9300", "number9000", "number8700", "number8400", "number8100"]);
});

test("words of a few new sessions alone are all that is found", async () => {
  expect(await search("lately", { limit: 5 })).toEqual(["number9500", "number9400", "number9300", "number9200"]);
});

test("a search goes on after the last page, from one way of finding to another", async () => {
  const query = { limit: 100 };
  const found: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await searchSessions(testDatabase.database, organization, "se", { ...query, cursor });
    found.push(...page.items.map(({ title }) => title));
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  expect(found).toEqual(["number3", "number2", "number1"]);
  const { nextCursor } = await searchSessions(testDatabase.database, organization, "worded", { limit: 2 });
  expect(await search("worded", { cursor: nextCursor ?? "" })).toEqual(["number9498", "number9497"]);
});

test("every word must be there, and only the last may be a beginning", async () => {
  expect(await search("seldom wor")).toEqual(["number3", "number2"]);
  expect(await search("sel words")).toEqual([]);
  expect(await search("seldom often")).toEqual([]);
});

test("a session is found by its id, however that is written", async () => {
  const { id } = await addSession(testDatabase.database, organization, { prompt: "Find me" });
  expect(await search(` ${id.toUpperCase()} `)).toEqual(["Find me"]);
});

test("a search without words finds nothing, and no search finds another organization's", async () => {
  for (const q of ["!?", "\0", "\u{d800}", "“…”"]) expect(await search(q)).toEqual([]);
  const other = await addOrganization(testDatabase.database);
  expect((await searchSessions(testDatabase.database, other, "seldom", { limit: 2 })).items).toEqual([]);
});

test("who asked narrows what the index finds too", async () => {
  const asker = crypto.randomUUID();
  const { pool } = testDatabase.database;
  // Far more than a search looks through before it asks the index.
  await pool.query("update session set requested_by = $1 where organization_id = $2 and title <> 'number3'", [
    asker,
    organization,
  ]);
  expect(await search("seldom")).toEqual(["number3", "number2"]);
  expect(await search("seldom", { requestedBy: asker })).toEqual(["number2", "number1"]);
  expect(await search("seldom", { requestedBy: crypto.randomUUID() })).toEqual([]);
});

test("words are found in every script, whatever their capitals", async () => {
  const found = async (prompt: string, q: string): Promise<boolean> => {
    const own = await addOrganization(testDatabase.database);
    await testDatabase.database.pool.query(
      "insert into session (id, organization_id, title, description, status, branch_name) values (gen_random_uuid(), $1, $2, '', 'completed', 'b')",
      [own, prompt],
    );
    return (await searchSessions(testDatabase.database, own, q, { limit: 2 })).items.length === 1;
  };
  for (const [prompt, q] of [
    ["Über die Brücke gehen", "über"],
    ["ÄRGER mit ÖL", "ärger öl"],
    ["Исправить ОШИБКУ", "ошибку"],
    ["Διόρθωσε ΤΟ ΣΦΆΛΜΑ", "σφάλμα"],
    ["修复登录", "修复登录"],
  ] as const)
    expect([prompt, await found(prompt, q)]).toEqual([prompt, true]);
});

/** Titles, and what finds each of them. */
const scripts = [
  ["Größe ÄNDERN", ["GRÖẞE", "ändern", "Änd"]],
  ["Исправить ОШИБКУ", ["ошибку", "ИСПРАВИТЬ", "ошиб"]],
  ["ΣΥΣΤΗΜΑ", ["συστημα"]],
  ["Οδός προς ΚΟΣΜΟΣ", ["ΟΔΌΣ", "οδός", "κοσμος", "κοσμοσ"]],
  ["İstanbul", ["istanbul", "İSTANBUL"]],
  ["STRASSE nach MASSENHEIM", ["Straße", "straße", "STRASSE nach Maßenheim", "straß"]],
  ["Eine Straße nach Gießen", ["STRASSE", "STRASSE NACH GIESSEN", "GIESS"]],
  ["“double” ‘single’ «guillemets» „low“ 「corner」", ["double", "single", "guillemets", "low", "corner"]],
  ["don’t—ever…stop", ["don", "ever", "stop"]],
  ["ログイン画面の検索機能を修正", ["検索", "画面", "機能を", "修正", "正", "ログイン", "検"]],
  ["修复登录页面的错误", ["登录", "错误", "页"]],
  ["로그인화면 수정", ["화면", "로그인", "수"]],
  ["แก้ไขหน้าเข้าสู่ระบบ", ["หน้า", "ระบบ"]],
  ["Use ＧＰＵ2の設定", ["gpu2", "設定", "GPU"]],
  ["e\u0301tude in src/auth/login_form.ts (v7e5d1)", ["étude", "auth", "login", "src/auth/login", "v7e5d1", "form ts"]],
  ["🚀deploy", ["deploy"]],
] as const;

// The embedded database of today, that of earlier versions (C), and PostgreSQL with ICU.
test.each([
  ["the server's own locale", ""],
  ["the locale C", "locale_provider libc locale 'C' template template0"],
  ["ICU", "locale_provider icu icu_locale 'und' locale 'C' template template0"],
])("words of every script are found, in any quotes, in a database with %s", async (_case, options) => {
  const name = `search_${crypto.randomUUID().replaceAll("-", "")}`;
  const { pool } = testDatabase.database;
  await pool.query(`create database ${name} encoding 'UTF8' ${options}`);
  const url = testDatabase.url.replace(/\/test_[0-9a-f]+\?/u, `/${name}?`);
  const database = await openDatabase({ url, directory: "", logger: createLogger("error") });
  try {
    const ours = await addOrganization(database);
    for (const [title] of scripts) await addSession(database, ours, { prompt: title });
    // So many that the index is asked, too.
    await database.pool.query(
      `insert into session (id, organization_id, title, description, status, branch_name, created_at)
       select gen_random_uuid(), $1, 'other', 'others', 'completed', 'b', now() + n * interval '1 second' from generate_series(1, 300) n`,
      [ours],
    );
    const misses: string[] = [];
    for (const [title, asked] of scripts) {
      for (const q of asked) {
        const { items } = await searchSessions(database, ours, q, { limit: 5 });
        const { count } = await countWithWords(database, ours, { q, limit: 5, skip: 0 });
        const isFound = items.some((session) => session.title === title) && count > 0;
        if (!isFound) misses.push(`${q} in ${title}`);
      }
    }
    expect(misses).toEqual([]);
    for (const q of ["索検", "nothing", "登錯"]) {
      expect((await searchSessions(database, ours, q, { limit: 5 })).items).toEqual([]);
    }
  } finally {
    await database.close();
    await pool.query(`drop database ${name} with (force)`);
  }
});

test("a text with words longer than the index takes is stored, and found by how they begin", async () => {
  const { database } = testDatabase;
  const ours = await addOrganization(database);
  const long = `${"x7".repeat(3_000)} \u{1d400}${"\u{10400}".repeat(3_000)} ${"漢字".repeat(3_000)}`;
  const { id } = await addSession(database, ours, { prompt: "Long", description: long });
  for (const q of ["x7x7x7", "漢字漢字", "long", "x7".repeat(250)]) {
    const { items } = await searchSessions(database, ours, q, { limit: 5 });
    expect([q, items.map((item) => item.id)]).toEqual([q, [id]]);
  }
});

test("a search that is longer once it is folded is answered", async () => {
  const { database } = testDatabase;
  const ours = await addOrganization(database);
  // One character that stands for four, and one for two of four bytes each.
  for (const character of ["\ufdf2", "\u{1d15e}"]) {
    const { id } = await addSession(database, ours, { prompt: "Folded", description: character.repeat(1_000) });
    for (const q of [character.repeat(500), `${character.repeat(490)} folded`]) {
      const { items } = await searchSessions(database, ours, q, { limit: 5 });
      const { count } = await countWithWords(database, ours, { q, limit: 5, skip: 0 });
      expect([q.length, items.map((item) => item.id), count]).toEqual([q.length, [id], 1]);
    }
  }
});
