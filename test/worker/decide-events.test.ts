import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withMark } from "../../src/domain/repositories/pull-request-mark.ts";
import { receiveEvent, type ReceivedEvent } from "../../src/store/automations/inbound-events.ts";
import { claimJob } from "../../src/store/automations/jobs.ts";
import { createConnection } from "../../src/store/secrets/forge-connections.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { addSession } from "../store/fixtures.ts";
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

test("what is told of checks and reviews of a session's pull request is on the session, and of an earlier commit no more", async () => {
  await addAutomation({
    events: ["checks.failed", "checks.passed", "pullRequest.reviewSubmitted"],
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
  const check = async (outcome: "failed" | "passed", name: string, of = sha) => {
    const checks = { kind: "suite", id: randomUUID(), name, url: null, sha: of, branch: null, pullRequests: [] };
    await receive({ name: `checks.${outcome}`, checks }, { name: `checks.${outcome}` });
    await decideAll();
  };
  const review = async (state: string) => {
    const said = { id: null, state, body: "", url: null, author: null };
    const name = "pullRequest.reviewSubmitted";
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
  await review("changesRequested");
  await review("commented");
  expect(await stands()).toEqual(["passed", "changesRequested"]);
  await review("approved");
  expect(await stands()).toEqual(["passed", "approved"]);
  await headIs("e".repeat(40));
  expect(await stands()).toEqual([null, "approved"]);
  await review("dismissed");
  expect(await stands()).toEqual([null, null]);
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
    // The positive control: somebody else's pull request does start it.
    await receive(
      { pullRequest: { number: 2, head: { branch: "x", sha: "d".repeat(40) } } },
      { name: "pullRequest.opened" },
    );
    await decideAll();
    expect(await runsOf(own)).toHaveLength(before + 1);
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

  test("and the checks of it start runs until the chain is five long", async () => {
    await drain();
    const automation = await addAutomation({ events: ["checks.failed"] });
    let started = 0;
    let commit = "0".repeat(40);
    for (let round = 0; round < 12; round += 1) {
      await receive({ checks: { sha: commit } }, { name: "checks.failed" });
      await decideAll();
      const runs = await runsOf(automation);
      if (runs.length === started) break;
      started = runs.length;
      const [job] = runs;
      const { body } = await api.post("/repository/create", { url: repository.url });
      const session = await addSession(api.database, api.organizationId, {
        automationId: automation,
        jobId: job?.id,
        repositories: [{ id: body.id, name: "acme/one" }],
      });
      commit = String(round + 1).padStart(40, "a");
      await api.database.pool.query("update session_repository set pushed_sha = $2 where session_id = $1", [
        session.id,
        commit,
      ]);
      await api.database.pool.query("update job set status = 'completed', session_id = $2 where id = $1", [
        job?.id,
        session.id,
      ]);
    }
    expect(started).toBe(6);
  });
});
