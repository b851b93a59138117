import { afterAll, beforeAll, expect, test } from "vitest";
import { changeState, readState } from "../../src/store/automations/state.ts";
import { waitFor } from "../wait-for.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
let count = 0;

beforeAll(async () => {
  api = await createTestApp();
});

afterAll(() => api?.close());

async function automation(): Promise<string> {
  const macro = `state-${(count += 1)}`;
  await api.post("/automation/create", { name: macro, macro, instructions: "x" });
  return macro;
}

const update = (macro: string, body: unknown) => api.post(`/automation/${macro}/state/update`, body);

test("is empty at first, and entries are set, replaced and removed together", async () => {
  const macro = await automation();
  expect(await api.get(`/automation/${macro}/state`)).toMatchObject({ status: 200, body: { entries: [] } });
  const { body: first } = await update(macro, { set: { b: [1, null], a: "x" } });
  expect(first.entries).toMatchObject([
    { key: "a", value: "x", sessionId: null },
    { key: "b", value: [1, null] },
  ]);
  const { body: second } = await update(macro, { set: { a: "y" }, remove: ["b", "not-there"] });
  expect(second.entries).toMatchObject([{ key: "a", value: "y" }]);
  expect(second.entries[0].version).toBeGreaterThan(first.entries[0].version);
});

test("of two writers that read the same, the second is refused, and changes nothing", async () => {
  const macro = await automation();
  const { body } = await update(macro, { set: { count: 1, other: 1 } });
  const [{ version }] = body.entries;
  const both = [2, 3].map((value) =>
    update(macro, { set: { count: value, other: value }, versions: { count: version } }),
  );
  const statuses = (await Promise.all(both)).map(({ status }) => status);
  expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 409]);
  const { body: after } = await api.get(`/automation/${macro}/state`);
  // The one that was refused wrote neither entry.
  expect(after.entries[0].value).toBe(after.entries[1].value);
});

test("a version is never one that a removed entry had, and 0 means that there is none", async () => {
  const macro = await automation();
  const { body } = await update(macro, { set: { key: 1 }, versions: { key: 0 } });
  const [{ version }] = body.entries;
  expect((await update(macro, { set: { key: 2 }, versions: { key: 0 } })).status).toBe(409);
  await update(macro, { remove: ["key"], versions: { key: version } });
  await update(macro, { set: { key: 1 } });
  const late = await update(macro, { set: { key: 9 }, versions: { key: version } });
  expect(late).toMatchObject({ status: 409, body: { error: expect.stringContaining("key has version") as string } });
});

test("has bounds, each named in the refusal, and what is refused changes nothing", async () => {
  const macro = await automation();
  const nested = JSON.parse(`${"[".repeat(40)}${"]".repeat(40)}`) as unknown;
  for (const [body, named] of [
    [{ set: { "": 1 } }, "set"],
    [{ set: { "a b": 1 } }, "must be 1 to 100 of"],
    [{ set: { a: "x".repeat(17 * 1024) } }, "at most 16 KiB"],
    [{ set: { a: nested } }, "nested more than 32"],
    [{ set: { a: "\0" } }, "NUL"],
    [{ set: { a: { "\0": 1 } } }, "NUL"],
    // The database writes each of them in 309 characters.
    [{ set: { a: Array.from({ length: 60 }, () => 1e308) } }, "at most 16 KiB"],
    [
      {
        set: Object.fromEntries(
          Array.from({ length: 20 }, (_, index) => [`k${index}`, Array.from({ length: 50 }, () => 1e308)]),
        ),
      },
      "256 KiB",
    ],
    [{ set: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`k${index}`, 1])) }, "at most 100 keys"],
    [
      { set: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, "x".repeat(16_000)])) },
      "256 KiB",
    ],
  ] as const) {
    const answer = await update(macro, body);
    expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining(named) as string } });
  }
  expect((await api.get(`/automation/${macro}/state`)).body).toEqual({ entries: [] });
});

test("goes with its automation", async () => {
  const macro = await automation();
  await update(macro, { set: { a: 1 } });
  const { rows: before } = await api.database.pool.query(
    "select count(*)::integer as n from automation_state where key = 'a'",
  );
  await api.post(`/automation/${macro}/delete`, {});
  expect((await update(macro, { set: { a: 2 } })).status).toBe(404);
  const { rows: after } = await api.database.pool.query(
    "select count(*)::integer as n from automation_state where key = 'a'",
  );
  expect(after[0].n).toBe(before[0].n - 1);
});

test("goes with its automation, also what is written while that is being deleted", async () => {
  const macro = await automation();
  const { body } = await api.get(`/automation/${macro}`);
  const { database, organizationId } = api;
  const owner = { organizationId, automationId: body.id };
  let deletion: Promise<unknown> = Promise.resolve();
  await database.transaction(async (writer) => {
    await changeState(writer, owner, { set: { late: 1 }, remove: [], versions: {} }, null);
    deletion = api.post(`/automation/${macro}/delete`, {});
    await waitFor(async () => {
      const { rows } = await database.pool.query(
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%update automation set deleted_at%'",
      );
      return rows.length > 0;
    }, "the deletion waits for the writer");
    // Positive control: until the deletion comes, it is there.
    expect(await readState(writer, owner)).toHaveLength(1);
  });
  expect(await deletion).toMatchObject({ status: 200 });
  expect(await readState(database.pool, owner)).toEqual([]);
});
