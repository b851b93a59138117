import { afterAll, beforeAll, expect, test } from "vitest";
import { createLogger } from "../../src/observability.ts";
import { updateAutomation } from "../../src/store/automations/automations.ts";
import { claimJob } from "../../src/store/automations/jobs.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { noTraces } from "../../src/traces.ts";
import { runJob } from "../../src/worker/run-job.ts";
import { createTestApp, type Answer, type TestApp } from "./app.ts";
import { noForge } from "../no-forge.ts";

let api: TestApp;
let automationId: string;
let viewerKey: string;

beforeAll(async () => {
  api = await createTestApp();
  automationId = (await api.post("/automation/create", { name: "Fix", macro: "fix", instructions: "Fix it" })).body.id;
  viewerKey = (await createKey(api.database, api.organizationId, { name: "viewer", scopes: ["read"] })).key;
});

afterAll(() => api?.close());

/** 4 kB of a payload, and a filter that multiplied it by itself: it took 17 seconds of the event loop. */
const squared = `{{ event.x | has_exp: "a", "event.x | has_exp: 'b', 'b == 1'" }}`;
const loops = "{% for i in (1..99999) %}{% for j in (1..99999) %}{% endfor %}{% endfor %}x";
const numbers = { x: Array<number>(2_000).fill(0) };

/** As a version before saved it. */
const save = (instructions: string): Promise<unknown> =>
  updateAutomation(api.database, api.organizationId, automationId, { instructions });
const preview = (event: unknown, key = viewerKey): Promise<Answer> =>
  api.post(`/automation/${automationId}/preview`, { event }, { key });

test("instructions with a filter that evaluates text are not saved", async () => {
  for (const filter of ["has_exp", "find_exp", "find_index_exp", "where_exp", "reject_exp", "group_by_exp"]) {
    const instructions = `{{ event.x | ${filter}: "a", "a == 1" }}`;
    const error = expect.stringContaining(`undefined filter: ${filter}`) as string;
    const created = await api.post("/automation/create", { name: "a", macro: "a", instructions });
    expect(created).toMatchObject({ status: 400, body: { error } });
    const updated = await api.post(`/automation/${automationId}/update`, { instructions });
    expect(updated).toMatchObject({ status: 400, body: { error } });
  }
});

test("instructions that were saved before with such a filter are refused where they are rendered, and their job fails once", async () => {
  await save(squared);
  expect(await preview(numbers)).toMatchObject({
    status: 400,
    body: { error: expect.stringContaining("undefined filter: has_exp") as string },
  });
  const { body: triggered } = await api.post(`/automation/${automationId}/trigger`, numbers);
  const job = await claimJob(api.database, { worker: "worker", leaseMs: 60_000 });
  if (job === null) throw new Error("no job was pending");
  const { database, templates } = api;
  await runJob(
    { database, templates, logger: createLogger("silent"), traces: noTraces, ...noForge, sandboxed: true },
    job,
  );
  expect((await api.get(`/job/${triggered.id}`)).body).toMatchObject({
    status: "failed",
    error: expect.stringContaining("undefined filter: has_exp") as string,
  });
  expect(await claimJob(api.database, { worker: "worker", leaseMs: 60_000 })).toBeNull();
});

test("a preview that takes too much is answered with 400 and the limit", async () => {
  await save(loops);
  expect(await preview({})).toMatchObject({
    status: 400,
    body: { error: expect.stringContaining("100 ms of processor time") as string },
  });
});

test("many hostile previews at once are answered with 400 or 429, and meanwhile other requests and another key's preview with 200", async () => {
  await save(loops);
  const { body: good } = await api.post("/automation/create", {
    name: "b",
    macro: "b",
    instructions: "Fix {{ event.x }}",
  });
  const hostile = Promise.all(Array.from({ length: 40 }, () => preview({})));
  const other = await api.post(`/automation/${good.id}/preview`, { event: { x: 1 } });
  expect(other).toMatchObject({ status: 200, body: { prompt: "Fix 1" } });
  const listed = await api.get("/automation/list");
  expect(listed.status).toBe(200);
  const answers = await hostile;
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([400, 429]));
  for (const { status, headers } of answers) expect(headers["retry-after"]).toBe(status === 429 ? "1" : undefined);
});

test("an event is not larger in the database than it was sent", async () => {
  const trigger = (items: string): Promise<Answer> =>
    api.request("POST", `/automation/${automationId}/trigger`, { raw: `{"x":[${items}]}` });
  for (const number of ["1e308", "-1e308", "5e-324"]) {
    const count = Math.floor(1_000_000 / (number.length + 1));
    expect(await trigger(Array(count).fill(number).join())).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("numbers with a large exponent") as string },
    });
  }
  for (const usual of ["1e308", "1.5", "123456789", "1e21"]) {
    expect((await trigger(Array(1_000).fill(usual).join())).status).toBe(200);
  }
  expect((await trigger(Array(100_000).fill("123456789").join())).status).toBe(200);
});

test("a hundred thousand characters of anything are saved or refused as instructions, and nothing breaks", async () => {
  for (const unit of ["{%", "{{", "{% if a %}", "{{ a[", '{{ "', "{% liquid\n", "\ud800", "a"]) {
    const instructions = unit.repeat(Math.floor(100_000 / unit.length));
    const { status } = await api.post(`/automation/${automationId}/update`, { instructions });
    expect([200, 400]).toContain(status);
  }
});
