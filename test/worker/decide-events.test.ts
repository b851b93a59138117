import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withMark } from "../../src/domain/repositories/pull-request-mark.ts";
import { fireTriggerIn } from "../../src/store/automations/firings.ts";
import { listeningTriggers } from "../../src/store/automations/listening-triggers.ts";
import { receiveEvent, type ReceivedEvent } from "../../src/store/automations/inbound-events.ts";
import { readDeliveredJob } from "../../src/store/automations/delivered-runs.ts";
import { claimJob, type ClaimedJob } from "../../src/store/automations/jobs.ts";
import { noteCommit } from "../../src/store/queue/recorded-commits.ts";
import { createConnection } from "../../src/store/secrets/forge-connections.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { mostRunsOfSubject } from "../../src/domain/automations/trigger.ts";
import { createLogger } from "../../src/observability.ts";
import { releaseJobs } from "../../src/worker/background/held-jobs.ts";
import { addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { storeSession } from "../web/content/sessions.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { decideAllEvents } from "./decide-all.ts";

let api: TestApp;
const connectionId = randomUUID();

const vault = createVault(environmentKeyring(Buffer.alloc(32, 7).toString("base64")));

beforeAll(async () => {
  api = await createTestApp({ vault });
  await createConnection(api.database, vault, api.organizationId, {
    id: connectionId,
    kind: "gitea",
    name: "Gitea",
    webUrl: "https://git.example.com",
    apiUrl: "https://git.example.com/api/v1",
    credential: { type: "configured" },
    check: { account: null, problems: [] },
  });
  await api.post("/repository/create", { url: repository.url });
});
afterAll(() => api.close());

async function addAutomation(trigger: object, more: object = {}): Promise<string> {
  const macro = `m-${randomUUID().slice(0, 13)}`;
  const { status, body } = await api.post("/automation/create", {
    name: macro,
    macro,
    instructions: "Work",
    triggers: [{ type: "forge", ...trigger }],
    ...more,
  });
  expect([status, body.error]).toEqual([200, undefined]);
  return body.id;
}

const repository = { url: "https://git.example.com/acme/one", fullName: "acme/one", defaultBranch: "main" };

function receive(payload: Record<string, unknown>, more: Partial<ReceivedEvent> = {}) {
  return receiveEvent(api.database, {
    id: randomUUID(),
    organizationId: api.organizationId,
    connectionId,
    scope: connectionId,
    keys: [],
    name: "issue.opened",
    deliveryId: null,

    subject: "issue 1",
    payload: { repository, ...payload },
    traceParent: null,
    ...more,
  });
}

const decideAll = (worker?: string) => decideAllEvents(api, worker);
const entry = async (id: string) => (await api.get(`/ledger/${id}`)).body;
const runsOf = async (automationId: string) => (await api.get(`/automation/${automationId}/runs`)).body.runs;

test("an event fires each trigger that listens to it and whose condition holds, on the event's repository", async () => {
  const yes = await addAutomation({
    events: ["issue.opened"],
    condition: "event.issue.number == 7 && repository.name == 'acme/one'",
  });
  const no = await addAutomation({ events: ["issue.opened"], condition: "event.issue.number == 8" });
  const broken = await addAutomation({ events: ["issue.opened"], condition: "event.none.at == 1" });
  const deaf = await addAutomation({ events: ["issue.closed"] });
  const elsewhere = await addAutomation({ events: ["issue.opened"], repositories: ["git.example.com/other/*"] });
  const near = await addAutomation({ events: ["issue.opened"], repositories: ["git.example.com/acme/*"] });
  const foreign = await addAutomation({ events: ["issue.opened"], connectionId: randomUUID() });

  const { outcome, ledgerId } = await receive({ issue: { number: 7 } });
  expect(outcome).toBe("accepted");
  expect((await entry(ledgerId)).outcome).toBeNull();
  await decideAll();

  const whole = await entry(ledgerId);
  expect(whole).toMatchObject({ outcome: "fired", name: "issue.opened", subject: "issue 1", automationId: null });
  const decided = new Map(whole.decisions.map((each: { automationId: string }) => [each.automationId, each]));
  expect(decided.get(yes)).toMatchObject({ outcome: "fired", reason: null });
  expect(decided.get(near)).toMatchObject({ outcome: "fired" });
  expect(decided.get(no)).toMatchObject({ outcome: "filtered", reason: "its condition does not hold" });
  expect(decided.get(broken)).toMatchObject({
    outcome: "filtered",
    reason: expect.stringContaining("No such key") as string,
  });
  for (const other of [deaf, elsewhere, foreign]) expect(decided.has(other)).toBe(false);

  const [run] = await runsOf(yes);
  expect(await entry(run.id)).toMatchObject({ eventId: ledgerId, outcome: null });
  for (const other of [no, broken, deaf, elsewhere, foreign]) expect(await runsOf(other)).toEqual([]);
  const jobs = [];
  for (let job = await claimJob(api.database, { worker: "w", leaseMs: 60_000 }); job !== null;) {
    jobs.push(job);
    job = await claimJob(api.database, { worker: "w", leaseMs: 60_000 });
  }
  expect(jobs.map(({ automation }) => automation.repositories.map(({ url }) => url))).toEqual([
    ["https://git.example.com/acme/one"],
    ["https://git.example.com/acme/one"],
  ]);
});

test("a program that writes to an issue whenever a run names it comes to rest, and other issues go on", async () => {
  const made = await addAutomation({ events: ["issue.commented", "pullRequest.commented"] });
  const about = async (subject: string, count: number, name = "issue.commented"): Promise<void> => {
    await Promise.all(Array.from({ length: count }, () => receive({}, { name, subject })));
    await decideAll();
  };
  const started = async (): Promise<number> => {
    const { rows } = await api.database.pool.query<{ count: number }>(
      "select count(*)::integer as count from job where automation_id = $1",
      [made],
    );
    return rows[0]?.count ?? 0;
  };
  await about("issue 7", mostRunsOfSubject + 2);
  expect(await started()).toBe(mostRunsOfSubject);
  const { ledgerId } = await receive({}, { name: "issue.commented", subject: "issue 7" });
  await decideAll();
  expect((await entry(ledgerId)).decisions).toMatchObject([{ reason: expect.stringContaining("as many as it may") }]);
  await about("issue 8", 1);
  // What follows from work on a pull request is counted as a chain.
  await about("pull request 9", mostRunsOfSubject + 2, "pullRequest.commented");
  expect(await started()).toBe(mostRunsOfSubject + 1 + mostRunsOfSubject + 2);
});

test("an automation may have a thousand triggers: they are saved, shown, and the one whose condition holds decides", async () => {
  const triggers = Array.from({ length: 999 }, (_, index) => ({
    type: "forge",
    events: ["issue.labeled"],
    condition: `event.label == 'label-${index}'`,
    concurrency: { key: "'issue ' + string(event.issue.number)", policy: "skip" },
  }));
  const automation = { name: "many", macro: "many", instructions: "Work" };
  const { status, body } = await api.post("/automation/create", { ...automation, triggers });
  expect([status, body.error]).toEqual([200, undefined]);
  const shown = (await api.get("/automation/many")).body.triggers;
  expect(shown).toHaveLength(1_000);
  const { ledgerId } = await receive({ issue: { number: 9 }, label: "label-998" }, { name: "issue.labeled" });
  await decideAll();
  expect((await entry(ledgerId)).decisions[0]).toMatchObject({ triggerId: shown[999].id, outcome: "fired" });
  expect(await runsOf(body.id)).toHaveLength(1);
  // What is taken whole keeps its triggers by their ids.
  const changed = await api.post("/automation/many/update", { triggers: shown.slice(500) });
  expect([changed.status, changed.body.triggers.length]).toEqual([200, 501]);
  const more = await api.post("/automation/many/update", { triggers: [...triggers, ...triggers.slice(0, 2)] });
  expect(more.status).toBe(400);
  await api.post("/automation/many/delete", {});
});

test("an event starts one run of an automation, by the first of its triggers whose condition holds", async () => {
  const events = ["issue.assigned"];
  const skip = { key: "'issue'", policy: "skip" };
  const triggers = [
    { type: "forge", events, condition: "event.issue.number == 1" },
    { type: "forge", events, condition: "event.issue.number < 3", concurrency: skip },
    { type: "forge", events, repositories: ["git.example.com/other/*"] },
    { type: "forge", events },
  ];
  const automation = await addAutomation({}, { triggers });
  const { triggers: made } = (await api.get(`/automation/${automation}`)).body;
  const [first, second, , last] = made.filter(({ type }: { type: string }) => type === "forge");
  const assign = async (number: number) => {
    const { ledgerId } = await receive({ issue: { number } }, { name: "issue.assigned" });
    await decideAll();
    const { decisions } = await entry(ledgerId);
    return new Map(
      decisions.map((each: { triggerId: string; outcome: string; reason: string }) => [
        each.triggerId,
        each.reason ?? each.outcome,
      ]),
    );
  };
  const earlier = "an earlier trigger of its automation has decided what comes of the event";
  const notHolding = "its condition does not hold";
  expect(await assign(1)).toEqual(
    new Map([
      [first.id, "fired"],
      [second.id, earlier],
      [last.id, earlier],
    ]),
  );
  expect(await assign(2)).toEqual(
    new Map([
      [first.id, notHolding],
      [second.id, "fired"],
      [last.id, earlier],
    ]),
  );
  // What its policy holds back does not go to the next one.
  expect(await assign(2)).toEqual(
    new Map([
      [first.id, notHolding],
      [second.id, expect.stringContaining("concurrency: skip") as string],
      [last.id, earlier],
    ]),
  );
  expect(await assign(3)).toEqual(
    new Map([
      [first.id, notHolding],
      [second.id, notHolding],
      [last.id, "fired"],
    ]),
  );
  expect(await runsOf(automation)).toHaveLength(3);
});

test("an event that nothing listens to is filtered at once", async () => {
  const { outcome, ledgerId } = await receive({}, { name: "release.published" });
  expect(outcome).toBe("filtered");
  expect((await entry(ledgerId)).reason).toBe("no trigger listens to release.published");
});

test("an event that is delivered twice, at once, by another delivery id, is decided once", async () => {
  const automation = await addAutomation({ events: ["push"] });
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      receive({}, { name: "push", keys: [`delivery:${index % 2}-${connectionId}`, `content:same-${connectionId}`] }),
    ),
  );
  expect(answers.filter(({ outcome }) => outcome === "accepted")).toHaveLength(1);
  await Promise.all([decideAll("one"), decideAll("two")]);
  expect(await runsOf(automation)).toHaveLength(1);
});

test("an event whose worker died while it decided fires each trigger once", async () => {
  const first = await addAutomation({ events: ["issue.closed"] });
  const second = await addAutomation({ events: ["issue.closed"] });
  const { ledgerId } = await receive({}, { name: "issue.closed" });
  await decideAll();
  // As if it had died before it wrote what it decided, and after it had fired one of the two.
  const { pool } = api.database;
  await pool.query("delete from job where automation_id = $1", [second]);
  await pool.query(
    "update arrival set outcome = null, decisions = null, lease_until = now() - interval '1 second' where id = $1",
    [ledgerId],
  );
  await decideAll("two");
  expect(await runsOf(first)).toHaveLength(1);
  expect(await runsOf(second)).toHaveLength(1);
  expect(await entry(ledgerId)).toMatchObject({ outcome: "fired" });
});

test("an event starts one run of an automation whose triggers are changed before it is decided again", async () => {
  const events = ["issue.closed"];
  const closed = (condition: string) => ({ type: "forge", events, condition });
  const triggers = [closed("event.issue.number == 1"), closed("event.issue.number == 2")];
  const automation = await addAutomation({}, { triggers });
  const { triggers: made } = (await api.get(`/automation/${automation}`)).body;
  const [first, second] = made.filter(({ type }: { type: string }) => type === "forge");
  const { ledgerId } = await receive({ issue: { number: 2 } }, { name: "issue.closed" });
  await decideAll();
  // It had been put off, as by a forge that does not answer, and the order is changed meanwhile.
  const put = (of: object[]) => api.post(`/automation/${automation}/update`, { triggers: of });
  expect(
    (
      await put([
        { ...closed(""), id: first.id },
        { ...closed(""), id: second.id },
      ])
    ).status,
  ).toBe(200);
  await api.database.pool.query(
    "update arrival set outcome = null, decisions = null, lease_until = now() - interval '1 second' where id = $1",
    [ledgerId],
  );
  await decideAll("two");
  expect(await runsOf(automation)).toHaveLength(1);
  const { decisions } = await entry(ledgerId);
  expect(decisions.find(({ triggerId }: { triggerId: string }) => triggerId === first.id)).toMatchObject({
    outcome: "filtered",
    reason: expect.stringContaining("another trigger of its automation") as string,
  });
  // What happens later is another event.
  await receive({ issue: { number: 2 } }, { name: "issue.closed" });
  await decideAll();
  expect(await runsOf(automation)).toHaveLength(2);
});

test("an event of two connections starts one run of an automation that has a trigger for each", async () => {
  const beside = randomUUID();
  await createConnection(api.database, vault, api.organizationId, {
    id: beside,
    kind: "gitea",
    name: "Beside",
    webUrl: "https://git.example.com/acme",
    apiUrl: "https://git.example.com/api/v1",
    credential: { type: "configured" },
    check: { account: null, problems: [] },
  });
  const events = ["issue.closed"];
  const triggers = [connectionId, beside].map((each) => ({ type: "forge", events, connectionId: each }));
  const automation = await addAutomation({}, { triggers });
  const told = { name: "issue.closed", contentKey: `closed ${randomUUID()}` };
  await receive({ issue: { number: 2 } }, told);
  await receive({ issue: { number: 2 } }, { ...told, connectionId: beside, scope: beside });
  await Promise.all([decideAll("one"), decideAll("two")]);
  expect(await runsOf(automation)).toHaveLength(1);
});

describe("an event that two workers decide at the same moment, since the first is slow", () => {
  const policies: [string, object][] = [
    ["debounce", { debounceSeconds: 3_600 }],
    ["concurrency: skip", { concurrency: { key: "'one'", policy: "skip" } }],
    ["maxPerHour", { maxPerHour: 1 }],
  ];
  test.each(policies)("starts its run, and nothing takes that for another one (%s)", async (_name, policy) => {
    const automation = await addAutomation({ events: ["issue.closed"], ...policy });
    const { triggers } = (await api.get(`/automation/${automation}`)).body;
    const { id: triggerId } = triggers.find(({ type }: { type: string }) => type === "forge");
    const { ledgerId: eventId } = await receive({}, { name: "issue.closed" });
    const event = { organizationId: api.organizationId, connectionId, name: "issue.closed", causedBy: null };
    const listening = await listeningTriggers(api.database, event, { after: null, limit: 500 });
    const fireable = listening.find(({ id }) => id === triggerId);
    if (fireable === undefined) throw new Error("the trigger does not listen");
    const verdict = { passes: true, key: "concurrency" in policy ? "one" : null };
    const arrival = { id: randomUUID(), payload: { repository }, keys: [`root:${eventId}`], eventId };
    const slow = await api.database.pool.connect();
    try {
      await slow.query("begin");
      expect((await fireTriggerIn(slow, fireable, verdict, arrival)).outcome).toBe("accepted");
      const other = fireTriggerIn(api.database.pool, fireable, verdict, arrival);
      await waitFor(async () => {
        const { rowCount } = await api.database.pool.query("select from pg_locks where not granted");
        return rowCount !== 0;
      }, "the other one waits");
      await slow.query("commit");
      expect(await other).toMatchObject({ outcome: "accepted", ledgerId: arrival.id });
    } finally {
      slow.release();
    }
    expect(await runsOf(automation)).toMatchObject([{ id: arrival.id, status: "pending" }]);
    const { rowCount } = await api.database.pool.query("select from arrival where id = $1", [arrival.id]);
    expect(rowCount).toBe(0);
    await api.post(`/automation/${automation}/update`, { triggers: [] });
    await decideAll();
  });
});

test("an event is decided by one worker for as long as it takes", async () => {
  const automation = await addAutomation({ events: ["issue.closed"], condition: "event.issue.number == 2" });
  const { ledgerId } = await receive({ issue: { number: 2 } }, { name: "issue.closed" });
  let release = (): void => undefined;
  const isReleased = new Promise<void>((resolve) => (release = resolve));
  let asked = 0;
  const templates = {
    ...api.templates,
    evaluate: async (...args: Parameters<typeof api.templates.evaluate>) => {
      asked += 1;
      await isReleased;
      return api.templates.evaluate(...args);
    },
  };
  const leased = async (): Promise<string> => {
    const { rows } = await api.database.pool.query<{ until: string }>(
      "select lease_until::text as until from arrival where id = $1",
      [ledgerId],
    );
    return rows[0]?.until ?? "";
  };
  const decided = decideAllEvents({ database: api.database, templates, leaseMs: 6_000 }, "slow");
  await waitFor(() => asked === 1, "its conditions are asked");
  const first = await leased();
  await waitFor(async () => (await leased()) !== first, "the worker keeps it");
  release();
  await decided;
  expect(await entry(ledgerId)).toMatchObject({ outcome: "fired" });
  expect(await runsOf(automation)).toHaveLength(1);
});

test("checks and reviews of a session's pull request are on the session, and those of an earlier commit no more", async () => {
  await addAutomation({
    events: ["checks.failed", "checks.passed", "pullRequest.reviewSubmitted", "pullRequest.reviewDismissed"],
    condition: "event.name == 'none'",
  });
  const { body } = await api.post("/repository/create", { url: repository.url });
  const session = await storeSession(api.database, api.organizationId, {
    title: "Told of",
    status: "completed",
    repositories: [body.id],
    pullRequest: { number: 41, state: "open" },
  });
  const sha = "c".repeat(40);
  const headIs = (head: string) =>
    api.database.pool.query("update pull_request set head_sha = $2 where session_id = $1", [session, head]);
  await headIs(sha);
  const stands = async () => {
    const [pullRequest] = (await api.get(`/session/${session}`)).body.pullRequests;
    return [pullRequest.checks, pullRequest.review];
  };
  const check = async (outcome: "failed" | "passed", name: string, of = sha, more: object = {}) => {
    const told = { kind: "suite", id: randomUUID(), name, url: null, sha: of, branch: null, pullRequests: [] };
    const { forge = "github", ...changed } = more as { readonly forge?: string };
    await receive({ name: `checks.${outcome}`, forge, checks: { ...told, ...changed } }, { name: `checks.${outcome}` });
    await decideAll();
  };
  const review = async (state: string) => {
    const said = { id: null, state, body: "", url: null, author: null };
    const name = state === "dismissed" ? "pullRequest.reviewDismissed" : "pullRequest.reviewSubmitted";
    await receive({ name, review: said, pullRequest: { number: 41 } }, { name });
    await decideAll();
  };
  expect(await stands()).toEqual([null, null]);
  await check("passed", "build");
  expect(await stands()).toEqual(["passed", null]);
  await check("failed", "lint");
  await check("passed", "build");
  expect(await stands()).toEqual(["failed", null]);
  await check("passed", "lint");
  expect(await stands()).toEqual(["passed", null]);
  await check("failed", "build", "d".repeat(40));
  expect(await stands()).toEqual(["passed", null]);
  // One that was put off is decided after its rerun.
  const putOff = { kind: "suite", id: "1", name: "lint", url: null, sha, branch: null, pullRequests: [] };
  const late = await receive({ name: "checks.failed", forge: "github", checks: putOff }, { name: "checks.failed" });
  const isDue = (id: string, after: string) =>
    api.database.pool.query("update arrival set lease_until = now() + $2::interval where id = $1", [id, after]);
  await isDue(late.ledgerId, "1 hour");
  await check("passed", "lint");
  await isDue(late.ledgerId, "-1 second");
  await decideAll();
  expect(await stands()).toEqual(["passed", null]);
  await review("changesRequested");
  await review("commented");
  expect(await stands()).toEqual(["passed", "changesRequested"]);
  const refusal = { id: null, state: "changesRequested", body: "", url: null, author: null };
  const refused = await receive(
    { name: "pullRequest.reviewSubmitted", review: refusal, pullRequest: { number: 41 } },
    { name: "pullRequest.reviewSubmitted" },
  );
  await isDue(refused.ledgerId, "1 hour");
  await review("approved");
  await isDue(refused.ledgerId, "-1 second");
  await decideAll();
  expect(await stands()).toEqual(["passed", "approved"]);
  // What is being pushed is recorded a moment later, after what is quick has ended.
  const next = "7".repeat(40);
  const statusIs = (status: string) =>
    api.database.pool.query("update session set status = $2 where id = $1", [session, status]);
  await statusIs("running");
  await noteCommit(api.database.pool, { sessionId: session }, { position: 1, sha: next });
  await check("failed", "build", next);
  await check("passed", "build", "c".repeat(40));
  await headIs(next);
  expect(await stands()).toEqual(["failed", "approved"]);
  await statusIs("completed");
  await headIs("f".repeat(40));
  expect(await stands()).toEqual([null, "approved"]);
  // A pipeline of GitLab is called by the jobs that failed, and a run of Gitea is delivered by the status of a job
  // first.
  const path = "/acme/shop/actions/runs/12";
  const ofGitLab = { forge: "gitlab", kind: "pipeline", id: "31" };
  const ofGitea = { forge: "gitea", kind: "workflow" };
  const ends = [
    [{ ...ofGitLab, name: "rspec" }, ofGitLab],
    [
      { ...ofGitea, name: "CI / test (push)", id: path, url: `${path}/jobs/1` },
      { ...ofGitea, name: "CI", id: "500", url: `https://gitea.example${path}` },
    ],
  ] as const;
  for (const [failed, passed] of ends) {
    await check("failed", "", "f".repeat(40), failed);
    expect(await stands()).toEqual(["failed", "approved"]);
    await check("passed", "", "f".repeat(40), passed);
    expect(await stands()).toEqual(["passed", "approved"]);
  }
  await review("dismissed");
  expect(await stands()).toEqual(["passed", null]);
});

test("an event whose workers die again and again is dead-lettered", async () => {
  await addAutomation({ events: ["checks.failed"] });
  const { ledgerId } = await receive({}, { name: "checks.failed" });
  await api.database.pool.query(
    "update arrival set attempt = 10, lease_until = now() - interval '1 second' where id = $1",
    [ledgerId],
  );
  await decideAll();
  expect(await entry(ledgerId)).toMatchObject({
    outcome: "dead-lettered",
    reason: expect.stringContaining("10 times") as string,
  });
});

test("a repository that the organization does not allow is not connected", async () => {
  const automation = await addAutomation({ events: ["pullRequest.opened"] });
  await api.post("/organization/update", { repositories: ["git.example.com/acme/*"] });
  const stranger = { url: "https://git.example.com/evil/one", fullName: "evil/one", defaultBranch: null };
  const { ledgerId } = await receive({ repository: stranger }, { name: "pullRequest.opened" });
  await decideAll();
  await api.post("/organization/update", { repositories: null });
  expect(await runsOf(automation)).toEqual([]);
  expect((await entry(ledgerId)).decisions[0].reason).toBe("the organization does not allow the event's repository");
});

test("a folder of this machine is never an event's repository", async () => {
  const automation = await addAutomation({ events: ["pullRequest.closed"] });
  await receive({ repository: { ...repository, url: "/etc" } }, { name: "pullRequest.closed" });
  await decideAll();
  const [run] = await runsOf(automation);
  const { rows } = await api.database.pool.query("select repository_ids from job where id = $1", [run.id]);
  expect(rows).toEqual([{ repository_ids: null }]);
});

test("a run that a policy kept from being started works on the event's repository if it is replayed, and answers there", async () => {
  const concurrency = { key: "'one'", policy: "skip" };
  const automation = await addAutomation({ events: ["issue.closed"], concurrency, reply: "subject" });
  for (const number of [1, 2]) await receive({ issue: { number } }, { name: "issue.closed" });
  await decideAll();
  const { entries } = (await api.get(`/ledger/list?automationId=${automation}&outcome=filtered`)).body;
  expect(entries).toHaveLength(1);
  const { status, body } = await api.post(`/ledger/${entries[0].id}/replay`, {});
  expect(status).toBe(200);
  const jobs = new Map<string, ClaimedJob>();
  for (let job = await claimJob(api.database, { worker: "w", leaseMs: 60_000 }); job !== null;) {
    jobs.set(job.id, job);
    job = await claimJob(api.database, { worker: "w", leaseMs: 60_000 });
  }
  expect(jobs.get(body.id)?.automation.repositories).toMatchObject([{ url: repository.url }]);
  expect(await readDeliveredJob(api.database, body.id)).toMatchObject({ connectionId, reply: "subject" });
});

test("an event can be replayed, and those that listen now decide", async () => {
  const { ledgerId } = await receive({ issue: { number: 9 } }, { name: "pullRequest.merged" });
  expect((await entry(ledgerId)).outcome).toBe("filtered");
  const automation = await addAutomation({ events: ["pullRequest.merged"] });
  const { body } = await api.post(`/ledger/${ledgerId}/replay`, {});
  expect(body.outcome).toBe("accepted");
  await decideAll();
  expect(await entry(body.ledgerId)).toMatchObject({ outcome: "fired", originalId: ledgerId });
  expect(await runsOf(automation)).toHaveLength(1);
});

test("an unconnected repository is worked on only for a trigger that lists it, and one of another forge never", async () => {
  const listed = await addAutomation({ events: ["issue.labeled"], repositories: ["git.example.com/new/*"] });
  const open = await addAutomation({ events: ["issue.labeled"] });
  const fresh = { url: "https://git.example.com/new/one", fullName: "new/one", defaultBranch: null };
  const { ledgerId } = await receive({ repository: fresh }, { name: "issue.labeled" });
  await decideAll();
  expect(await runsOf(listed)).toHaveLength(1);
  expect(await runsOf(open)).toEqual([]);
  const reasons = (await entry(ledgerId)).decisions.map(({ reason }: { reason: string }) => reason);
  expect(reasons).toContain(
    "the event's repository is not connected: connect it, or list it in the trigger's repositories",
  );
  const elsewhere = { url: "https://other.example.com/new/one", fullName: "new/one", defaultBranch: null };
  await receive({ repository: elsewhere }, { name: "issue.labeled" });
  await decideAll();
  expect(await runsOf(listed)).toHaveLength(1);
  const { rows } = await api.database.pool.query("select url from repository where url like '%other.example.com%'");
  expect(rows).toEqual([]);
});

describe("Offstage's own status at a commit", () => {
  const checks = (name: string, more: object = {}) => ({
    checks: {
      kind: "status",
      id: "1",
      name,
      url: null,
      sha: "f".repeat(40),
      branch: "main",
      pullRequests: [],
      ...more,
    },
  });

  test("starts nothing, and another program's does", async () => {
    const automation = await addAutomation({ events: ["checks.passed"] });
    const { ledgerId } = await receive(checks("offstage/automations"), { name: "checks.passed" });
    await decideAll();
    expect(await runsOf(automation)).toEqual([]);
    expect(await entry(ledgerId)).toMatchObject({ outcome: "filtered", reason: "an Offstage wrote it" });
    await receive(checks("ci/automations"), { name: "checks.passed" });
    await receive(checks("offstage/automations", { kind: "workflow" }), { name: "checks.passed" });
    await decideAll();
    expect(await runsOf(automation)).toHaveLength(2);
  });

  test("starts nothing as a pipeline of GitLab, which has its outcome and not its name", async () => {
    const automation = await addAutomation({ events: ["checks.passed", "checks.failed"] });
    const { pool } = api.database;
    const { body } = await api.post("/repository/create", { url: repository.url });
    const sha = "9".repeat(40);
    await pool.query(
      "insert into automation_sync (repository_id, organization_id, enabled, commit, due_at) values ($1, $2, true, $3, 'infinity')",
      [body.id, api.organizationId, sha],
    );
    const tell = async (name: string, source: string, commit = sha) => {
      const told = checks("", { kind: "pipeline", sha: commit });
      await receive({ ...told, payload: { object_attributes: { source } } }, { name });
      await decideAll();
      return (await runsOf(automation)).length;
    };
    expect(await tell("checks.passed", "external")).toBe(0);
    // The positive controls: it says that something else failed, it is GitLab's own, or it is of another commit.
    expect(await tell("checks.failed", "external")).toBe(1);
    expect(await tell("checks.passed", "push")).toBe(2);
    expect(await tell("checks.passed", "external", "8".repeat(40))).toBe(3);
    await pool.query(
      "insert into automation_file (repository_id, path, organization_id, problem) values ($1, 'a.yaml', $2, 'broken')",
      [body.id, api.organizationId],
    );
    expect(await tell("checks.failed", "external")).toBe(3);
    await pool.query("delete from automation_file where repository_id = $1", [body.id]);
    await pool.query("delete from automation_sync where repository_id = $1", [body.id]);
  });
});

test("debounce without a key waits for what is about one subject alone", async () => {
  const automation = await addAutomation({ events: ["release.published"], debounceSeconds: 60 });
  const more = { name: "release.published" };
  const first = await receive({ of: "one" }, { ...more, subject: "one" });
  await decideAll();
  const [older] = await runsOf(automation);
  await receive({ of: "two" }, { ...more, subject: "two" });
  await receive({ of: "one" }, { ...more, subject: "one" });
  await decideAll();
  expect(await entry(older.id)).toMatchObject({ eventId: first.ledgerId, outcome: "superseded" });
  const waiting = await runsOf(automation);
  expect(waiting.filter(({ status }: { status: string }) => status === "pending")).toHaveLength(2);
  // A run of a key that is called like a subject holds back none of these.
  const { pool } = api.database;
  await pool.query(
    `insert into job (id, organization_id, automation_id, priority, payload, concurrency_key, holds_key)
     values ($1, $2, $3, 100, '{}', 'two', true)`,
    [randomUUID(), api.organizationId, automation],
  );
  await pool.query("update job set held_until = now() where automation_id = $1 and held_until is not null", [
    automation,
  ]);
  await releaseJobs(api.database, createLogger("silent"));
  const held = await pool.query("select from job where automation_id = $1 and held_until is not null", [automation]);
  expect(held.rowCount).toBe(0);
});

describe("what a session itself did on the forge", () => {
  const sha = "c".repeat(40);

  /** A session of the automation that has pushed the commit. */
  async function pushedBy(automationId: string, commit = sha): Promise<string> {
    const { pool } = api.database;
    await api.post(`/automation/${automationId}/trigger`, {});
    const job = await claimJob(api.database, { worker: "w", leaseMs: 60_000 });
    const { body } = await api.post("/repository/create", { url: repository.url });
    const session = await addSession(api.database, api.organizationId, {
      automationId,
      jobId: job?.id,
      repositories: [{ id: body.id, name: "acme/one" }],
    });
    await pool.query("update session_repository set pushed_sha = $2 where session_id = $1", [session.id, commit]);
    await pool.query("update job set status = 'completed', session_id = $2 where id = $1", [job?.id, session.id]);
    return session.id;
  }
  const drain = async (): Promise<void> =>
    void (await api.database.pool.query("update job set status = 'failed' where status = 'pending'"));

  test("never starts its own automation again, and others once", async () => {
    await drain();
    const own = await addAutomation({ events: ["pullRequest.opened"] }, { codeRepoIds: [] });
    const other = await addAutomation({ events: ["pullRequest.opened"] });
    await pushedBy(own);
    const before = (await runsOf(own)).length;
    const pullRequest = { number: 1, head: { branch: "work", sha, repositoryUrl: repository.url } };
    await receive({ pullRequest }, { name: "pullRequest.opened" });
    await decideAll();
    expect(await runsOf(own)).toHaveLength(before);
    expect(await runsOf(other)).toHaveLength(1);
    // The positive control: another's pull request does start it.
    await receive(
      { pullRequest: { number: 2, head: { branch: "x", sha: "d".repeat(40) } } },
      { name: "pullRequest.opened" },
    );
    await decideAll();
    expect(await runsOf(own)).toHaveLength(before + 1);
  });

  test("is known by the beginning of its commit, as Bitbucket Cloud names it, and by no shorter one", async () => {
    await drain();
    const own = await addAutomation({ events: ["pullRequest.updated"] });
    const commit = "c0ffee".padEnd(40, "1");
    await pushedBy(own, commit);
    const before = (await runsOf(own)).length;
    const updated = async (head: string) => {
      const pullRequest = { number: 50, head: { branch: "work", sha: head } };
      await receive({ pullRequest }, { name: "pullRequest.updated" });
      await decideAll();
      return (await runsOf(own)).length - before;
    };
    expect(await updated(commit.slice(0, 12))).toBe(0);
    expect(await updated("c0ffee")).toBe(1);
    expect(await updated("c0ffee".padEnd(12, "2"))).toBe(2);
  });

  test("opened in a person's name is no person's deed for what does not listen to bots", async () => {
    await drain();
    const own = await addAutomation({ events: ["push"] });
    const condition = "event.actor == null || !event.actor.isBot";
    const other = await addAutomation({ events: ["pullRequest.opened"], condition });
    await pushedBy(own);
    const actor = { id: "1", login: "ann", isBot: false };
    const opened = (number: number, commit: string) =>
      receive(
        { actor, transition: "opened", pullRequest: { number, head: { branch: "work", sha: commit } } },
        { name: "pullRequest.opened" },
      );
    await opened(1, sha);
    await decideAll();
    expect(await runsOf(other)).toEqual([]);
    // The positive control: the same person opens one of their own.
    await opened(2, "e".repeat(40));
    await decideAll();
    expect(await runsOf(other)).toHaveLength(1);
  });

  test("and pushed to in a person's name is a program's for what does not listen to pull requests of programs", async () => {
    await drain();
    const own = await addAutomation({ events: ["push"] });
    const condition = "!event.pullRequest.author.isBot";
    const other = await addAutomation({ events: ["pullRequest.updated"], condition });
    const session = await pushedBy(own);
    const actor = { id: "1", login: "ann", isBot: false };
    const updated = (number: number, body: string) => {
      const pullRequest = { number, body, author: actor, head: { branch: "work", sha } };
      return receive({ actor, pullRequest }, { name: "pullRequest.updated" });
    };
    await updated(1, withMark("Words.", { sessionId: session, sha }));
    await decideAll();
    expect(await runsOf(other)).toEqual([]);
    // The positive control: one that the person opened by hand.
    await updated(2, "Words.");
    await decideAll();
    expect(await runsOf(other)).toHaveLength(1);
  });

  interface Made {
    readonly number: number;
    readonly commit: string;
  }
  interface Told {
    readonly name: string;
    readonly payload: Record<string, unknown>;
  }
  let pullRequests = 100;

  /** Ends the newest run as a worker does: its session has opened a pull request, with the automation's settings, and pushed. */
  async function endRun(automationId: string, into?: Made): Promise<Made> {
    const { pool } = api.database;
    const [job] = await runsOf(automationId);
    const { body } = await api.post("/repository/create", { url: repository.url });
    const session = await addSession(api.database, api.organizationId, {
      automationId,
      jobId: job.id,
      repositories: [{ id: body.id, name: "acme/one" }],
    });
    pullRequests += 1;
    const made = { number: into?.number ?? pullRequests, commit: String(pullRequests).padStart(40, "a") };
    await pool.query("update session_repository set pushed_sha = $2 where session_id = $1", [session.id, made.commit]);
    await pool.query("update job set status = 'completed', session_id = $2 where id = $1", [job.id, session.id]);
    await pool.query(
      "update session set pull_request = (select pull_request from automation where id = $2) where id = $1",
      [session.id, automationId],
    );
    await pool.query(
      `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, head_sha)
       values ($1, $2, $3, $4, $5, 'main', $6, 'https://git.example.com/acme/one/pulls/' || $6::integer, $7)
       on conflict (repository_id, head, target) do update set head_sha = excluded.head_sha`,
      [randomUUID(), api.organizationId, session.id, body.id, `work-${made.number}`, made.number, made.commit],
    );
    return made;
  }

  const labelled = ({ number, commit }: Made, label: string) => {
    const actor = { id: "1", login: "ann", isBot: false };
    const pullRequest = { number, body: "", author: actor, head: { branch: "work", sha: commit } };
    return { name: "pullRequest.labeled", payload: { actor, label, pullRequest } };
  };

  /** Twelve rounds in which the forge delivers the last run's work. @returns how many runs were started */
  async function play(
    automationId: string,
    tell: (made: Made) => Told | Promise<Told>,
    pushesOn = false,
  ): Promise<number> {
    await drain();
    await api.post(`/automation/${automationId}/trigger`, {});
    let made = await endRun(automationId);
    let started = 1;
    for (let round = 0; round < 12; round += 1) {
      const { name, payload } = await tell(made);
      await receive(payload, { name });
      await decideAll();
      const runs = await runsOf(automationId);
      if (runs.length === started) break;
      started = runs.length;
      made = await endRun(automationId, pushesOn ? made : undefined);
    }
    return started - 1;
  }

  const checked = ({ commit }: Made) => ({ name: "checks.failed", payload: { checks: { sha: commit } } });
  const checkedMerged = ({ number }: Made) => ({
    name: "checks.failed",
    payload: { checks: { sha: randomUUID().replaceAll("-", "").padEnd(40, "0"), pullRequests: [number] } },
  });
  const randomCommit = () => randomUUID().replaceAll("-", "").padEnd(40, "0");
  const pushOf = (after: string, commits: readonly string[]) => ({
    name: "push",
    payload: { push: { branch: "main", after, commits: commits.map((each) => ({ sha: each })) } },
  });
  const mergedPlainly = ({ commit }: Made) => pushOf(randomCommit(), [commit]);
  async function tellOfMerge(number: number, mergeSha: string): Promise<void> {
    const steering = { isCalled: false, numbers: [number], branch: null, sha: null };
    const name = "pullRequest.merged";
    await receive({ name, pullRequest: { number, head: null, mergeSha } }, { name, steering });
    await decideAll();
  }
  /** The forge delivers a merge as one new commit, some by the commit's beginning, and then the commit's own events. */
  const squashed =
    (tellOf: (mergeSha: string) => Told) =>
    async ({ number }: Made): Promise<Told> => {
      const mergeSha = randomCommit();
      await tellOfMerge(number, mergeSha.slice(0, 12));
      return tellOf(mergeSha);
    };
  const pushedSquash = squashed((mergeSha) => pushOf(mergeSha, [mergeSha]));
  const checkedSquash = squashed((mergeSha) => ({
    name: "checks.failed",
    payload: { checks: { sha: mergeSha, branch: "main", pullRequests: [] } },
  }));
  /** The forge rebases its branch, as GitLab does before it merges by a fast-forward. */
  const rebased = ({ number }: Made) => {
    const { name, payload } = pushOf(randomCommit(), [randomCommit()]);
    return { name, payload: { push: { ...payload.push, branch: `work-${number}` } } };
  };
  const checkedRebased = ({ number }: Made) => ({
    name: "checks.failed",
    payload: { checks: { sha: randomCommit(), branch: `work-${number}`, pullRequests: [] } },
  });
  const commented = ({ number }: Made) => ({
    name: "pullRequest.commented",
    payload: {
      pullRequest: { number, head: null },
      comment: { id: randomUUID(), body: "Hm.", path: null, threadId: null },
    },
  });
  const reviewed = ({ number, commit }: Made) => ({
    name: "pullRequest.reviewSubmitted",
    payload: { pullRequest: { number, head: { branch: "work", sha: commit } } },
  });
  const ended =
    (name: string) =>
    ({ number }: Made) => ({ name, payload: { pullRequest: { number, head: null } } });

  test.each([
    ["checks of it", "checks.failed", checked, false],
    ["checks of its merge with the target", "checks.failed", checkedMerged, false],
    ["labels that others give its pull requests", "pullRequest.labeled", (made: Made) => labelled(made, "y"), false],
    ["comments on it", "pullRequest.commented", commented, false],
    ["comments after each push to one pull request", "pullRequest.commented", commented, true],
    ["reviews of it", "pullRequest.reviewSubmitted", reviewed, false],
    ["merges of it", "pullRequest.merged", ended("pullRequest.merged"), false],
    ["ends of it", "pullRequest.closed", ended("pullRequest.closed"), false],
    ["pushes of a merge of it", "push", mergedPlainly, false],
    ["pushes of what it was squashed to", "push", pushedSquash, false],
    ["checks of what it was squashed to", "checks.failed", checkedSquash, false],
    ["pushes by which its branch is rebased", "push", rebased, false],
    ["checks of what it was rebased to", "checks.failed", checkedRebased, false],
  ])("and the %s start runs until the chain is five long", async (_, name, tell, pushesOn) => {
    const automation = await addAutomation({ events: [name] }, { pullRequest: { labels: ["x"] } });
    expect(await play(automation, tell, pushesOn)).toBe(5);
  });

  test("and so does the push of a merge of which the forge tells later, while other pushes start runs each time", async () => {
    const automation = await addAutomation({ events: ["push"] });
    let later = true;
    const tell = async ({ number }: Made): Promise<Told> => {
      const after = randomCommit();
      const { ledgerId } = await receive(pushOf(after, [after]).payload, { name: "push" });
      await decideAll();
      expect(await entry(ledgerId)).toMatchObject({ outcome: null });
      await tellOfMerge(number, later ? after : randomCommit());
      // Its pause is over.
      await api.database.pool.query("update arrival set lease_until = now() where id = $1", [ledgerId]);
      return { name: "issue.closed", payload: {} };
    };
    expect(await play(automation, tell)).toBe(5);
    later = false;
    expect(await play(await addAutomation({ events: ["push"] }), tell)).toBe(12);
  });

  test("and so does the push of a merge as which commit the forge says only after a while", async () => {
    const automation = await addAutomation({ events: ["push"] });
    const tell = async ({ number }: Made): Promise<Told> => {
      const after = randomCommit();
      const { ledgerId } = await receive(pushOf(after, [after]).payload, { name: "push" });
      await decideAll();
      const { pool } = api.database;
      await pool.query("update pull_request set state = 'merged', closed_at = now() where number = $1", [number]);
      for (let time = 0; time < 2; time += 1) {
        // Its pause is over.
        await pool.query("update arrival set lease_until = now() where id = $1", [ledgerId]);
        await decideAll();
        expect(await entry(ledgerId)).toMatchObject({ outcome: null });
      }
      await tellOfMerge(number, after);
      await pool.query("update arrival set lease_until = now() where id = $1", [ledgerId]);
      return { name: "issue.closed", payload: {} };
    };
    expect(await play(automation, tell)).toBe(5);
  });

  test.each([
    ["the label of its settings", "pullRequest.labeled", (made: Made) => labelled(made, "X")],
    [
      "the reviewer of its settings",
      "pullRequest.reviewRequested",
      (made: Made) => {
        const { payload } = labelled(made, "");
        return {
          name: "pullRequest.reviewRequested",
          payload: { ...payload, label: undefined, assignee: { id: "team 4", login: "core", isBot: false } },
        };
      },
    ],
  ])("and %s never starts its own automation again, and others once, as a program's deed", async (_, name, tell) => {
    const pullRequest = { labels: ["x"], reviewers: ["acme/core"] };
    const own = await addAutomation({ events: [name] }, { pullRequest });
    const other = await addAutomation({ events: [name] });
    const human = await addAutomation({ events: [name], condition: "!event.actor.isBot" });
    expect(await play(own, tell)).toBe(0);
    expect(await runsOf(other)).toHaveLength(1);
    expect(await runsOf(human)).toEqual([]);
  });

  test("but a person who labels others' pull requests starts a run each time", async () => {
    const automation = await addAutomation({ events: ["pullRequest.labeled"] }, { pullRequest: { labels: ["x"] } });
    let foreign = 1_000;
    expect(
      await play(automation, () => {
        foreign += 1;
        return labelled({ number: foreign, commit: String(foreign).padStart(40, "b") }, "x");
      }),
    ).toBe(12);
  });
});
