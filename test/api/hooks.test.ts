import { createHmac, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { claimJob, completeJob } from "../../src/store/automations/jobs.ts";
import { createMask } from "../../src/domain/masking/mask.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { releaseJobs } from "../../src/worker/background/held-jobs.ts";
import { addPerson, addSession } from "../store/fixtures.ts";
import { createTestApp, type Answer, type TestApp } from "./app.ts";

let api: TestApp;
const metrics = createMetrics();
const serverSecret = "what-the-server-keeps";
beforeAll(async () => {
  api = await createTestApp({ metrics, maskOf: () => Promise.resolve(createMask([serverSecret])) });
});
afterAll(() => api.close());

interface Hook {
  readonly automationId: string;
  readonly id: string;
  readonly path: string;
  readonly secret: string | undefined;
}

async function addHook(trigger: object = {}): Promise<Hook> {
  const macro = `m-${randomUUID().slice(0, 13)}`;
  const { status, body } = await api.post("/automation/create", {
    name: macro,
    macro,
    instructions: "Work",
    triggers: [{ type: "webhook", ...trigger }],
  });
  expect([status, body.error]).toEqual([200, undefined]);
  const { id, url, secret } = body.triggers[1];
  expect(url).toBe(`http://offstage.test/hook/${id}`);
  return { automationId: body.id, id, path: `/hook/${id}`, secret };
}

const deliver = (hook: { readonly path: string }, raw: string, headers: Record<string, string> = {}): Promise<Answer> =>
  api.request("POST", hook.path, { key: null, raw, headers });
const entry = async (id: string) => (await api.get(`/ledger/${id}`)).body;
const entriesOf = async (hook: Hook) => (await api.get(`/ledger/list?automationId=${hook.automationId}`)).body.entries;

describe("a webhook", () => {
  test("starts a run with its body as the event, without a key", async () => {
    const hook = await addHook();
    const answer = await deliver(hook, '{"issue":{"number":7}}');
    expect(answer).toMatchObject({
      status: 202,
      body: { outcome: "accepted", ledgerId: expect.any(String) as string },
    });
    expect(await entry(answer.body.ledgerId)).toMatchObject({
      automationId: hook.automationId,
      triggerId: hook.id,
      outcome: null,
      payload: { issue: { number: 7 } },
    });
    const job = await claimJob(api.database, { worker: "worker", leaseMs: 60_000 });
    expect(job).toMatchObject({ id: answer.body.ledgerId, payload: { issue: { number: 7 } } });
  });

  test("takes a form, a list and an empty body", async () => {
    const hook = await addHook();
    const form = await deliver(hook, "a=1&b=x+y", { "content-type": "application/x-www-form-urlencoded" });
    expect((await entry(form.body.ledgerId)).payload).toEqual({ a: "1", b: "x y" });
    const list = await deliver(hook, "[1]");
    expect((await entry(list.body.ledgerId)).payload).toEqual({ body: [1] });
    expect((await entry((await deliver(hook, "")).body.ledgerId)).payload).toEqual({});
    const nul = await deliver(hook, String.raw`{"a":"\u0000\ud800"}`);
    expect((await entry(nul.body.ledgerId)).payload).toEqual({ a: "\u2400\ufffd" });
  });

  test.each([
    ["what is no JSON", "not JSON", "JSON"],
    ["what is nested too deep", `${'{"a":'.repeat(100)}1${"}".repeat(100)}`, "deep"],
  ])("refuses %s with 400", async (_, raw, word) => {
    const { status, body } = await deliver(await addHook(), raw);
    expect({ status, error: body.error }).toEqual({ status: 400, error: expect.stringContaining(word) as string });
  });

  test("keeps each digit of a number that JavaScript can't hold", async () => {
    const event = '{"id":12345678901234567890,"rate":1e400,"number":7}';
    const payload = { id: "12345678901234567890", rate: "1e400", number: 7 };
    const hook = await addHook({ condition: 'event.id == "12345678901234567890"' });
    const { body } = await deliver(hook, event);
    expect(body.outcome).toBe("accepted");
    expect((await entry(body.ledgerId)).payload).toEqual(payload);
    // So does the trigger of the API, for which two such numbers are two bodies.
    const path = `/automation/${hook.automationId}/trigger`;
    const headers = { "idempotency-key": randomUUID() };
    const started = await api.request("POST", path, { raw: event, headers });
    expect((await entry(started.body.id)).payload).toEqual(payload);
    expect((await api.request("POST", path, { raw: event.replace("890,", "891,"), headers })).status).toBe(409);
    const sample = { instructions: "{{ event.id }}", event: 0 };
    const raw = JSON.stringify(sample).replace('"event":0', `"event":${event}`);
    expect((await api.request("POST", "/automation/preview", { raw })).body.prompt).toBe("12345678901234567890");
  });

  test("whose condition quotes NUL in its problem is answered, and says so", async () => {
    const hook = await addHook({ condition: String.raw`event["a\u0000"] == 1` });
    for (const raw of ["{}", '{"a":1}']) {
      const { status, body } = await deliver(hook, raw);
      expect([status, body.outcome]).toEqual([202, "filtered"]);
    }
    const { triggers } = (await api.get(`/automation/${hook.automationId}`)).body;
    expect(triggers[1].problem).toBe("condition: No such key: a\u2400");
  });

  test("takes a form whatever its content type's capitals, and says of a compressed body what to do", async () => {
    const hook = await addHook();
    const form = await deliver(hook, "a=1", { "content-type": "Application/X-WWW-Form-Urlencoded; Charset=UTF-8" });
    expect((await entry(form.body.ledgerId)).payload).toEqual({ a: "1" });
    const packed = await deliver(hook, "\u001f\u008b\u0008", { "content-encoding": "gzip" });
    expect([packed.status, packed.body.error]).toEqual([400, expect.stringContaining("gzip")]);
  });

  test("takes exactly 1 MiB", async () => {
    const hook = await addHook();
    const raw = `"${"x".repeat(1024 * 1024 - 2)}"`;
    expect((await deliver(hook, raw)).body.outcome).toBe("accepted");
    expect((await deliver(hook, `${raw} `)).status).toBe(413);
  });

  test("refuses more than 1 MiB with 413, and another id with 404", async () => {
    const hook = await addHook();
    expect((await deliver(hook, JSON.stringify({ a: "x".repeat(1024 * 1024) }))).status).toBe(413);
    expect((await deliver({ path: `/hook/${randomUUID()}` }, "{}")).status).toBe(404);
    expect((await deliver({ path: "/hook/nothing" }, "{}")).status).toBe(404);
    const { automationId } = hook;
    expect((await deliver({ path: `/hook/${automationId}` }, "{}")).status).toBe(404);
  });

  test("whose automation is deleted or paused starts nothing", async () => {
    const hook = await addHook();
    await api.post(`/automation/${hook.automationId}/update`, { paused: true });
    const paused = await deliver(hook, "{}");
    expect(paused).toMatchObject({ status: 202, body: { outcome: "filtered" } });
    expect(await entry(paused.body.ledgerId)).toMatchObject({
      outcome: "filtered",
      reason: "the automation is paused",
    });
    await api.post(`/automation/${hook.automationId}/delete`, {});
    expect((await deliver(hook, "{}")).status).toBe(404);
  });
});

describe("a signed webhook", () => {
  const sign = (secret: string, raw: string): string => createHmac("sha256", secret).update(raw).digest("hex");
  const verify = { type: "hmac", header: "X-Signature", prefix: "sha256=" };

  test("takes what is signed with its secret over the raw bytes alone", async () => {
    const hook = await addHook({ verify });
    const secret = hook.secret ?? "";
    expect(secret).toMatch(/^[0-9a-f]{64}$/u);
    const raw = '{ "b":1,\r\n"a" : "\\u00e9" }';
    const signed = { "x-signature": `sha256=${sign(secret, raw)}` };
    expect((await deliver(hook, raw, signed)).body.outcome).toBe("accepted");
    for (const [body, headers] of [
      [raw, {}],
      [`${raw} `, signed],
      [raw, { "x-signature": sign(secret, raw) }],
      [raw, { "x-signature": `sha256=${sign("other", raw)}` }],
    ] as const) {
      const { status, body: answer } = await deliver(hook, body, headers);
      expect({ status, error: answer.error }).toEqual({
        status: 401,
        error: expect.stringContaining("signature") as string,
      });
    }
    expect(await entriesOf(hook)).toHaveLength(1);
    expect((await metrics.scrape()).text).toMatch(/offstage_received_deliveries_total\{outcome="refused"\} 4/u);
  });

  test("counts its secret on another node no longer than until it was replaced twice, paused or deleted", async () => {
    const hook = await addHook({ verify });
    const other = await api.another();
    const old = hook.secret ?? "";
    let n = 0;
    const there = async () => {
      const payload = JSON.stringify({ n: (n += 1) });
      const headers = { "content-type": "application/json", "x-signature": `sha256=${sign(old, payload)}` };
      const { statusCode, json } = await other.inject({ method: "POST", url: hook.path, headers, payload });
      return [statusCode, json<{ outcome?: string }>().outcome];
    };
    expect(await there()).toEqual([202, "accepted"]);
    // That node keeps the trigger in memory now.
    expect(await there()).toEqual([202, "accepted"]);
    const path = `/automation/${hook.automationId}`;
    await api.post(`${path}/update`, { paused: true });
    expect(await there()).toEqual([202, "filtered"]);
    await api.post(`${path}/update`, { paused: false });
    expect(await there()).toEqual([202, "accepted"]);
    await api.post(`${path}/trigger/${hook.id}/rotate`, {});
    expect(await there()).toEqual([202, "accepted"]);
    const { secret } = (await api.post(`${path}/trigger/${hook.id}/rotate`, {})).body;
    expect(await there()).toEqual([401, undefined]);
    // The new secret counts at once, although the node has the one before in memory.
    const payload = "{}";
    const headers = { "content-type": "application/json", "x-signature": `sha256=${sign(secret, payload)}` };
    expect((await other.inject({ method: "POST", url: hook.path, headers, payload })).statusCode).toBe(202);
    await api.post(`${path}/delete`, {});
    expect((await other.inject({ method: "POST", url: hook.path, headers, payload })).statusCode).toBe(404);
    expect((await entriesOf(hook)).length).toBe(6);
  });

  test("keeps its secret over an update, takes the old one for a day after a rotation, and never shows it again", async () => {
    const hook = await addHook({ verify });
    const old = hook.secret ?? "";
    const { triggers } = (await api.get(`/automation/${hook.automationId}`)).body;
    expect(JSON.stringify(triggers)).not.toContain(old);
    const updated = await api.post(`/automation/${hook.automationId}/update`, { triggers });
    expect(updated.body.triggers[1]).toMatchObject({ id: hook.id });
    expect(updated.body.triggers[1].secret).toBeUndefined();
    const rotated = await api.post(`/automation/${hook.automationId}/trigger/${hook.id}/rotate`, {});
    expect(rotated).toMatchObject({ status: 200, body: { id: hook.id } });
    const fresh = rotated.body.secret;
    expect(fresh).not.toBe(old);
    for (const secret of [old, fresh]) {
      const raw = JSON.stringify({ secret: sign(secret, "x") });
      expect((await deliver(hook, raw, { "x-signature": `sha256=${sign(secret, raw)}` })).body.outcome).toBe(
        "accepted",
      );
    }
    const { rows } = await api.database.pool.query("select 1 from trigger where sealed::text like $1", [`%${fresh}%`]);
    expect(rows).toEqual([]);
  });

  test("by Standard Webhooks needs a fresh time", async () => {
    const hook = await addHook({ verify: { type: "standardWebhooks" } });
    const key = Buffer.from((hook.secret ?? "").replace("whsec_", ""), "base64");
    const headers = (at: number, id: string): Record<string, string> => ({
      "webhook-id": id,
      "webhook-timestamp": String(at),
      "webhook-signature": `v1,${createHmac("sha256", key).update(`${id}.${at}.{}`).digest("base64")}`,
    });
    const now = Math.floor(Date.now() / 1_000);
    expect((await deliver(hook, "{}", headers(now, "a"))).body.outcome).toBe("accepted");
    expect((await deliver(hook, "{}", headers(now - 3_600, "b"))).status).toBe(401);
  });

  test("can have the sender's own secret", async () => {
    const hook = await addHook({ verify, secret: "the sender's" });
    expect(hook.secret).toBeUndefined();
    expect((await deliver(hook, "{}", { "x-signature": `sha256=${sign("the sender's", "{}")}` })).status).toBe(202);
  });

  test("refuses a secret that is no key", async () => {
    const odd = await api.post("/automation/create", {
      name: "a",
      macro: `m-${randomUUID().slice(0, 13)}`,
      instructions: "x",
      triggers: [{ type: "webhook", verify: { type: "standardWebhooks" }, secret: "no key!" }],
    });
    expect([odd.status, odd.body.error]).toEqual([400, expect.stringContaining("triggers.0.secret") as string]);
  });

  test("is found in capitals too", async () => {
    const hook = await addHook({ verify, secret: "s" });
    const path = `/hook/${hook.id.toUpperCase()}`;
    expect((await deliver({ path }, "{}", { "x-signature": `sha256=${sign("s", "{}")}` })).status).toBe(202);
  });

  test("without a secret gets another address by a rotation", async () => {
    const hook = await addHook();
    const { body } = await api.post(`/automation/${hook.automationId}/trigger/${hook.id}/rotate`, {});
    expect(body.id).not.toBe(hook.id);
    expect((await deliver(hook, "{}")).status).toBe(404);
    expect((await deliver({ path: `/hook/${body.id}` }, "{}")).status).toBe(202);
  });
});

describe("a second delivery", () => {
  test("with the same id starts nothing, however many come at once", async () => {
    const hook = await addHook();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => deliver(hook, `{"n":${index}}`, { "webhook-id": "one" })),
    );
    const accepted = answers.filter(({ body }) => body.outcome === "accepted");
    expect(accepted).toHaveLength(1);
    const first = accepted[0]?.body.ledgerId;
    for (const { body } of answers) expect(body.ledgerId).toBe(first);
    const entries = await entriesOf(hook);
    expect(entries.filter(({ outcome }: { outcome: string }) => outcome === "duplicate")).toHaveLength(9);
  });

  test("with the same body under another id starts nothing, unless its sender repeats bodies on purpose", async () => {
    const outcomesOf = async (hook: Awaited<ReturnType<typeof addHook>>) => {
      const outcomes: string[] = [];
      for (const [raw, id] of [
        ['{"a":1}', "one"],
        ['{"a":1}', "two"],
        ['{"a":2}', "three"],
        ['{"a":1}', "one"],
      ] as const)
        outcomes.push((await deliver(hook, raw, { "webhook-id": id })).body.outcome);
      return outcomes;
    };
    expect(await outcomesOf(await addHook())).toEqual(["accepted", "duplicate", "accepted", "duplicate"]);
    const repeating = await addHook({ deduplicateBy: "id" });
    expect(await outcomesOf(repeating)).toEqual(["accepted", "accepted", "accepted", "duplicate"]);
    // It has no id to go by.
    expect((await deliver(repeating, '{"a":1}')).body.outcome).toBe("accepted");
  });

  test("with the same body and no id is distinguished from one with another body", async () => {
    const hook = await addHook();
    const outcomes = [];
    for (const raw of ['{"a":1}', '{"a":1}', '{"a":2}']) outcomes.push((await deliver(hook, raw)).body.outcome);
    expect(outcomes).toEqual(["accepted", "duplicate", "accepted"]);
    // Of another day it is news.
    await api.database.pool.query("delete from received_key where scope = $1", [hook.id]);
    expect((await deliver(hook, '{"a":1}')).body.outcome).toBe("accepted");
  });
});

test("automations that start each other by webhooks of Offstage come to an end, and none starts itself", async () => {
  const told = (id: string, organizationId = api.organizationId) =>
    JSON.stringify({ type: "job.completed", timestamp: new Date().toISOString(), data: { organizationId, id } });
  const hooks: Hook[] = [];
  for (let count = 0; count < 7; count += 1) hooks.push(await addHook());
  const [first, ...others] = hooks;
  if (first === undefined) throw new Error("no automation was added");
  let last: string = (await api.post(`/automation/${first.automationId}/trigger`, {})).body.id;
  const runs: string[] = [last];
  const outcomes: string[] = [];
  for (const hook of others) {
    const { body } = await deliver(hook, told(last));
    outcomes.push(body.outcome);
    if (body.outcome === "accepted") runs.push((last = body.ledgerId));
  }
  expect(outcomes).toEqual(["accepted", "accepted", "accepted", "accepted", "filtered", "filtered"]);
  const [refused] = await entriesOf(others.at(-1) ?? first);
  expect(refused.reason).toBe("it ends a chain of 5 runs of which each started the next");

  // Its own run, and one that it led to, by its address and by the API; another's of the same organization does.
  for (const id of runs.slice(0, 2)) expect((await deliver(first, told(id))).body.outcome).toBe("filtered");
  const { body: queued } = await api.post(`/automation/${first.automationId}/trigger`, JSON.parse(told(last)));
  expect(queued).toMatchObject({ status: "cancelled" });
  expect((await entry(queued.id)).reason).toBe("a run of its own automation led to it");
  const session = await addSession(api.database, api.organizationId, { automationId: first.automationId, jobId: last });
  const ofSession = told(session.id).replace("job.completed", "session.failed");
  expect((await deliver(first, ofSession)).body.outcome).toBe("filtered");
  const { body: unrelated } = await api.post(`/automation/${others[0]?.automationId}/trigger`, {});
  expect((await deliver(first, told(unrelated.id))).body.outcome).toBe("accepted");
  // What another Offstage says of its own is an event like any other, and so is what only looks like one.
  expect((await deliver(first, told(last, randomUUID()))).body.outcome).toBe("accepted");
  expect((await deliver(first, told("no id"))).body.outcome).toBe("accepted");
});

describe("a condition", () => {
  test("decides with the event, and its reason is in the ledger", async () => {
    const hook = await addHook({ condition: "event.issue.labels.exists(l, l == 'bug') && event.issue.number > 5" });
    const yes = await deliver(hook, '{"issue":{"number":7,"labels":["bug"]}}');
    expect(yes.body.outcome).toBe("accepted");
    const no = await deliver(hook, '{"issue":{"number":7,"labels":["task"]}}');
    expect(no.body.outcome).toBe("filtered");
    expect(await entry(no.body.ledgerId)).toMatchObject({
      outcome: "filtered",
      reason: "its condition does not hold",
      payload: { issue: { number: 7, labels: ["task"] } },
    });
  });

  test("that can't be evaluated starts nothing, and says why on the automation until it can", async () => {
    const hook = await addHook({ condition: "event.count + 1 > 2" });
    const problem = async () => (await api.get(`/automation/${hook.automationId}`)).body.triggers[1].problem;
    const bad = await deliver(hook, '{"count":"two"}');
    expect(bad.body.outcome).toBe("filtered");
    expect((await entry(bad.body.ledgerId)).reason).toMatch(/^condition: no such overload/u);
    expect(await problem()).toMatch(/^condition: no such overload/u);
    expect((await deliver(hook, '{"count":2}')).body.outcome).toBe("accepted");
    expect(await problem()).toBeNull();
  });

  test("that would take hours is ended, and others go on", async () => {
    const nested = "event.x.exists(a, event.x.exists(b, event.x.exists(c, event.x.exists(d, a + b + c + d < 0))))";
    const hook = await addHook({ condition: nested });
    const other = await addHook({ condition: "event.x.size() == 400" });
    const raw = JSON.stringify({ x: Array.from({ length: 400 }, () => 1) });
    const [slow, quick] = await Promise.all([deliver(hook, raw), deliver(other, raw)]);
    expect((await entry(slow.body.ledgerId)).reason).toContain("processor time");
    expect(quick.body.outcome).toBe("accepted");
  });

  test.each([
    ["event.a ==", "condition: Unexpected token"],
    ["unknown == 1", "condition: Unknown variable: unknown"],
    ["'text'", "condition: gives a string, and must give a bool"],
  ])("is checked when it is saved: %s", async (condition, error) => {
    const { status, body } = await api.post("/automation/create", {
      name: "a",
      macro: `m-${randomUUID().slice(0, 13)}`,
      instructions: "x",
      triggers: [{ type: "webhook" }, { type: "webhook", condition }],
    });
    expect({ status, error: body.error }).toEqual({
      status: 400,
      error: expect.stringContaining(`triggers[1].${error}`) as string,
    });
  });
});

describe("a policy", () => {
  const byIssue = (policy: string) => ({ concurrency: { key: "'issue ' + string(event.issue)", policy } });
  const send = async (hook: Hook, issue: number, more = 0): Promise<string> =>
    (await deliver(hook, JSON.stringify({ issue, more: more + Math.random() }))).body.ledgerId;

  /** Claims what may be claimed, of all automations, and gives each a session. */
  async function runAll(): Promise<string[]> {
    const ids: string[] = [];
    await releaseJobs(api.database, createLogger("silent"));
    for (;;) {
      const job = await claimJob(api.database, { worker: "worker", leaseMs: 60_000 });
      if (job === null) return ids;
      const session = await addSession(api.database, api.organizationId, {
        automationId: job.automation.id,
        jobId: job.id,
      });
      await completeJob(api.database.pool, job, session.id);
      ids.push(job.id);
    }
  }
  const endOf = (jobId: string): Promise<unknown> =>
    api.database.pool.query(
      "update session set status = 'completed', finished_at = now() where id = (select session_id from job where id = $1)",
      [jobId],
    );

  test("skip starts nothing while a run of its key is under way", async () => {
    const hook = await addHook(byIssue("skip"));
    const first = await send(hook, 1);
    await runAll();
    expect(await entry(await send(hook, 1))).toMatchObject({
      outcome: "filtered",
      reason: 'a run of "issue 1" is under way (concurrency: skip)',
    });
    expect((await entry(await send(hook, 2))).outcome).toBeNull();
    await endOf(first);
    expect((await entry(await send(hook, 1))).outcome).toBeNull();
  });

  test("queue runs one after the other, in the order in which they came", async () => {
    const hook = await addHook(byIssue("queue"));
    const ids = [await send(hook, 1), await send(hook, 1), await send(hook, 1), await send(hook, 2)];
    const ran = (await runAll()).filter((id) => ids.includes(id));
    expect(new Set(ran)).toEqual(new Set([ids[0], ids[3]]));
    expect((await runAll()).filter((id) => ids.includes(id))).toEqual([]);
    await endOf(ids[0] ?? "");
    expect((await runAll()).filter((id) => ids.includes(id))).toEqual([ids[1]]);
    await endOf(ids[1] ?? "");
    expect((await runAll()).filter((id) => ids.includes(id))).toEqual([ids[2]]);
  });

  test("cancelOlder ends what is under way, and what waits", async () => {
    const hook = await addHook(byIssue("cancelOlder"));
    const first = await send(hook, 1);
    await runAll();
    const second = await send(hook, 1);
    const third = await send(hook, 1);
    expect(await entry(first)).toMatchObject({ outcome: "superseded" });
    expect(await entry(second)).toMatchObject({ outcome: "superseded", sessionId: null });
    expect((await entry(third)).outcome).toBeNull();
    expect(await claimJob(api.database, { worker: "worker", leaseMs: 60_000 })).toBeNull();
    const { sessionId } = await entry(first);
    await releaseJobs(api.database, createLogger("silent"));
    expect((await api.get(`/session/${sessionId}`)).body.status).toBe("cancelled");
    expect(await runAll()).toContain(third);
  });

  test("skip, queue and cancelOlder hold for deliveries at once", async () => {
    for (const policy of ["skip", "queue", "cancelOlder"]) {
      const hook = await addHook(byIssue(policy));
      const ids = await Promise.all(Array.from({ length: 8 }, () => send(hook, 1)));
      expect([policy, (await runAll()).filter((id) => ids.includes(id)).length]).toEqual([policy, 1]);
    }
  });

  test("debounce runs the newest once it is quiet", async () => {
    const hook = await addHook({ debounceSeconds: 60, concurrency: { key: "string(event.issue)", policy: "queue" } });
    const ids = [await send(hook, 1), await send(hook, 1), await send(hook, 1), await send(hook, 2)];
    expect((await runAll()).filter((id) => ids.includes(id))).toEqual([]);
    for (const id of ids.slice(0, 2)) expect(await entry(id)).toMatchObject({ outcome: "superseded" });
    const { rows } = await api.database.pool.query<{ seconds: number }>(
      "select extract(epoch from held_until - created_at)::float8 as seconds from job where id = $1",
      [ids[2]],
    );
    expect(rows[0]?.seconds).toBeCloseTo(60, 0);
    await api.database.pool.query(
      "update job set held_until = now() where trigger_id = $1 and held_until is not null",
      [hook.id],
    );
    expect(new Set((await runAll()).filter((id) => ids.includes(id)))).toEqual(new Set([ids[2], ids[3]]));
  });

  test("debounce with skip and maxPerHour runs the newest too", async () => {
    const concurrency = { key: "'one'", policy: "skip" };
    const hook = await addHook({ debounceSeconds: 60, maxPerHour: 1, concurrency });
    const ids = [await send(hook, 1), await send(hook, 1), await send(hook, 1)];
    for (const id of ids.slice(0, 2)) expect(await entry(id)).toMatchObject({ outcome: "superseded" });
    await api.database.pool.query(
      "update job set held_until = now() where trigger_id = $1 and held_until is not null",
      [hook.id],
    );
    expect((await runAll()).filter((id) => ids.includes(id))).toEqual([ids[2]]);
    expect((await entry(await send(hook, 1))).reason).toContain("maxPerHour");
  });

  test("cancelOlder does not start more runs than maxPerHour", async () => {
    const hook = await addHook({ ...byIssue("cancelOlder"), maxPerHour: 2 });
    const outcomes = [];
    for (let count = 0; count < 5; count += 1) {
      outcomes.push((await deliver(hook, JSON.stringify({ issue: 1, count }))).body.outcome);
      await runAll();
    }
    expect(outcomes).toEqual(["accepted", "accepted", "filtered", "filtered", "filtered"]);
  });

  test("cancelOlder leaves a run that is over as it was", async () => {
    const hook = await addHook(byIssue("cancelOlder"));
    const first = await send(hook, 1);
    await runAll();
    await endOf(first);
    await send(hook, 1);
    expect((await entry(first)).outcome).toBe("fired");
  });

  test("what waits starts nothing once its automation is deleted, and waits on while it is paused", async () => {
    const hook = await addHook(byIssue("queue"));
    const ids = [await send(hook, 1), await send(hook, 1), await send(hook, 1)];
    await runAll();
    await endOf(ids[0] ?? "");
    await api.post(`/automation/${hook.automationId}/update`, { paused: true });
    expect((await runAll()).filter((id) => ids.includes(id))).toEqual([]);
    await api.post(`/automation/${hook.automationId}/update`, { paused: false });
    expect((await runAll()).filter((id) => ids.includes(id))).toEqual([ids[1]]);
    await api.post(`/automation/${hook.automationId}/delete`, {});
    await releaseJobs(api.database, createLogger("silent"));
    expect(await entry(ids[2] ?? "")).toMatchObject({
      outcome: "filtered",
      reason: "its automation or its trigger was deleted or disabled while it waited",
    });
  });

  test("a thousand keys that are busy hold up no other", async () => {
    const busy = await addHook(byIssue("queue"));
    const { pool } = api.database;
    await pool.query(
      `insert into job (id, organization_id, automation_id, trigger_id, priority, payload, status, concurrency_key, holds_key, held_until, created_at)
       select gen_random_uuid(), $1, $2, $3, 5, '{}', case n when 1 then 'running' else 'pending' end, 'k' || k, true,
         case n when 2 then 'infinity'::timestamptz end, now() - interval '1 day'
       from generate_series(1, 1001) as k, generate_series(1, 2) as n`,
      [api.organizationId, busy.automationId, busy.id],
    );
    const hook = await addHook({ debounceSeconds: 60 });
    const id = await send(hook, 1);
    await pool.query("update job set held_until = now() where id = $1", [id]);
    await releaseJobs(api.database, createLogger("silent"));
    const { rows } = await pool.query<{ held: boolean }>(
      "select held_until is not null as held from job where id = $1",
      [id],
    );
    expect(rows).toEqual([{ held: false }]);
    await pool.query("delete from job where trigger_id = $1", [busy.id]);
  });

  test("debounce puts off ten times at most", async () => {
    const hook = await addHook({ debounceSeconds: 60 });
    await send(hook, 1);
    await api.database.pool.query("update job set held_since = now() - interval '590 seconds' where trigger_id = $1", [
      hook.id,
    ]);
    const last = await send(hook, 1);
    const { rows } = await api.database.pool.query<{ seconds: number }>(
      "select extract(epoch from held_until - now())::float8 as seconds from job where id = $1",
      [last],
    );
    expect(rows[0]?.seconds).toBeLessThan(11);
  });

  test("maxPerHour holds for deliveries at once", async () => {
    const hook = await addHook({ maxPerHour: 3 });
    const answers = await Promise.all(Array.from({ length: 9 }, (_, n) => deliver(hook, `{"n":${n}}`)));
    expect(answers.filter(({ body }) => body.outcome === "accepted")).toHaveLength(3);
    const filtered = answers.find(({ body }) => body.outcome === "filtered");
    expect((await entry(filtered?.body.ledgerId)).reason).toContain("maxPerHour");
  });
});

describe("the trigger of the API", () => {
  async function withApiTrigger(trigger: object): Promise<string> {
    const { body } = await api.post("/automation/create", {
      name: "a",
      macro: `m-${randomUUID().slice(0, 13)}`,
      instructions: "x",
      triggers: [{ type: "api", ...trigger }],
    });
    return body.id;
  }

  test("is always there, and has the automation's id", async () => {
    const { body } = await api.post("/automation/create", { name: "a", macro: "plain-one", instructions: "x" });
    expect(body.triggers).toEqual([
      {
        id: body.id,
        type: "api",
        enabled: true,
        condition: "",
        concurrency: null,
        debounceSeconds: null,
        maxPerHour: null,
        problem: null,
      },
    ]);
  });

  test("can be disabled", async () => {
    const id = await withApiTrigger({ enabled: false });
    const { status, body } = await api.post(`/automation/${id}/trigger`, {});
    expect({ status, error: body.error }).toEqual({
      status: 409,
      error: expect.stringContaining("disabled") as string,
    });
  });

  test("can have a condition: what does not hold is a cancelled job, and filtered in the ledger", async () => {
    const id = await withApiTrigger({ condition: "event.go" });
    expect((await api.post(`/automation/${id}/trigger`, { go: true })).body.status).toBe("pending");
    const { status, body } = await api.post(`/automation/${id}/trigger`, { go: false });
    expect({ status, job: body.status }).toEqual({ status: 200, job: "cancelled" });
    expect((await entry(body.id)).outcome).toBe("filtered");
    expect((await api.get(`/job/${body.id}`)).body).toMatchObject({
      status: "cancelled",
      error: "its condition does not hold",
    });
  });
});

describe("a ledger entry", () => {
  test("that was filtered can be replayed, and then runs whatever the condition says", async () => {
    const hook = await addHook({ condition: "false" });
    const { ledgerId } = (await deliver(hook, '{"a":1}')).body;
    const { status, body } = await api.post(`/ledger/${ledgerId}/replay`, {});
    expect({ status, job: body.status }).toEqual({ status: 200, job: "pending" });
    expect(await entry(body.id)).toMatchObject({
      originalId: ledgerId,
      payload: { a: 1 },
      automationId: hook.automationId,
    });
  });

  test("is shown without the organization's secrets", async () => {
    await api.post("/secret/create", { name: "TOKEN", value: "swordfish-9000", phases: ["setup"] });
    const hook = await addHook();
    const { ledgerId } = (await deliver(hook, '{"a":{"b":["x swordfish-9000 y"]}}')).body;
    expect((await entry(ledgerId)).payload).toEqual({ a: { b: ["x [secret] y"] } });
  });

  test("is shown without what signs deliveries, reaches forges and writes answers, or is the server's", async () => {
    const signed = await addHook({ verify: { type: "standardWebhooks" } });
    const slack = { type: "source", source: "slack", secret: "slack-signing-secret" };
    const automation = { name: "s", macro: `m-${randomUUID().slice(0, 13)}`, instructions: "Work" };
    const replyToken = "xoxb-what-writes-answers";
    const { status } = await api.post("/automation/create", { ...automation, triggers: [{ ...slack, replyToken }] });
    expect(status).toBe(200);
    const { body: connection } = await api.post("/connection/create", {
      kind: "gitea",
      webUrl: "https://git.example.com",
      credential: { type: "token", token: "token-of-a-connection" },
    });
    const registry = { kind: "npm", url: "https://npm.example.com", token: "token-of-a-registry" };
    expect((await api.post("/registry/create", registry)).status).toBe(200);
    const { key } = await addPerson(api.database, api.organizationId, { name: "Ada" });
    const account = { webUrl: "https://git.example.com", token: "token-of-a-person" };
    expect((await api.post("/account/create", account, { key })).status).toBe(200);
    const { body: webhook } = await api.post("/webhook/create", { url: "https://receiver.example.com/", events: [] });
    const secrets = [
      signed.secret,
      slack.secret,
      replyToken,
      connection.webhookSecret,
      registry.token,
      account.token,
      webhook.secret,
      serverSecret,
    ];
    const hook = await addHook();
    const { ledgerId } = (await deliver(hook, JSON.stringify({ secrets, other: "in the clear" }))).body;
    expect((await entry(ledgerId)).payload).toEqual({
      secrets: secrets.map(() => "[secret]"),
      other: "in the clear",
    });
  });
});

test("triggers are changed as a whole: kept by id, added without one, removed if they are missing", async () => {
  const hook = await addHook();
  const change = (triggers: unknown) => api.post(`/automation/${hook.automationId}/update`, { triggers });
  const added = await change([{ type: "webhook", id: hook.id, maxPerHour: 5 }, { type: "webhook" }]);
  expect(added.body.triggers).toMatchObject([{ type: "api" }, { id: hook.id, maxPerHour: 5 }, { type: "webhook" }]);
  const removed = await change([{ type: "webhook", id: added.body.triggers[2].id }]);
  expect(removed.body.triggers).toHaveLength(2);
  expect((await deliver(hook, "{}")).status).toBe(404);
  for (const [triggers, error] of [
    [[{ type: "webhook", id: randomUUID() }], "triggers[0].id"],
    [[{ type: "schedule", cron: "* * *" }], "triggers.0.cron must be five fields"],
    [[{ type: "schedule", cron: "@daily" }], "triggers.0.cron must be five fields"],
    [[{ type: "schedule", cron: "0 0 31 2 *" }], "triggers.0.cron: never comes"],
    [[{ type: "schedule", cron: "0 9 * * *", timeZone: "Mars/Olympus" }], "triggers.0.timeZone"],
    [[{ type: "forge", events: ["issue.eaten"] }], "triggers.0.events"],
    [[{ type: "api", id: randomUUID() }], "triggers[0].id"],
    [[{ type: "nothing" }], "triggers.0"],
  ] as const) {
    const { status, body } = await change(triggers);
    expect({ status, error: body.error }).toEqual({ status: 400, error: expect.stringContaining(error) as string });
  }
});
