import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { AttentionReason } from "../../src/domain/sessions/attention.ts";
import { attentionReasons } from "../../src/domain/sessions/attention.ts";
import { sessionStatuses, type SessionStatus } from "../../src/domain/sessions/status.ts";
import type { SessionFilter } from "../../src/store/sessions/conditions.ts";
import { listLabels } from "../../src/store/sessions/labels.ts";
import { listSessions } from "../../src/store/sessions/list.ts";
import { fillRepositoryOrder } from "../../src/store/sessions/repository-order.ts";
import { searchSessions } from "../../src/store/sessions/search.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, addPerson } from "./fixtures.ts";

/** What a session is in the plain computation that the list is compared with. */
interface Plain {
  readonly id: string;
  readonly status: SessionStatus;
  readonly automationId: string | null;
  readonly repositoryIds: readonly string[];
  readonly person: string | null;
  readonly labels: readonly string[];
  readonly archived: boolean;
  readonly attention: readonly AttentionReason[];
  /** Null: no person has still to look at it. */
  readonly unreadBy: string | null;
}

const labelWords = ["bug", "chore", "Bug", "größer", "release"];
const count = 400;

let testDatabase: TestDatabase;
let organization: string;
let automations: string[];
let repositories: string[];
let people: string[];
/** Newest first. */
const plain: Plain[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  const { database } = testDatabase;
  organization = await addOrganization(database);
  automations = [
    await addAutomation(database, organization, "one"),
    await addAutomation(database, organization, "two"),
  ];
  repositories = await Promise.all(["a", "b", "c"].map((name) => addRepository(organization, name)));
  const ada = await addPerson(database, organization, { name: "Ada" });
  const grace = await addPerson(database, organization, { name: "Grace" });
  const { rows } = await database.pool.query<{ id: string }>("select id from api_key where user_id = $1", [
    grace.userId,
  ]);
  people = [ada.userId, grace.userId, rows[0]?.id ?? ""];
  await database.pool.query("update user_account set read_until = now() - interval '90 days'");
  const sample = fc.sample(sessionOf, { numRuns: count, seed: 7 });
  for (const [index, made] of sample.entries()) plain.unshift(await insert(made, index));
  // Of another organization, and otherwise the same.
  const other = await addOrganization(database);
  await database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, requested_by)
     select gen_random_uuid(), $1, title, '', status, 'b', requested_by from session where organization_id = $2`,
    [other, organization],
  );
  await database.pool.query(
    `insert into session_label (session_id, label, organization_id, session_created_at)
     select id, 'bug', organization_id, created_at from session where organization_id = $1`,
    [other],
  );
});

afterAll(() => testDatabase?.close());

async function addRepository(of: string, name: string): Promise<string> {
  const id = crypto.randomUUID();
  await testDatabase.database.pool.query(
    "insert into repository (id, organization_id, name, url, address_key) values ($1, $2, $3, $3, $3)",
    [id, of, name],
  );
  return id;
}

const pullRequestOf = fc.record({
  state: fc.constantFrom("open", "merged", "closed"),
  mergeable: fc.constantFrom(true, false, null),
  days: fc.constantFrom(1, 89, 91),
});
const sessionOf = fc.record({
  status: fc.constantFrom(...sessionStatuses),
  automation: fc.option(fc.nat(1), { freq: 2 }),
  repositories: fc.uniqueArray(fc.nat(2), { maxLength: 2 }),
  person: fc.option(fc.nat(2), { freq: 3 }),
  labels: fc.uniqueArray(fc.constantFrom(...labelWords), { maxLength: 3 }),
  archived: fc.boolean(),
  /** Days since it ended. */
  ended: fc.constantFrom(1, 6, 8, 300),
  looked: fc.boolean(),
  draftPullRequest: fc.boolean(),
  pullRequests: fc.array(pullRequestOf, { maxLength: 2 }),
});
type Made = typeof sessionOf extends fc.Arbitrary<infer T> ? T : never;

async function insert(made: Made, index: number): Promise<Plain> {
  const { pool } = testDatabase.database;
  const id = crypto.randomUUID();
  const archived = made.archived && !["queued", "running", "waiting"].includes(made.status);
  const person = made.person === null ? null : (people[made.person] ?? null);
  const isKey = made.person === 2;
  const user = isKey ? null : person;
  // Several of one moment: the id decides their order.
  const at = `now() - interval '400 days' + interval '1 minute' * ${Math.floor(index / 3)}`;
  await pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, automation_id, requested_by, created_by,
       archived_at, finished_at, created_at, waiting, pull_request)
     values ($1, $2, 'word', '', $3, $4, $5, $6, $7, case when $8 then now() end, now() - $9 * interval '1 day', ${at},
       case when $3 = 'waiting' then '{"reason": "budget", "text": ""}'::jsonb end, jsonb_build_object('draft', $10::boolean))`,
    [
      id,
      organization,
      made.status,
      `branch-${index}`,
      made.automation === null ? null : automations[made.automation],
      user,
      // A session of a user's key is the user's.
      isKey || made.person === 1 ? people[2] : null,
      archived,
      made.ended,
      made.draftPullRequest,
    ],
  );
  if (made.looked && user !== null) {
    await pool.query("insert into session_read (user_id, session_id) values ($1, $2)", [user, id]);
  }
  const repositoryIds = made.repositories.map((each) => repositories[each] ?? "");
  for (const [position, repositoryId] of repositoryIds.entries()) {
    await pool.query(
      `insert into session_repository (session_id, repository_id, position, directory, session_created_at)
       select id, $2, $3, 'd', created_at from session where id = $1`,
      [id, repositoryId, position],
    );
  }
  await pool.query(
    `insert into session_label (session_id, label, organization_id, session_created_at)
     select id, label, organization_id, created_at from session, unnest($2::text[]) as label where id = $1`,
    [id, made.labels],
  );
  for (const [number, { state, mergeable, days }] of made.pullRequests.entries()) {
    await pool.query(
      `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state, mergeable, created_at)
       values (gen_random_uuid(), $1, $2, $3, $4, $5, $6, 'https://forge.example/1', $7, $8, now() - $9 * interval '1 day')`,
      [organization, id, repositories[0], `branch-${index}`, `target-${number}`, number, state, mergeable, days],
    );
  }
  const open = made.pullRequests.filter(({ state, days }) => state === "open" && days < 90);
  const reasons: readonly (readonly [AttentionReason, boolean])[] = [
    ["budget", made.status === "waiting"],
    ["failure", made.status === "failed" && made.ended < 7],
    ["conflict", open.some(({ mergeable }) => mergeable === false)],
    [
      "review",
      made.status === "completed" && !made.draftPullRequest && open.some(({ mergeable }) => mergeable !== false),
    ],
  ];
  return {
    id,
    status: made.status,
    automationId: made.automation === null ? null : (automations[made.automation] ?? null),
    repositoryIds,
    person,
    labels: made.labels,
    archived,
    attention: archived ? [] : reasons.filter(([, is]) => is).map(([reason]) => reason),
    unreadBy: archived || made.looked || made.ended > 90 ? null : user,
  };
}

const isWanted =
  ({ status, automationId, repositoryId, requestedBy, label, archived, attention, unreadBy }: SessionFilter) =>
  (session: Plain): boolean =>
    (status === undefined || status.includes(session.status)) &&
    (automationId === undefined || session.automationId === automationId) &&
    (repositoryId === undefined || session.repositoryIds.includes(repositoryId)) &&
    (requestedBy === undefined || session.person === requestedBy) &&
    (label === undefined || label.every((each) => session.labels.includes(each))) &&
    (archived === undefined || session.archived === archived) &&
    (attention === undefined || attention.some((reason) => session.attention.includes(reason))) &&
    (unreadBy === undefined || session.unreadBy === unreadBy);

/** In the order of the list: by time and, of one moment, by id. */
async function inOrder(): Promise<Plain[]> {
  const { rows } = await testDatabase.database.pool.query<{ id: string }>(
    "select id from session where organization_id = $1 order by created_at desc, id desc",
    [organization],
  );
  const places = new Map(rows.map(({ id }, place) => [id, place]));
  return plain.toSorted((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0));
}

type Ask = (query: { limit: number; cursor?: string | undefined } & SessionFilter) => ReturnType<typeof listSessions>;

async function allPages(ask: Ask, filter: SessionFilter, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await ask({ ...filter, limit, cursor });
    found.push(...page.items.map(({ id }) => id));
    if (page.nextCursor === null) return found;
    cursor = page.nextCursor;
  }
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });
const filterOf = (): fc.Arbitrary<SessionFilter> =>
  fc.record({
    status: optional(fc.uniqueArray(fc.constantFrom(...sessionStatuses), { minLength: 1, maxLength: 3 })),
    automationId: optional(fc.constantFrom(...automations)),
    repositoryId: optional(fc.constantFrom(...repositories)),
    requestedBy: optional(fc.constantFrom(...people)),
    label: optional(fc.uniqueArray(fc.constantFrom(...labelWords), { minLength: 1, maxLength: 2 })),
    archived: optional(fc.boolean()),
    attention: optional(fc.uniqueArray(fc.constantFrom(...attentionReasons), { minLength: 1 })),
    unreadBy: fc.option(fc.constantFrom(...people.slice(0, 2)), { nil: undefined, freq: 1 }),
  });

describe("a list with any filters", () => {
  test("has exactly the sessions that a plain look at each finds, in order, over all pages", async () => {
    const all = await inOrder();
    const list: Ask = (query) => listSessions(testDatabase.database, organization, query);
    let found = 0;
    await fc.assert(
      fc.asyncProperty(filterOf(), fc.constantFrom(15, 40, 100), async (filter, limit) => {
        const wanted = all.filter(isWanted(filter)).map(({ id }) => id);
        found += wanted.length;
        expect(await allPages(list, filter, limit)).toEqual(wanted);
      }),
      { numRuns: 120 },
    );
    expect(found).toBeGreaterThan(500);
  });

  test("and a search with them has the same", async () => {
    const all = await inOrder();
    const search: Ask = (query) => searchSessions(testDatabase.database, organization, "word", query);
    await fc.assert(
      fc.asyncProperty(filterOf(), async (filter) => {
        const wanted = all.filter(isWanted(filter)).map(({ id }) => id);
        expect(await allPages(search, filter, 20)).toEqual(wanted);
      }),
      { numRuns: 60 },
    );
  });

  test("says of each session why it needs a person", async () => {
    const { items } = await listSessions(testDatabase.database, organization, { limit: count });
    const said = new Map(items.map(({ id, attention }) => [id, attention]));
    expect(plain.map(({ id }) => [id, said.get(id)])).toEqual(plain.map(({ id, attention }) => [id, attention]));
  });

  test("has a repository's sessions in order before and after housekeeping filled in their times", async () => {
    const { database } = testDatabase;
    const [repositoryId = ""] = repositories;
    await database.pool.query("update session_repository set session_created_at = null");
    const list: Ask = (query) => listSessions(database, organization, query);
    const wanted = (await inOrder()).filter(isWanted({ repositoryId })).map(({ id }) => id);
    expect(await allPages(list, { repositoryId }, 7)).toEqual(wanted);
    expect(await fillRepositoryOrder(database, new AbortController().signal)).toBeGreaterThan(wanted.length);
    expect(await fillRepositoryOrder(database, new AbortController().signal)).toBe(0);
    expect(await allPages(list, { repositoryId }, 7)).toEqual(wanted);
  });
});

test("labels in use are listed by their letters, page by page", async () => {
  const { database } = testDatabase;
  const all = [...labelWords].toSorted();
  const found: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await listLabels(database, organization, { limit: 2, cursor });
    found.push(...page.labels);
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  expect(found).toEqual(all);
  const ofB = await listLabels(database, organization, { limit: 10, prefix: "b" });
  expect(ofB).toEqual({ labels: ["bug"], nextCursor: null });
  expect((await listLabels(database, organization, { limit: 10, prefix: "x" })).labels).toEqual([]);
});

test("a page ends early instead of reading everything, and the next one goes on from there", async () => {
  const { database } = testDatabase;
  const large = await addOrganization(database);
  const automationId = await addAutomation(database, large, "large");
  await database.pool.query(
    `insert into session (id, organization_id, title, description, status, branch_name, automation_id, created_at)
     select gen_random_uuid(), $1, '', '', case when n = 1 then 'failed' else 'completed' end, 'b', $2,
       now() - interval '1 day' + n * interval '1 second' from generate_series(1, 20100) n`,
    [large, automationId],
  );
  const filter = { automationId, status: ["failed"], limit: 5 } as const;
  const first = await listSessions(database, large, filter);
  expect(first).toEqual({ items: [], nextCursor: expect.any(String) as string });
  const second = await listSessions(database, large, { ...filter, cursor: first.nextCursor ?? "" });
  expect([second.items.length, second.nextCursor]).toEqual([1, null]);
  // By its index the same session is found at once.
  const byStatus = await listSessions(database, large, { status: ["failed"], archived: false, limit: 5 });
  expect([byStatus.items.length, byStatus.nextCursor]).toEqual([1, null]);
});

test("a page of a label or a repository reads no more sessions than it shows, and one of several labels those of the rarest", async () => {
  const { pool } = testDatabase.database;
  const large = await addOrganization(testDatabase.database);
  const repositoryId = await addRepository(large, "large");
  await pool.query(
    `with made as (
       insert into session (id, organization_id, title, description, status, branch_name, created_at)
       select gen_random_uuid(), $1, '', '', 'completed', 'b', now() - n * interval '1 second' from generate_series(1, 5000) n
       returning id, organization_id, created_at),
     tagged as (
       insert into session_label (session_id, organization_id, label, session_created_at)
       select id, organization_id, unnest(array['many'] || case when row_number() over () % 1000 = 0 then array['few'] end), created_at
       from made)
     insert into session_repository (session_id, repository_id, position, directory, session_created_at)
     select id, $2, 0, 'd', created_at from made`,
    [large, repositoryId],
  );
  await pool.query("analyze session, session_label, session_repository");
  const mostRead = async (filter: SessionFilter): Promise<number> => {
    const asked = vi.spyOn(pool, "query");
    const page = await listSessions(testDatabase.database, large, { ...filter, limit: 5 });
    const calls = asked.mock.calls as unknown as (readonly [statement: string, values: unknown[]])[];
    const [statement = "", values = []] = calls.find(([sql]) => sql.startsWith("with page")) ?? [];
    asked.mockRestore();
    expect(page.items).toHaveLength(5);
    const { rows } = await pool.query<{ "QUERY PLAN": readonly [{ readonly Plan: PlanNode }] }>(
      `explain (analyze, format json) ${statement}`,
      values,
    );
    return Math.max(...nodesOf(rows[0]?.["QUERY PLAN"][0].Plan).map((node) => node["Actual Rows"]));
  };
  expect(await mostRead({ label: ["many"] })).toBeLessThan(100);
  expect(await mostRead({ repositoryId })).toBeLessThan(100);
  expect(await mostRead({ label: ["many", "few"] })).toBeLessThan(100);
});

interface PlanNode {
  readonly "Actual Rows": number;
  readonly Plans?: readonly PlanNode[];
}

function nodesOf(node: PlanNode | undefined): PlanNode[] {
  return node === undefined ? [] : [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}
