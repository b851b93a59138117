import { afterAll, beforeAll, expect, test } from "vitest";
import { createKey } from "../../src/store/people/keys.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
let viewerKey: string;
const repository = { url: "https://github.com/acme/one", fullName: "acme/one", defaultBranch: "main" };
const issue = { number: 7, title: "Crash", labels: ["bug"] };
const forge = { type: "forge", events: ["issue.opened"] };

beforeAll(async () => {
  api = await createTestApp();
  viewerKey = (await createKey(api.database, api.organizationId, { name: "viewer", scopes: ["read"] })).key;
});
afterAll(() => api?.close());

const preview = (body: object) => api.post("/automation/preview", body, { key: viewerKey });

test("a draft is rendered, and each of its triggers says what it makes of the event", async () => {
  const { status, body } = await preview({
    name: "Fix",
    instructions: "Fix {{ event.issue.title }}",
    title: "Issue {{ event.issue.number }}",
    triggers: [
      {
        ...forge,
        condition: "event.issue.number == 7 && repository.name == 'acme/one'",
        repositories: ["github.com/acme/*"],
        concurrency: { key: "'issue ' + string(event.issue.number)", policy: "skip" },
      },
      { ...forge, events: ["push"], repositories: ["github.com/other/*"], condition: "event.issue.number == 8" },
      { type: "webhook", condition: "event.none.at == 1" },
      { type: "schedule", cron: "0 5 * * *", enabled: false, condition: "repository == null" },
      { type: "source", source: "sentry", events: ["issue.created"], condition: "'bug' in event.issue.labels" },
      { ...forge, condition: "event.issue.number +" },
    ],
    event: { name: "issue.opened", repository, issue },
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    prompt: "Fix Crash",
    title: "Issue 7",
    problem: null,
    eventName: "issue.opened",
    repository: { name: "acme/one", url: "https://github.com/acme/one" },
  });
  const saw = { id: null, enabled: true, passes: true, problem: null, concurrencyKey: null };
  expect(body.triggers).toEqual([
    { ...saw, type: "forge", listsEvent: true, listsRepository: true, concurrencyKey: "issue 7" },
    { ...saw, type: "forge", listsEvent: false, listsRepository: false, passes: false },
    {
      ...saw,
      type: "webhook",
      listsEvent: null,
      listsRepository: null,
      passes: null,
      problem: expect.stringContaining("No such key") as string,
    },
    { ...saw, type: "schedule", listsEvent: null, listsRepository: null, enabled: false },
    { ...saw, type: "source", listsEvent: false, listsRepository: null },
    {
      ...saw,
      type: "forge",
      listsEvent: true,
      listsRepository: true,
      passes: null,
      problem: expect.stringContaining("condition: ") as string,
    },
  ]);
});

test("a saved automation is previewed with changes, and a sample of a source", async () => {
  const instructions = "Fix {{ event.issue.key }}";
  const made = await api.post("/automation/create", {
    name: "Sentry",
    macro: "sentry",
    instructions,
    triggers: [{ type: "source", source: "sentry", events: ["issue.created"] }],
  });
  const saved = await preview({ automation: "sentry", sample: "sentry/issue.created" });
  expect(saved.body).toMatchObject({ prompt: "Fix FRONT-END-9", title: "Fix FRONT-END-9", eventName: "issue.created" });
  expect(saved.body.triggers).toMatchObject([
    { type: "api", id: made.body.id, listsEvent: null },
    { type: "source", id: made.body.triggers[1].id, listsEvent: true, passes: true },
  ]);
  const changed = { automation: made.body.id, instructions: "Look at {{ event.issue.title }}", triggers: [] };
  const other = await preview({ ...changed, sample: "sentry/issue.regressed" });
  expect(other.body).toMatchObject({
    prompt: "Look at ReferenceError: blooopy is not defined",
    eventName: "issue.regressed",
    triggers: [],
  });
  expect((await api.get("/automation/sentry")).body).toMatchObject({ instructions });
  expect((await api.get("/automation/sentry/runs")).body.runs).toEqual([]);
});

test("an entry of the ledger is previewed with its secrets masked, and no other organization's", async () => {
  const value = "a-secret-that-nobody-may-see";
  await api.post("/secret/create", { name: "TOKEN", value, phases: ["setup"] });
  await api.post("/automation/create", { name: "Echo", macro: "echo", instructions: "Say {{ event.text }}" });
  const { body: job } = await api.post("/automation/echo/trigger", { text: `it is ${value}` });
  const { status, body } = await preview({ automation: "echo", ledgerId: job.id });
  expect([status, body.problem]).toEqual([200, null]);
  expect(body.prompt).toMatch(/^Say it is /u);
  expect(JSON.stringify(body)).not.toContain(value);
  expect((await preview({ automation: "echo", ledgerId: crypto.randomUUID() })).status).toBe(404);
});

test("what can't be rendered is said beside what the triggers make of the event", async () => {
  const draft = {
    triggers: [{ ...forge, condition: "event.issue.number == 7" }],
    event: { name: "issue.opened", issue },
  };
  const loops = "{% for i in (1..99999) %}{% for j in (1..99999) %}{% endfor %}{% endfor %}x";
  for (const [instructions, title, problem] of [
    ["{{ event.none }}", null, "instructions: undefined variable: event.none"],
    ["{% if %}", null, "instructions: "],
    [loops, null, "instructions: "],
    ["Fix it", "{{ event.none }}", "title: undefined variable: event.none"],
  ] as const) {
    const { status, body } = await preview({ ...draft, instructions, title });
    expect([status, body.title]).toEqual([200, null]);
    expect(body.problem).toContain(problem);
    expect(body.triggers).toMatchObject([{ listsEvent: true, passes: true }]);
  }
});

test("a preview that names nothing, too much or what there is not is refused", async () => {
  for (const [body, error] of [
    [{}, "name a saved automation, or send instructions"],
    [{ instructions: "x", event: {}, sample: "sentry/issue.created" }, "only one of event, ledgerId and sample"],
    [{ instructions: "x", sample: "sentry/none" }, "no sample event sentry/none"],
    [{ instructions: "x", sample: "constructor/name" }, "no sample event"],
    [{ instructions: "x", event: { a: "\0" } }, "NUL"],
  ] as const) {
    const answer = await preview(body);
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(error)]);
  }
  expect((await preview({ automation: "none" })).status).toBe(404);
});
