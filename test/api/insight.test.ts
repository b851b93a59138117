import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countMarkedDays } from "../../src/store/insight/count.ts";
import { countUsage } from "../../src/store/insight/usage.ts";
import { addOrganization, addPerson } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
/** Of the repositories `shop` and `=docs`. */
let shop: string;
let docs: string;

const first = "2031-03-03";
const { signal } = new AbortController();

beforeAll(async () => {
  api = await createTestApp();
  const created = async (name: string): Promise<string> => {
    const { body } = await api.post("/repository/create", { url: `https://git.example/acme/${name}` });
    await api.database.pool.query("update repository set name = $2 where id = $1", [body.id, name]);
    return body.id;
  };
  [shop, docs] = [await created("shop"), await created("=docs")];
  // Monday: merged after an hour. Tuesday: failed. The Monday after: completed, its pull request open.
  await work({
    day: first,
    agent: "opencode:m",
    repositoryId: shop,
    status: "completed",
    mergedAfterMinutes: 60,
    usd: 3,
  });
  await work({ day: "2031-03-04", agent: "codex:c", repositoryId: docs, status: "failed", usd: 1 });
  await work({ day: "2031-03-10", agent: "codex:c", repositoryId: shop, status: "completed", usd: 0.5 });
  await countMarkedDays(api.database, signal);
});
afterAll(() => api?.close());

interface Work {
  readonly day: string;
  readonly agent: string;
  readonly repositoryId: string;
  readonly status: string;
  readonly mergedAfterMinutes?: number;
  readonly usd: number;
  readonly key?: string;
}

/** A session as it stands once it is over: begun at noon after 20 s in the queue, its pull request opened 10 minutes later. */
async function work({ day, agent, repositoryId, status, mergedAfterMinutes, usd, key }: Work): Promise<void> {
  const { database } = api;
  const call = key === undefined ? {} : { key };
  const { body } = await api.post("/session/create", { prompt: "Work", agent, codeRepoIds: [repositoryId] }, call);
  const { id, organizationId } = body as { id: string; organizationId: string };
  await database.pool.query(
    `update session set status = $2, created_at = $3::timestamptz, finished_at = $3::timestamptz + interval '1 hour', queue_wait_ms = 20000
     where id = $1`,
    [id, status, `${day}T12:00:00Z`],
  );
  if (status === "completed") {
    await database.pool.query(
      `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, created_at, state, closed_at)
       values (gen_random_uuid(), $1, $2::uuid, $3, $2::text, 'main', 1, '', $4::timestamptz, $5, $4::timestamptz + $6 * interval '1 minute')`,
      [
        organizationId,
        id,
        repositoryId,
        `${day}T12:10:00Z`,
        mergedAfterMinutes === undefined ? "open" : "merged",
        mergedAfterMinutes ?? null,
      ],
    );
  }
  const tokens = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 7, cacheWriteTokens: 3, reasoningTokens: 5 };
  await countUsage(database, { sessionId: id, organizationId }, { provider: "p", model: "m", ...tokens, costUsd: usd });
  await database.pool.query("update session_usage set day = $2 where session_id = $1", [id, day]);
}

const time = `from=${first}&to=2031-03-16`;
const figures = async (query: string, key?: string) => {
  const { status, body } = await api.get(`/insight/figures?${query}`, key === undefined ? {} : { key });
  expect([status, body.error]).toEqual([200, undefined]);
  return body;
};
/** Half a bucket of the histogram. */
const near = (ms: number) => expect.closeTo(ms, -Math.log10(ms * 0.1));

describe("the figures of a time", () => {
  test("are those of its sessions, pull requests and models", async () => {
    const { total, periods, groups, ...asked } = await figures(time);
    expect(asked).toEqual({
      from: first,
      to: "2031-03-16",
      by: "day",
      timeZone: "UTC",
      groupBy: null,
      groupsLeftOut: false,
    });
    expect(groups).toEqual([]);
    expect(total).toEqual({
      sessions: 3,
      completed: 2,
      failed: 1,
      cancelled: 0,
      underWay: 0,
      pullRequests: 2,
      merged: 1,
      closed: 0,
      shareMerged: 0.5,
      openingP50Ms: near(600_000),
      openingP90Ms: near(600_000),
      mergingP50Ms: near(3_600_000),
      mergingP90Ms: near(3_600_000),
      waitP50Ms: near(20_000),
      waitP90Ms: near(20_000),
      reviewRounds: 0,
      inputTokens: 300,
      outputTokens: 60,
      cacheReadTokens: 21,
      cacheWriteTokens: 9,
      reasoningTokens: 15,
      costUsd: 4.5,
      costPerMergedUsd: 4.5,
    });
    expect(periods).toHaveLength(14);
    expect(periods[1]).toMatchObject({ from: "2031-03-04", sessions: 1, failed: 1, shareMerged: null, costUsd: 1 });
    expect(periods[2]).toMatchObject({ from: "2031-03-05", sessions: 0, waitP50Ms: null, costUsd: 0 });
  });

  test("come by week, from Monday on, the first from the first day on", async () => {
    const { periods } = await figures("from=2031-03-04&to=2031-03-16&by=week");
    expect(periods.map(({ from, sessions }: { from: string; sessions: number }) => [from, sessions])).toEqual([
      ["2031-03-04", 1],
      ["2031-03-10", 1],
    ]);
  });

  test("are those of one repository, by agent too", async () => {
    const { total, groups } = await figures(`${time}&repositoryId=${shop}&groupBy=agent`);
    expect(total).toMatchObject({ sessions: 2, merged: 1, costUsd: 3.5 });
    expect(groups).toMatchObject([
      { key: "opencode:m", name: "opencode:m", sessions: 1, merged: 1, costUsd: 3 },
      { key: "codex:c", name: "codex:c", sessions: 1, merged: 0, costUsd: 0.5 },
    ]);
    const { total: none } = await figures(`${time}&repositoryId=${crypto.randomUUID()}`);
    expect(none).toMatchObject({ sessions: 0, costUsd: 0 });
  });

  test.each([
    [
      "repository",
      () => [
        { key: shop, name: "shop", sessions: 2 },
        { key: docs, name: "=docs", sessions: 1 },
      ],
    ],
    [
      "agent",
      () => [
        { key: "codex:c", sessions: 2 },
        { key: "opencode:m", sessions: 1 },
      ],
    ],
    ["model", () => [{ key: "m", name: "m", sessions: 3, inputTokens: 300 }]],
    ["automation", () => [{ key: "", name: null, sessions: 3 }]],
    ["person", () => [{ name: "first admin key", sessions: 3 }]],
  ])("are grouped by %s", async (dimension, expected) => {
    const { groups } = await figures(`${time}&groupBy=${dimension}`);
    expect(groups).toHaveLength(expected().length);
    expect(groups).toMatchObject(expected());
  });

  test("are those of one group", async () => {
    const { total, periods } = await figures(`${time}&by=week&groupBy=agent&key=codex:c`);
    expect(total).toMatchObject({ sessions: 2, costUsd: 1.5 });
    expect(periods.map(({ failed }: { failed: number }) => failed)).toEqual([1, 0]);
  });

  test("are of the last 30 days if nothing is said", async () => {
    const { from, to, periods } = await figures("");
    expect([to, periods.length]).toEqual([new Date().toISOString().slice(0, 10), 30]);
    expect(periods[0].from).toBe(from);
  });

  test("have nothing of another organization, for a viewer as for an admin", async () => {
    const other = await addOrganization(api.database);
    const ada = await addPerson(api.database, other, { name: "Ada", role: "admin", scopes: ["read", "write"] });
    const eve = await addPerson(api.database, other, { name: "Eve", role: "viewer", scopes: ["read"] });
    for (const { key } of [ada, eve]) {
      const { total, groups } = await figures(`${time}&groupBy=agent`, key);
      expect([total.sessions, groups]).toEqual([0, []]);
      expect((await figures(`${time}&repositoryId=${shop}`, key)).total.sessions).toBe(0);
    }
    const { body } = await api.post("/repository/create", { url: "https://git.example/o/own" }, { key: ada.key });
    await work({ day: first, agent: "codex:c", repositoryId: body.id, status: "failed", usd: 9, key: ada.key });
    await countMarkedDays(api.database, signal);
    expect((await figures(`${time}&groupBy=person`, eve.key)).groups).toMatchObject([{ name: "Ada", costUsd: 9 }]);
    expect((await figures(time)).total.costUsd).toBe(4.5);
  });

  test.each([
    ["from=yesterday", "from must be a day such as 2030-01-31"],
    ["to=2030-02-30", "to must be a day such as 2030-01-31"],
    ["from=1999-12-31", "from must not be before 2000-01-01"],
    ["from=2031-03-05&to=2031-03-04", "from: must not be after the last day, 2031-03-04"],
    ["from=2030-03-03&to=2031-03-04", "from: must be at most 366 days before the end"],
    ["by=month", "by must be day or week"],
    ["groupBy=label", "groupBy must be repository, automation, agent, model or person"],
    ["key=codex", "key: is of no group without groupBy: name both, or neither"],
    ["repositoryId=shop", "repositoryId must be a repository's id"],
  ])("are refused for %s, in JSON and CSV", async (query, error) => {
    for (const path of ["figures", "csv"]) {
      const { status, body } = await api.get(`/insight/${path}?${query}`);
      expect([status, body.error]).toEqual([400, expect.stringContaining(error)]);
    }
  });
});

describe("the CSV", () => {
  const linesOf = async (query: string): Promise<string[]> => {
    const { status, body } = await api.get(`/insight/csv?${query}`);
    expect(status).toBe(200);
    const lines = String(body).split("\r\n");
    expect(lines.pop()).toBe("");
    return lines;
  };

  test("is a file with a row for each period, after one of names", async () => {
    const { headers } = await api.get(`/insight/csv?${time}`);
    expect([headers["content-type"], headers["content-disposition"]]).toEqual([
      "text/csv; charset=utf-8",
      `attachment; filename="insight-${first}-2031-03-16.csv"`,
    ]);
    const [names, monday, , empty, ...rest] = await linesOf(time);
    expect(names).toMatch(/^"from","sessions","completed","failed",.*,"costUsd","costPerMergedUsd"$/u);
    expect(monday).toMatch(/^"2031-03-03",1,1,0,0,0,1,1,0,1,\d+,.*,3,3$/u);
    expect(empty).toMatch(/^"2031-03-05",0,.*,0,$/u);
    expect(rest).toHaveLength(11);
  });

  test("has the groups of each period, and no name that a program would take for a formula", async () => {
    const [names, ...rows] = await linesOf(`${time}&by=week&groupBy=repository`);
    expect(names).toMatch(/^"from","key","name","sessions",/u);
    expect(rows.map((row) => row.split(",").slice(0, 4).join(","))).toEqual([
      `"${first}","${[shop, docs].toSorted()[0]}","${shop < docs ? "shop" : "'=docs"}",1`,
      `"${first}","${[shop, docs].toSorted()[1]}","${shop < docs ? "'=docs" : "shop"}",1`,
      `"2031-03-10","${shop}","shop",1`,
    ]);
    expect(await linesOf(`${time}&by=week&groupBy=repository&key=${docs}`)).toHaveLength(2);
  });
});
