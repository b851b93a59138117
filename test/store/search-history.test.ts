import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionListQuery } from "../../src/store/sessions/conditions.ts";
import { searchSessions } from "../../src/store/sessions/search.ts";
import { pageSessions } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization } from "./fixtures.ts";

/** The index has four days together: the sessions below are of four years. */
const blockSeconds = 4 * 86_400;

let testDatabase: TestDatabase;
let organization: string;
let automation: string;

/**
 * One session every ten hours for four years; 2,600 within an hour two years ago, more than one question to the index may
 * find; 40 in the same microsecond; and those at the edge of a block. Another organization has the same words.
 */
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  organization = await addOrganization(testDatabase.database);
  automation = await addAutomation(testDatabase.database, organization, "nightly");
  const other = await addOrganization(testDatabase.database);
  const insert = (text: string, at: string, count: number, of = organization): Promise<unknown> =>
    testDatabase.database.pool.query(
      `insert into session (id, organization_id, title, description, status, branch_name, automation_id, created_at)
       select gen_random_uuid(), $1, 'session ' || n, ${text}, case when n % 5 = 0 then 'failed' when n % 11 = 0 then 'running' else 'completed' end, 'b',
         case when n % 7 = 0 and $1 = $2::uuid then $3::uuid end, ${at}
       from generate_series(1, $4::integer) n`,
      [of, organization, automation, count],
    );
  const yearly = `'daily' || case when n <= 4 then ' ancient' else '' end
    || case when n in (90, 2000) then ' commit 7e5d1 of main' when n = 100 then ' 7e5 and d1' else '' end
    || case when n % 97 = 0 then ' seldom' when n % 97 = 1 then ' seldomly' else '' end
    || case when n % 3 = 0 then ' common' else '' end || case when n % 20 = 0 then ' fortnight' else '' end`;
  const tenHours = "now() - interval '4 years' + n * interval '10 hours'";
  await insert(yearly, tenHours, 3_500);
  await insert(yearly, tenHours, 500, other);
  await insert(
    `'crowd' || case when n % 500 = 0 then ' lonely' else '' end`,
    "now() - interval '2 years' + n * interval '1 second'",
    2_600,
  );
  await insert("'twin'", "now() - interval '3 years'", 40);
  const edge = `to_timestamp(${blockSeconds} * floor(extract(epoch from now() - interval '400 days') / ${blockSeconds}))`;
  await insert("'edge'", `${edge} + (n - 2) * interval '1 microsecond'`, 3);
  await testDatabase.database.pool.query("analyze session");
});

afterAll(() => testDatabase?.close());

async function readAll(q: string, query: SessionListQuery): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await searchSessions(testDatabase.database, organization, q, { ...query, cursor });
    found.push(...page.items.map(({ id }) => id));
    expect(page.items.length === query.limit || page.nextCursor === null).toBe(true);
    if (page.nextCursor === null) return found;
    cursor = page.nextCursor;
  }
}

/** What each session by itself says. */
async function expected(
  words: string,
  { status, automationId }: Omit<SessionListQuery, "limit"> = {},
): Promise<string[]> {
  const { rows } = await testDatabase.database.pool.query<{ id: string }>(
    `select id from session where organization_id = $1 and ($3::text[] is null or status = any($3))
       and ($4::uuid is null or automation_id = $4) and to_tsvector('simple', title || ' ' || description) @@ $2::tsquery
     order by created_at desc, id desc`,
    [organization, words, status, automationId],
  );
  return rows.map(({ id }) => id);
}

test.each([
  ["ancient", "ancient:*", 4],
  ["anc", "anc:*", 4],
  ["seldom", "seldom:*", 73],
  ["seldomly", "seldomly:*", 37],
  ["fortnight", "fortnight:*", 175],
  ["seldom common", "seldom & common:*", 12],
  ["common seldom", "common & seldom:*", 24],
  ["crowd", "crowd:*", 2_600],
  ["crowd lonely", "crowd & lonely:*", 5],
  ["lon", "lon:*", 5],
  ["twin", "twin:*", 40],
  ["edge", "edge:*", 3],
  ["session 12", "session & 12:*", 223],
  // PostgreSQL takes such a one apart; here it is one word.
  ["commit 7e5d1", "commit & 7e5:* <-> d1:*", 2],
  ["7e5 d1", "7e5 & and & d1:*", 1],
  ["nowhere", "nowhere:*", 0],
])("all pages of %s together have each session once, newest first", async (q, words, count) => {
  const all = await expected(words);
  expect(all).toHaveLength(count);
  // Pages of 9 end within blocks, those of 2,600 are wider than what is looked at first.
  expect(await readAll(q, { limit: count > 1_000 ? 700 : 9 })).toEqual(all);
  expect(await readAll(q, { limit: 1_000 })).toEqual(all);
});

test.each(["common", "crowd", "seldom", "lonely", "twin"])(
  "pages of %s with a status or an automation are exact",
  async (q) => {
    for (const filter of [{ status: ["failed"] }, { automationId: automation }, { status: ["running"] }] as const) {
      expect(await readAll(q, { limit: 50, ...filter })).toEqual(await expected(`${q}:*`, filter));
    }
  },
);

test("an id finds its session, and those that speak of it", async () => {
  const [id = ""] = await expected("ancient");
  const { items } = await searchSessions(testDatabase.database, organization, id, { limit: 5 });
  expect(items.map((item) => item.id)).toEqual([id]);
  const insert = `insert into session (id, organization_id, title, description, status, branch_name, created_at)
    values (gen_random_uuid(), $1, $2, '', 'completed', 'b', now() - interval '800 days') returning id`;
  const add = async (title: string): Promise<string> => {
    const { rows } = await testDatabase.database.pool.query<{ id: string }>(insert, [organization, title]);
    return rows[0]?.id ?? "";
  };
  const speaks = await add(`after ${id.replaceAll("-", " ")} once more`);
  await add(`ends like it: ${id.slice(24)}`);
  const both = await searchSessions(testDatabase.database, organization, id.toUpperCase(), { limit: 5 });
  expect(both.items.map((item) => item.id)).toEqual([speaks, id]);
  expect(await pageSessions(testDatabase.database, organization, { limit: 5, page: 1, q: id })).toMatchObject({
    totalCount: 2,
  });
});

test("pages by number have the same sessions and count them", async () => {
  for (const [q, words] of [
    ["7e5d1", "7e5:* <-> d1:*"],
    ["crowd", "crowd:*"],
    ["common seldom", "common & seldom:*"],
    ["anc", "anc:*"],
  ] as const) {
    const all = await expected(words);
    const second = await pageSessions(testDatabase.database, organization, { limit: 3, page: 2, q });
    expect(second.totalCount).toBe(all.length);
    expect(second.items.map(({ id }) => id)).toEqual(all.slice(3, 6));
  }
  const [id = ""] = await expected("ancient");
  const byId = await pageSessions(testDatabase.database, organization, { limit: 3, page: 1, q: id.toUpperCase() });
  expect(byId.items.map((item) => item.id)).toContain(id);
  expect(await pageSessions(testDatabase.database, organization, { limit: 3, page: 1, q: "!?" })).toEqual({
    items: [],
    totalCount: 0,
  });
});

test("organizations that the index can't tell apart see only their own", async () => {
  const alike = await Promise.all(
    ["1", "2"].map(async (digit) => {
      const id = `0000000${digit}-0000-4000-8000-00000000abcd`;
      await testDatabase.database.pool.query("insert into organization (id, name) values ($1, $2)", [
        id,
        `organization ${id}`,
      ]);
      await testDatabase.database.pool.query(
        `insert into session (id, organization_id, title, description, status, branch_name, created_at)
         select gen_random_uuid(), $1, 'alike ' || n, case when n = 1 then 'first' else '' end, 'completed', 'b',
           now() - interval '1 year' + n * interval '1 hour'
         from generate_series(1, 200) n`,
        [id],
      );
      return id;
    }),
  );
  for (const id of alike) {
    const { items } = await searchSessions(testDatabase.database, id, "first", { limit: 5 });
    expect(items.map(({ organizationId }) => organizationId)).toEqual([id]);
    expect(await pageSessions(testDatabase.database, id, { limit: 5, page: 1, q: "first" })).toMatchObject({
      totalCount: 1,
    });
  }
});

test("a word that is longer than the index keeps is found by a beginning as long as a search may be", async () => {
  const one = await addOrganization(testDatabase.database);
  const word = "ö".repeat(1_022);
  await testDatabase.database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, created_at)
     select gen_random_uuid(), $1, 'long ' || n, case when n = 7 then repeat('filling ', 300) || $2 else 'short' end, 'completed', 'b',
       now() - interval '90 days' + n * interval '1 hour'
     from generate_series(1, 500) n`,
    [one, word],
  );
  const { items } = await searchSessions(testDatabase.database, one, word.slice(0, 500), { limit: 5 });
  expect(items.map(({ title }) => title)).toEqual(["long 7"]);
});
