import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { ConflictError, NotFoundError } from "../../src/domain/errors/errors.ts";
import { figuresOf, type FigureSums } from "../../src/domain/insight/figures.ts";
import { bucketsOfDoubling } from "../../src/domain/insight/histogram.ts";
import { insightDimensions, type InsightDimension } from "../../src/domain/insight/dimension.ts";
import type { Figures } from "../../src/domain/insight/insight.ts";
import { readFigures } from "../../src/store/insight/figures.ts";
import { countMarkedDays } from "../../src/store/insight/count.ts";
import { countUsage } from "../../src/store/insight/usage.ts";
import { beginErasure, finishErasure } from "../../src/store/organization-data/erase.ts";
import { eraseUser } from "../../src/store/people/users.ts";
import { closePullRequest, reopenPullRequest } from "../../src/store/repositories/pull-requests.ts";
import { pruneSessions } from "../../src/store/prune-sessions.ts";
import { deleteSession } from "../../src/store/sessions/delete-session.ts";
import { withdrawMessage } from "../../src/store/sessions/messages.ts";
import { addMessage } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addAutomation, addOrganization, addPerson, addSession } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});

afterAll(() => testDatabase?.close());

const { signal } = new AbortController();
const minute = 60_000;
const day = 24 * 60 * minute;

interface Place {
  readonly organizationId: string;
  readonly automations: readonly string[];
  readonly repositories: readonly string[];
  /** Two users, and a key without an owner. */
  readonly people: readonly string[];
  readonly sessions: { readonly id: string; readonly createdAt: number }[];
  readonly pullRequests: string[];
  /** The figures of days some of whose sessions were deleted for their age, as they were then. */
  readonly kept: Map<string, Map<string, FigureSums>>;
}

async function makePlace(): Promise<Place> {
  const organizationId = await addOrganization(database);
  const repositories = [crypto.randomUUID(), crypto.randomUUID()];
  for (const id of repositories) {
    await database.pool.query(
      "insert into repository (id, organization_id, name, url, address_key) values ($1::uuid, $2, 'r', $1::text, $1::text)",
      [id, organizationId],
    );
  }
  // A person who can't be erased, being the last admin.
  await addPerson(database, organizationId, { name: "Root", role: "admin" });
  const ada = await addPerson(database, organizationId, { name: "Ada" });
  const grace = await addPerson(database, organizationId, { name: "Grace" });
  const key = crypto.randomUUID();
  await database.pool.query(
    "insert into api_key (id, organization_id, name, hash, prefix, scopes) values ($1::uuid, $2, 'k', decode(md5($1::text), 'hex'), 'o', '{write}')",
    [key, organizationId],
  );
  return {
    organizationId,
    automations: [
      await addAutomation(database, organizationId, "one"),
      await addAutomation(database, organizationId, "two"),
    ],
    repositories,
    people: [ada.userId, grace.userId, key],
    sessions: [],
    pullRequests: [],
    kept: new Map(),
  };
}

/** So many parts in a thousand of the time that is left until now: often all, or nothing. */
const fraction = fc.oneof(fc.nat(1_000), fc.constantFrom(0, 1, 600, 700, 999));

/** What may happen. Numbers choose among what there is. */
const step = fc.oneof(
  fc.record({
    what: fc.constant("create" as const),
    daysAgo: fc.oneof(fc.nat(40), fc.constantFrom(0, 36, 40)),
    agent: fc.option(fc.constantFrom("codex", "claude")),
    automation: fc.option(fc.nat(1), { freq: 2 }),
    person: fc.option(fc.nat(2), { freq: 3 }),
    repositories: fc.uniqueArray(fc.nat(1), { maxLength: 2 }),
    isTrial: fc.nat(9).map((n) => n === 0),
    waitMs: fc.option(fc.constantFrom(0, 1, 999, 1_000, 61_234, 7_000_000)),
  }),
  fc.record({ what: fc.constant("start" as const), session: fc.nat() }),
  fc.record({
    what: fc.constant("end" as const),
    session: fc.nat(),
    status: fc.constantFrom("completed", "failed", "cancelled"),
  }),
  fc.record({ what: fc.constant("say" as const), session: fc.nat(), part: fc.option(fraction) }),
  fc.record({ what: fc.constant("withdraw" as const), session: fc.nat() }),
  fc.record({ what: fc.constant("open" as const), session: fc.nat(), repository: fc.nat(1), part: fraction }),
  fc.record({
    what: fc.constant("close" as const),
    pullRequest: fc.nat(),
    state: fc.constantFrom("merged" as const, "closed" as const),
  }),
  fc.record({
    what: fc.constant("closed" as const),
    pullRequest: fc.nat(),
    state: fc.constantFrom("merged", "closed"),
    part: fraction,
  }),
  fc.record({ what: fc.constant("reopen" as const), pullRequest: fc.nat() }),
  fc.record({
    what: fc.constant("use" as const),
    session: fc.nat(),
    model: fc.constantFrom("small", "large"),
    tokens: fc.nat(1_000),
  }),
  fc.record({
    what: fc.constant("used" as const),
    session: fc.nat(),
    model: fc.constantFrom("small", "large"),
    part: fraction,
  }),
  fc.record({ what: fc.constant("delete" as const), session: fc.nat() }),
  fc.record({ what: fc.constant("age" as const), session: fc.nat() }),
  fc.record({ what: fc.constant("erase" as const), person: fc.nat(1) }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const chosen = <T>(all: readonly T[], number: number): T | undefined => all[number % all.length];
const within = (from: number, part: number): Date => new Date(from + ((Date.now() - from) * part) / 1_000);

async function create(place: Place, made: Extract<Step, { what: "create" }>): Promise<void> {
  const id = crypto.randomUUID();
  const createdAt = Date.now() - made.daysAgo * day - 5 * minute;
  const person = made.person === null ? null : (place.people[made.person] ?? null);
  await database.pool.query(
    `insert into session (id, organization_id, title, description, prompt, status, branch_name, agent, automation_id, requested_by, created_by,
       setup_trial, queued_at, created_at, queue_wait_ms)
     values ($1, $2, '', '', '', 'queued', 'b', $3, $4, $5, $6, $7, now(), $8, $9)`,
    [
      id,
      place.organizationId,
      made.agent,
      made.automation === null ? null : place.automations[made.automation],
      made.person === 2 ? null : person,
      made.person === 2 ? person : null,
      made.isTrial,
      new Date(createdAt),
      made.waitMs,
    ],
  );
  for (const [position, index] of made.repositories.entries()) {
    await database.pool.query(
      "insert into session_repository (session_id, repository_id, position, directory) values ($1, $2, $3, 'd')",
      [id, place.repositories[index], position],
    );
  }
  await database.pool.query(
    "insert into message (id, session_id, position, text, status) values ($1, $1, 1, '', 'done')",
    [id],
  );
  place.sessions.push({ id, createdAt });
}

async function onSession(place: Place, { id, createdAt }: Place["sessions"][number], made: Step): Promise<void> {
  const { organizationId } = place;
  const { pool } = database;
  switch (made.what) {
    case "start":
      await pool.query(
        `select move_session(id, 'running', null, null, null, false, waits_for => null, claimer => 'w', lease => interval '1 hour')
         from session where id = $1 and status = 'queued'`,
        [id],
      );
      return;
    case "end":
      await pool.query(
        `select move_session(id, $2, null, null, null, false, waits_for => null) from session
         where id = $1 and (status = 'running' or (status = 'queued' and $2 = 'cancelled'))`,
        [id, made.status],
      );
      return;
    case "say": {
      const messageId = crypto.randomUUID();
      if (made.part === null)
        await addMessage(database, organizationId, id, { id: messageId, text: "more", from: null });
      else {
        await pool.query(
          `insert into message (id, session_id, position, text, status, created_at)
           select $1, $2, coalesce(max(position), 0) + 1, 'more', 'done', $3 from message where session_id = $2`,
          [messageId, id, within(createdAt, made.part)],
        );
      }
      return;
    }
    case "withdraw": {
      const { rows } = await pool.query<{ id: string }>(
        "select id from message where session_id = $1 and status = 'pending' order by position desc limit 1",
        [id],
      );
      if (rows[0] !== undefined) await withdrawMessage(database, organizationId, id, rows[0].id);
      return;
    }
    case "open": {
      const pullRequest = crypto.randomUUID();
      const { rowCount } = await pool.query(
        `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, created_at)
         select $1::uuid, $2, $3, $4, $1::text, 'main', 1, '', $5 from session where id = $3 and not setup_trial`,
        [pullRequest, organizationId, id, place.repositories[made.repository], within(createdAt, made.part)],
      );
      if (rowCount === 1) place.pullRequests.push(pullRequest);
      return;
    }
    case "use":
      await countUsage(
        database,
        { sessionId: id, organizationId },
        {
          provider: "p",
          model: made.model,
          inputTokens: made.tokens,
          outputTokens: 2,
          cacheReadTokens: 3,
          cacheWriteTokens: 4,
          reasoningTokens: 1,
          costUsd: made.tokens / 1_000,
        },
      );
      return;
    case "used":
      await pool.query(
        `insert into session_usage (session_id, organization_id, day, provider, model, input_tokens, output_tokens, cache_read_tokens,
           cache_write_tokens, reasoning_tokens, cost_usd) values ($1, $2, $3, 'p', $4, 10, 20, 30, 40, 5, 0.25) on conflict do nothing`,
        [id, organizationId, within(createdAt, made.part).toISOString().slice(0, 10), made.model],
      );
      return;
    case "age":
    case "delete":
      if (made.what === "age") await keepDays(place, id);
      await deleteSession(database, organizationId, id, made.what === "age");
      place.sessions.splice(
        place.sessions.findIndex((each) => each.id === id),
        1,
      );
      return;
    default:
      throw new Error(`${made.what} is of no session`);
  }
}

/** Notes what the figures of a session's days are, which are to stay so. */
async function keepDays({ organizationId, kept }: Place, sessionId: string): Promise<void> {
  const { rows } = await database.pool.query<{ day: string }>(
    `with ended as (
       select id, created_at from session where id = $1 and status in ('completed', 'failed', 'cancelled')),
     times as (
       select created_at as at from ended
       union select pull_request.created_at from pull_request join ended on session_id = ended.id)
     select ((at at time zone 'UTC')::date)::text as day from times
     union select day::text from session_usage join ended on session_id = ended.id`,
    [sessionId],
  );
  await countMarkedDays(database, signal);
  const sums = await keptSums(organizationId);
  for (const { day: each } of rows) {
    if (!kept.has(each)) kept.set(each, new Map([...sums].filter(([name]) => name.startsWith(each))));
  }
}

async function onPullRequest(place: Place, id: string, made: Step): Promise<void> {
  const { rows } = await database.pool.query<{
    sessionId: string;
    repositoryId: string;
    number: number;
    createdAt: Date;
  }>(
    `select session_id as "sessionId", repository_id as "repositoryId", number, created_at as "createdAt" from pull_request where id = $1`,
    [id],
  );
  const [known] = rows;
  // It went with its session.
  if (known === undefined) return;
  const read = { id, organizationId: place.organizationId, ...known };
  if (made.what === "close") await closePullRequest(database, read, made.state);
  if (made.what === "reopen") await reopenPullRequest(database, read);
  if (made.what === "closed") {
    await database.pool.query("update pull_request set state = $2, closed_at = $3 where id = $1", [
      id,
      made.state,
      within(known.createdAt.getTime(), made.part),
    ]);
  }
}

async function take(place: Place, made: Step): Promise<void> {
  try {
    if (made.what === "create") await create(place, made);
    else if (made.what === "erase") await eraseUser(database, place.organizationId, place.people[made.person] ?? "");
    else if ("pullRequest" in made) {
      const id = chosen(place.pullRequests, made.pullRequest);
      if (id !== undefined) await onPullRequest(place, id, made);
    } else {
      const session = chosen(place.sessions, made.session);
      if (session !== undefined) await onSession(place, session, made);
    }
  } catch (error) {
    // What is not allowed now did not happen.
    if (!(error instanceof ConflictError) && !(error instanceof NotFoundError)) throw error;
  }
}

type Times = { waits: number[]; openings: number[]; mergings: number[] };
type Plain = { -readonly [Name in keyof Omit<FigureSums, keyof Times>]: FigureSums[Name] } & Times;

const nothing = (): Plain => ({
  sessions: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  pullRequests: 0,
  merged: 0,
  closed: 0,
  roundsInAll: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: 0,
  waits: [],
  openings: [],
  mergings: [],
});

/** The sums of each day, dimension and key, from all rows one by one. */
async function plainSums(organizationId: string): Promise<Map<string, Plain>> {
  const rowsOf = async <T>(sql: string): Promise<T[]> => (await database.pool.query(sql, [organizationId])).rows as T[];
  interface Session {
    id: string;
    agent: string | null;
    automation_id: string | null;
    requested_by: string | null;
    created_by: string | null;
    setup_trial: boolean;
    status: string;
    created_at: Date;
    finished_at: Date | null;
    queue_wait_ms: string | null;
  }
  const sessions = await rowsOf<Session>("select * from session where organization_id = $1");
  const parts = await rowsOf<{ session_id: string; repository_id: string }>(
    "select part.* from session_repository part join session on session.id = session_id where organization_id = $1",
  );
  const messages = await rowsOf<{ session_id: string; position: number; created_at: Date; withdrawn_at: Date | null }>(
    "select message.* from message join session on session.id = session_id where organization_id = $1",
  );
  const usage = await rowsOf<Record<string, string>>(
    "select *, day::text as day from session_usage where organization_id = $1",
  );
  const pullRequests = await rowsOf<{
    session_id: string;
    repository_id: string;
    state: string;
    created_at: Date;
    closed_at: Date | null;
  }>("select * from pull_request where organization_id = $1");

  const all = new Map<string, Plain>();
  const dayOf = (at: Date): string => at.toISOString().slice(0, 10);
  const known = new Map(sessions.map((session) => [session.id, session]));
  const repositoriesOf = (id: string) =>
    parts.filter((part) => part.session_id === id).map((part) => part.repository_id);
  const modelsOf = (id: string) => usage.filter((used) => used["session_id"] === id).map((used) => used["model"] ?? "");
  function addTo(
    at: string,
    { agent, automation_id, requested_by, created_by }: Session,
    own: { repositories: string[]; models: string[] },
    add: (sums: Plain) => void,
  ): void {
    const person = requested_by ?? created_by;
    const groups: [InsightDimension | "all", string][] = [
      ["all", ""],
      ["agent", agent ?? ""],
      ["automation", automation_id ?? ""],
      ...(person === null ? [] : [["person", person] as ["person", string]]),
      ...[...new Set(own.repositories)].map((key) => ["repository", key] as ["repository", string]),
      ...[...new Set(own.models)].map((key) => ["model", key] as ["model", string]),
    ];
    for (const scope of ["", ...new Set(own.repositories)]) {
      for (const group of groups) {
        const name = [at, scope, ...group].join(" ");
        const sums = all.get(name) ?? nothing();
        add(sums);
        all.set(name, sums);
      }
    }
  }
  for (const session of sessions.filter(({ setup_trial: isTrial }) => !isTrial)) {
    addTo(
      dayOf(session.created_at),
      session,
      { repositories: repositoriesOf(session.id), models: modelsOf(session.id) },
      (sums) => {
        sums.sessions += 1;
        if (session.status === "completed" || session.status === "failed" || session.status === "cancelled")
          sums[session.status] += 1;
        if (session.finished_at !== null && session.queue_wait_ms !== null)
          sums.waits.push(Number(session.queue_wait_ms));
      },
    );
  }
  for (const each of pullRequests) {
    const session = known.get(each.session_id);
    if (session === undefined) throw new Error("a pull request has no session");
    const [opened, closed] = [each.created_at.getTime(), each.closed_at?.getTime() ?? Infinity];
    addTo(
      dayOf(each.created_at),
      session,
      { repositories: [each.repository_id], models: modelsOf(session.id) },
      (sums) => {
        sums.pullRequests += 1;
        sums.openings.push(opened - session.created_at.getTime());
        if (each.state === "closed") sums.closed += 1;
        if (each.state === "merged" && closed - opened <= 30 * day) {
          sums.merged += 1;
          sums.mergings.push(closed - opened);
        }
        sums.roundsInAll += messages.filter(
          ({ session_id: of, position, created_at: at, withdrawn_at: withdrawn }) =>
            of === session.id && position > 1 && withdrawn === null && at.getTime() > opened && at.getTime() <= closed,
        ).length;
      },
    );
  }
  for (const used of usage) {
    const session = known.get(used["session_id"] ?? "");
    if (session === undefined) throw new Error("a usage has no session");
    addTo(
      used["day"] ?? "",
      session,
      { repositories: repositoriesOf(session.id), models: [used["model"] ?? ""] },
      (sums) => {
        sums.inputTokens += Number(used["input_tokens"]);
        sums.outputTokens += Number(used["output_tokens"]);
        sums.cacheReadTokens += Number(used["cache_read_tokens"]);
        sums.cacheWriteTokens += Number(used["cache_write_tokens"]);
        sums.reasoningTokens += Number(used["reasoning_tokens"]);
        sums.costUsd += Number(used["cost_usd"]);
      },
    );
  }
  return all;
}

const daysOfTest = (): string[] =>
  Array.from({ length: 60 }, (_, index) => new Date(Date.now() - (58 - index) * day).toISOString().slice(0, 10));

/** What is kept, in the same form. */
async function keptSums(organizationId: string): Promise<Map<string, FigureSums>> {
  const { rows } = await database.pool.query<{ id: string }>("select id from repository where organization_id = $1", [
    organizationId,
  ]);
  const kept = new Map<string, FigureSums>();
  const periods = daysOfTest();
  const [from = "", to = ""] = [periods[0], periods.at(-1)];
  for (const repositoryId of [null, ...rows.map(({ id }) => id)]) {
    for (const dimension of ["all", ...insightDimensions] as const) {
      const query = { repositoryId, dimension, from, to, periods, keys: null, byKey: true };
      for (const { from: at, key, sums } of await readFigures(database, organizationId, query)) {
        kept.set([at, repositoryId ?? "", dimension, key].join(" "), sums);
      }
    }
  }
  return kept;
}

/** By the method of the nearest rank. */
function quantile(times: readonly number[], share: number): number | null {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}

/** Half a bucket, and a millisecond to which it is rounded. */
function isNear(kept: number | null, plain: number | null): boolean {
  if (kept === null || plain === null) return kept === plain;
  const width = 2 ** (0.51 / bucketsOfDoubling);
  const exact = Math.max(1, plain);
  return kept >= exact / width - 1 && kept <= exact * width + 1;
}

async function expectSame({ organizationId, kept: ofOld }: Place): Promise<void> {
  const [plain, kept] = [await plainSums(organizationId), await keptSums(organizationId)];
  for (const [each, sums] of ofOld) {
    const isOfIt = ([name]: readonly [string, unknown]): boolean => name.startsWith(each);
    expect(new Map([...kept].filter(isOfIt))).toEqual(sums);
    for (const all of [plain, kept]) for (const [name] of [...all].filter(isOfIt)) all.delete(name);
  }
  expect([...kept.keys()].sort()).toEqual([...plain.keys()].sort());
  for (const [name, { waits, openings, mergings, ...counts }] of plain) {
    const sums = kept.get(name);
    if (sums === undefined) throw new Error(`${name} is not kept`);
    const figures: Figures = figuresOf(sums);
    expect({ name, ...sums }).toMatchObject({ name, ...counts, costUsd: expect.closeTo(counts.costUsd, 6) });
    const times = [
      ["waitP50Ms", waits, 0.5],
      ["waitP90Ms", waits, 0.9],
      ["openingP50Ms", openings, 0.5],
      ["openingP90Ms", openings, 0.9],
      ["mergingP50Ms", mergings, 0.5],
      ["mergingP90Ms", mergings, 0.9],
    ] as const;
    for (const [figure, all, share] of times) {
      const exact = quantile(all, share);
      expect([name, figure, figures[figure], exact, isNear(figures[figure], exact)]).toEqual([
        name,
        figure,
        figures[figure],
        exact,
        true,
      ]);
    }
  }
}

describe("the figures that are kept", () => {
  test("equal those of all rows one by one, after whatever happened, and counted from the beginning too", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(step, fc.boolean()), { minLength: 20, maxLength: 150, size: "max" }),
        async (steps) => {
          const place = await makePlace();
          for (const [each, isCounted] of steps) {
            await take(place, each);
            if (isCounted) await countMarkedDays(database, signal);
          }
          await countMarkedDays(database, signal);
          await expectSame(place);
          // Whatever the rows said before, counting sets it right.
          await database.pool.query(
            `with wrong as (
             update insight_day set sessions = sessions + 1, merged = 0 where organization_id = $1
               and not exists (select from insight_kept_day kept where kept.organization_id = $1 and kept.day = insight_day.day)
             returning organization_id, day)
           insert into insight_mark select distinct * from wrong`,
            [place.organizationId],
          );
          await countMarkedDays(database, signal);
          await expectSame(place);
        },
      ),
      { numRuns: 15 },
    );
  });

  test("go with their organization", async () => {
    const place = await makePlace();
    for (const each of fc.sample(step, { numRuns: 60, seed: 3 })) await take(place, each);
    await countMarkedDays(database, signal);
    const { organizationId } = place;
    expect((await keptSums(organizationId)).size).toBeGreaterThan(5);
    const { rows } = await database.pool.query<{ name: string }>("select name from organization where id = $1", [
      organizationId,
    ]);
    // Whose worker is gone.
    await database.pool.query(
      "update session set lease_until = now() where organization_id = $1 and status = 'running'",
      [organizationId],
    );
    await beginErasure(database, organizationId, rows[0]?.name ?? "");
    expect(await finishErasure(database, organizationId, signal)).toBe(true);
    await countMarkedDays(database, signal);
    expect((await keptSums(organizationId)).size).toBe(0);
    const left = await database.pool.query("select from insight_mark where organization_id = $1", [organizationId]);
    expect(left.rowCount).toBe(0);
  });

  test("have as merged what was merged within 30 days, and as rounds what was said and not taken back while it was open", async () => {
    const { organizationId, repositories } = await makePlace();
    const at = new Date(Date.now() - 40 * day).toISOString();
    const today = at.slice(0, 10);
    const opened = async (state: string, closedAfter: string | null): Promise<string> => {
      const { id } = await addSession(database, organizationId, { queueRightAway: false });
      await database.pool.query("update session set created_at = $2 where id = $1", [id, at]);
      await database.pool.query(
        `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state, created_at, closed_at)
         values (gen_random_uuid(), $1, $2::uuid, $3, $2::text, 'main', 1, '', $4, $5::timestamptz, $5::timestamptz + $6::interval)`,
        [organizationId, id, repositories[0], state, at, closedAfter],
      );
      return id;
    };
    const figures = async () => {
      await countMarkedDays(database, signal);
      return (await keptSums(organizationId)).get([today, "", "all", ""].join(" "));
    };
    await opened("merged", "30 days");
    await opened("merged", "30 days 1 millisecond");
    await opened("closed", "1 day");
    const open = await opened("open", null);
    expect(await figures()).toMatchObject({ pullRequests: 4, merged: 1, closed: 1, roundsInAll: 0 });
    const [one, two] = [crypto.randomUUID(), crypto.randomUUID()];
    await addMessage(database, organizationId, open, { id: one, text: "more", from: null });
    await addMessage(database, organizationId, open, { id: two, text: "still more", from: null });
    expect(await figures()).toMatchObject({ roundsInAll: 2 });
    await withdrawMessage(database, organizationId, open, two);
    expect(await figures()).toMatchObject({ roundsInAll: 1 });
  });

  test("keep what is deleted for its age, from then on whatever happens to those days; what a person deletes goes", async () => {
    const { organizationId } = await makePlace();
    const ended = async (daysAgo: number): Promise<string> => {
      const { id } = await addSession(database, organizationId);
      await database.pool.query(
        `update session set status = 'completed', created_at = now() - $2 * interval '1 day', finished_at = now() - $2 * interval '1 day'
         where id = $1`,
        [id, daysAgo],
      );
      return id;
    };
    const sessionsOf = async (daysAgo: number): Promise<number> => {
      const at = new Date(Date.now() - daysAgo * day).toISOString().slice(0, 10);
      await countMarkedDays(database, signal);
      return (await keptSums(organizationId)).get([at, "", "all", ""].join(" "))?.sessions ?? 0;
    };
    const [old, asOld, , young] = [await ended(40), await ended(40), await ended(20), await ended(20)];
    await database.pool.query("update session set finished_at = now() where id = $1", [asOld]);
    expect([await sessionsOf(40), await sessionsOf(20)]).toEqual([2, 2]);
    expect(await pruneSessions(database, 30, signal)).toBe(1);
    await expect(deleteSession(database, organizationId, old)).rejects.toThrow("not found");
    await deleteSession(database, organizationId, asOld);
    await deleteSession(database, organizationId, young);
    expect([await sessionsOf(40), await sessionsOf(20)]).toEqual([2, 1]);
  });

  test("have what was not committed yet when they were counted, once it is counted again", async () => {
    const { organizationId } = await makePlace();
    const today = new Date().toISOString().slice(0, 10);
    const sessionsOf = async () =>
      (
        await readFigures(database, organizationId, {
          repositoryId: null,
          dimension: "all",
          from: today,
          to: today,
          periods: [today],
          keys: null,
          byKey: false,
        })
      )[0]?.sums.sessions;
    await addSession(database, organizationId);
    await database.transaction(async (transaction) => {
      await transaction.query(
        `insert into session (id, organization_id, title, description, prompt, status, branch_name)
         values (gen_random_uuid(), $1, '', '', '', 'draft', 'b')`,
        [organizationId],
      );
      await countMarkedDays(database, signal);
      expect(await sessionsOf()).toBe(1);
    });
    await countMarkedDays(database, signal);
    expect(await sessionsOf()).toBe(2);
  });

  test("are counted by one process at a time", async () => {
    const { organizationId } = await makePlace();
    await addSession(database, organizationId);
    await database.transaction(async (transaction) => {
      await transaction.query("select pg_advisory_xact_lock(4747012)");
      expect(await countMarkedDays(database, signal)).toBe(0);
    });
    expect(await countMarkedDays(database, signal)).toBe(1);
  });
});
