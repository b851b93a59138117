import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ForgeEvent } from "../../src/domain/automations/forge-event.ts";
import { createLogger } from "../../src/observability.ts";
import { receiveEvent } from "../../src/store/automations/inbound-events.ts";
import { claimJob } from "../../src/store/automations/jobs.ts";
import { createConnection } from "../../src/store/secrets/forge-connections.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { noTraces } from "../../src/traces.ts";
import { runJob } from "../../src/worker/run-job.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { noForge } from "../no-forge.ts";
import { longLeaseMs } from "../store/fixtures.ts";
import { decideAllEvents } from "./decide-all.ts";

let api: TestApp;
const connectionId = randomUUID();
const vault = createVault(environmentKeyring(Buffer.alloc(32, 7).toString("base64")));
const repository = { url: "https://gitlab.example.com/acme/one", fullName: "acme/one", defaultBranch: "main" };

beforeAll(async () => {
  api = await createTestApp({ vault });
  await createConnection(api.database, vault, api.organizationId, {
    id: connectionId,
    kind: "gitlab",
    name: "GitLab",
    webUrl: "https://gitlab.example.com",
    apiUrl: "https://gitlab.example.com/api/v4",
    credential: { type: "configured" },
    check: { account: null, problems: [] },
  });
  await api.post("/repository/create", { url: repository.url });
  const { status, body } = await api.post("/automation/create", {
    name: "Look",
    macro: "look",
    title: "{{ event.issue.title }}",
    instructions: "Look at {{ event.issue.title }}",
    triggers: [{ type: "forge", events: ["issue.opened", "issue.commented"], reply: "subject" }],
  });
  if (status !== 200) throw new Error(JSON.stringify(body));
});
afterAll(() => api.close());

/** The run of an event: its session's title, and where its result is said. */
async function runOf(name: ForgeEvent["name"], more: Partial<ForgeEvent>) {
  const author = { id: "1", login: "ann", isBot: false };
  const issue: NonNullable<ForgeEvent["issue"]> = {
    number: 3,
    title: "The key leaks",
    body: "",
    url: "u",
    state: "open",
    labels: [],
    assignees: [],
    author,
  };
  const event: ForgeEvent = { name, forge: "gitlab", repository, actor: author, issue, payload: {}, ...more };
  await receiveEvent(api.database, {
    id: randomUUID(),
    organizationId: api.organizationId,
    connectionId,
    scope: connectionId,
    keys: [],
    name,
    deliveryId: null,
    subject: null,
    payload: event,
    traceParent: null,
  });
  await decideAllEvents(api);
  const { database, templates } = api;
  const job = await claimJob(database, { worker: "w", leaseMs: longLeaseMs });
  if (job === null) throw new Error("the event started no run");
  await runJob(
    { database, templates, logger: createLogger("silent"), traces: noTraces, ...noForge, sandboxed: true },
    job,
  );
  const { rows } = await database.pool.query<{
    title: string;
    branch: string;
    isAnswered: boolean;
    thread: string | null;
  }>(
    `select title, branch_name as branch, target is not null as "isAnswered", thread_id as thread
     from session left join session_reply on session_id = session.id where job_id = $1`,
    [job.id],
  );
  return rows[0];
}
const commented = (threadId: string | null) => ({
  comment: { id: randomUUID(), body: "Look.", url: null, author: null, path: null, line: null, hunk: null, threadId },
});

test("a run of a confidential issue has its automation's name, and answers on the issue", async () => {
  expect(await runOf("issue.opened", { confidential: true })).toEqual({
    title: "Look",
    branch: expect.stringMatching(/^offstage\/look-[0-9a-f]{8}$/u) as string,
    isAnswered: true,
    thread: null,
  });
  // The positive control.
  expect(await runOf("issue.opened", { confidential: false })).toMatchObject({
    title: "The key leaks",
    isAnswered: true,
  });
});

test("a run of an internal comment answers in its thread, or nowhere", async () => {
  const internal = (threadId: string | null) =>
    runOf("issue.commented", { ...commented(threadId), confidential: true });
  expect(await internal("d1")).toMatchObject({ title: "Look", isAnswered: true, thread: "d1" });
  expect(await internal(null)).toMatchObject({ isAnswered: false });
  // The positive control: everybody may read it.
  expect(await runOf("issue.commented", commented("d2"))).toMatchObject({ isAnswered: true, thread: null });
});
