import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import type { deliveriesOf } from "../forge/deliveries/deliveries.ts";
import { signed } from "../inbound/deliveries.ts";
import { inOtherClone } from "../other-clone.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, startInProcess, untilOver, type World } from "../world.ts";

let world: World;
let offstage: Offstage;
let client: Client;
let connection: { readonly id: string; readonly hookUrl: string; readonly webhookSecret: string };
let repository: string;
let forge: ReturnType<typeof deliveriesOf>;

beforeAll(async () => {
  world = await createWorld((_message, { everything }) =>
    everything.includes("Write it down.")
      ? [{ write: { path: "done.txt", content: "done\n" } }, { say: "I wrote it." }]
      : [{ shell: "git show origin/pull/5:theirs.txt; ls" }, { say: "I looked." }],
  );
  const overrides = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", OFFSTAGE_FORGE_HOSTS: "127.0.0.1" };
  ({ offstage, client } = await startInProcess(world, overrides));
  repository = (await world.forge.createRepository("acme", "shop", { "a.txt": "1\n" })).url;
  // A fork of the same name, with a branch that the repository has too.
  await world.forge.createRepository("mallory", "shop", { "a.txt": "1\n" });
  await world.forge.commit("acme", "shop", "feature", { "ours.txt": "ours\n" });
  await world.forge.commit("mallory", "shop", "feature", { "theirs.txt": "written by mallory\n" });
  world.forge.propose("acme", "shop", { number: 5, head: "feature", headOwner: "mallory" });
  world.forge.describe("acme", "shop", { issues: [7], people: { ann: "write" }, tellsRights: true });
  const credential = { type: "token", token: world.forge.token };
  connection = await post("/connection/create", {
    kind: "github",
    webUrl: `${world.forge.url}/acme`,
    apiUrl: world.forge.apiUrl,
    credential,
  });
  const url = `${offstage.url}${new URL(connection.hookUrl).pathname}`;
  forge = world.forge.deliverTo([{ kind: "github", url, secret: connection.webhookSecret }]);
});
afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function post<Answer>(path: string, body: unknown): Promise<Answer> {
  const response = await fetch(`${offstage.url}${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${adminKey}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return (await response.json()) as Answer;
}

interface Made {
  readonly id: string;
  readonly triggers: readonly { readonly id: string; readonly type: string }[];
}

const automate = (trigger: object, more: object = {}): Promise<Made> =>
  post("/automation/create", {
    name: "Look",
    macro: `look-${randomUUID().slice(0, 8)}`,
    instructions: "Look at it.",
    repositories: [repository],
    triggers: [{ type: "forge", ...trigger }],
    ...more,
  });

const person = (login: string) => ({ id: login.length, login, type: "User" });
const pullRequest = {
  id: 5,
  number: 5,
  title: "Feature",
  body: "",
  html_url: "https://example.com/5",
  state: "open",
  draft: false,
  merged: false,
  merged_at: null,
  base: { ref: "main" },
  labels: [],
  user: person("mallory"),
  updated_at: "2026-11-20T10:00:00Z",
};
const fork = () => ({
  ref: "feature",
  sha: "a".repeat(40),
  repo: { html_url: repository.replace("/acme/", "/mallory/") },
});

/** What GitHub delivers, to the connection's address. */
async function deliver(event: string, payload: object): Promise<string> {
  const about = { id: 1, full_name: "acme/shop", html_url: repository, default_branch: "main" };
  const body = Buffer.from(JSON.stringify({ repository: about, sender: person("ann"), ...payload }));
  const { headers } = signed("github", { "x-github-event": event }, body, connection.webhookSecret, randomUUID());
  const sent = Object.entries(headers).filter((each): each is [string, string] => each[1] !== undefined);
  const response = await fetch(`${offstage.url}/hook/forge/${connection.id}`, {
    method: "POST",
    headers: { ...Object.fromEntries(sent), "content-type": "application/json" },
    body: new Uint8Array(body),
  });
  expect(response.status).toBe(202);
  return ((await response.json()) as { ledgerId: string }).ledgerId;
}

const comments = () => world.forge.feedback("acme", "shop").comments;
const runOf = (id: string) =>
  waitFor(async () => {
    const [run] = (await client.automation.runs(id)).runs;
    expect(run?.error ?? null).toBeNull();
    return run?.sessionId ?? undefined;
  }, "it has a run");
const sessionOf = async (id: string): Promise<SessionDetail> => untilOver(client, await runOf(id));
/** What came of the first event that an automation's triggers decided on. */
const decisionOf = (id: string) =>
  waitFor(async () => {
    const { entries } = await get<{ entries: { outcome: string | null; reason: string }[] }>(
      `/ledger/list?automationId=${id}`,
    );
    return entries.find(({ outcome }) => outcome !== null);
  }, "the run is decided");
const untilSaid = (id: string) =>
  waitFor(async () => {
    const { answers } = await client.session.answers(id);
    return answers.some(({ status }) => status === "sent");
  }, "the result is said");

test("a review sees a fork's commits, which nothing has checked out, and answers on the pull request", async () => {
  const made = await automate({ events: ["pullRequest.opened"], reply: "subject" });
  await deliver("pull_request", { action: "opened", number: 5, pull_request: { ...pullRequest, head: fork() } });
  const done = await sessionOf(made.id);
  expect(done).toMatchObject({ status: "completed", pullRequests: [] });
  const asked = world.model.requests.at(-1)?.conversation.everything ?? "";
  expect(asked).toContain("written by mallory");
  expect(asked).not.toMatch(/^theirs\.txt$/mu);
  await untilSaid(done.id);
  expect(comments().map(({ number, body }) => [number, body.includes("> I looked.")])).toEqual([[5, true]]);
  await post(`/automation/${made.id}/delete`, {});
});

test("nothing is pushed to a fork's pull request, nor to the branch of that name here", async () => {
  const made = await automate({ events: ["pullRequest.labeled"], pushTo: "pullRequest" });
  const label = { id: 1, name: "go" };
  await deliver("pull_request", { action: "labeled", label, pull_request: { ...pullRequest, head: fork() } });
  expect(await decisionOf(made.id)).toMatchObject({
    outcome: "filtered",
    reason: expect.stringContaining("is in another repository"),
  });
  expect((await client.automation.runs(made.id)).runs.flatMap(({ sessionId }) => sessionId ?? [])).toEqual([]);
  await post(`/automation/${made.id}/delete`, {});
});

test("nothing is pushed to the default branch, also if a pull request brings that to another branch", async () => {
  const made = await automate({ events: ["pullRequest.labeled"], pushTo: "pullRequest" });
  const head = { ref: "main", sha: "a".repeat(40), repo: { html_url: repository } };
  const release = { ...pullRequest, id: 8, number: 8, head, base: { ref: "release" } };
  await deliver("pull_request", { action: "labeled", label: { id: 1, name: "go" }, pull_request: release });
  expect(await decisionOf(made.id)).toMatchObject({
    outcome: "filtered",
    reason: "the branch of pull request #8 is the repository's default branch, which no run pushes to",
  });
  await post(`/automation/${made.id}/delete`, {});
});

test("a comment on GitHub, which names no branch, pushes to the pull request's own, and to no fork's", async () => {
  await world.forge.commit("acme", "shop", "asked", { "asked.txt": "asked\n" });
  world.forge.propose("acme", "shop", { number: 6, head: "asked" });
  const listening = () =>
    automate({ events: ["pullRequest.commented"], pushTo: "pullRequest" }, { instructions: "Write it down." });
  const place = world.forge.place("acme", "shop");
  const refused = await listening();
  forge.say(place, 5, { by: "ann", body: "Write on the fork." });
  expect(await decisionOf(refused.id)).toMatchObject({
    outcome: "filtered",
    reason: expect.stringContaining("the branch of pull request #5 is in another repository"),
  });
  await post(`/automation/${refused.id}/delete`, {});
  const made = await listening();
  forge.say(place, 6, { by: "ann", body: "Write here." });
  const done = await sessionOf(made.id);
  expect(done).toMatchObject({ status: "completed", branchName: "asked", targetBranch: "main" });
  expect((await inOtherClone(world, repository, "git ls-tree --name-only origin/asked")).split("\n")).toEqual(
    expect.arrayContaining(["asked.txt", "done.txt"]),
  );
  await post(`/automation/${made.id}/delete`, {});
});

async function get<Answer>(path: string): Promise<Answer> {
  const response = await fetch(`${offstage.url}${path}`, { headers: { Authorization: `Bearer ${adminKey}` } });
  return (await response.json()) as Answer;
}

test("an automation that answers comments does not answer itself", async () => {
  const before = comments().length;
  const made = await automate({ events: ["issue.commented"], reply: "subject" });
  forge.say(world.forge.place("acme", "shop"), 7, { by: "ann", body: "What is this?" });
  const done = await sessionOf(made.id);
  await untilSaid(done.id);
  // The forge has delivered the answer too: it is decided when the ledger says so.
  await waitFor(async () => {
    const { entries } = await get<{ entries: { name: string | null; reason: string | null }[] }>("/ledger/list");
    return entries.some(({ name, reason }) => name === "issue.commented" && reason === "Offstage posted it itself");
  }, "its own comment is in the ledger");
  expect((await client.automation.runs(made.id)).runs).toHaveLength(1);
  expect(comments()).toHaveLength(before + 2);
  await post(`/automation/${made.id}/delete`, {});
});

test("a request to the trigger of the API, or about another repository, is answered nowhere and fetches nothing", async () => {
  const before = comments().length;
  const made = await automate({ events: ["issue.opened"], reply: "subject" });
  const issue = { number: 7, title: "T", body: "", url: "u", state: "open", labels: [], assignees: [], author: null };
  const about = { url: repository, fullName: "acme/shop", defaultBranch: "main" };
  const payload = { name: "issue.opened", forge: "github", repository: about, actor: null, issue, payload: {} };
  await post(`/automation/${made.id}/trigger`, payload);
  const forged = await sessionOf(made.id);
  // The connection's own delivery, of a repository that is not the connection's.
  const elsewhere = { id: 2, full_name: "mallory/shop", html_url: repository.replace("/acme/", "/mallory/") };
  const opened = {
    action: "opened",
    issue: { ...issue, id: 7, html_url: "https://example.com/7", user: person("ann") },
  };
  await deliver("issues", { ...opened, repository: elsewhere });
  const other = await waitFor(async () => {
    const { runs } = await client.automation.runs(made.id);
    return runs.find(({ sessionId }) => sessionId !== null && sessionId !== forged.id)?.sessionId ?? undefined;
  }, "the other has a run");
  const second = await untilOver(client, other);
  const { rows } = await offstage.database.pool.query("select 1 from session_told where session_id = any($1)", [
    [forged.id, second.id],
  ]);
  expect(rows).toEqual([]);
  const { rows: replies } = await offstage.database.pool.query(
    "select 1 from session_reply where session_id = any($1)",
    [[forged.id, second.id]],
  );
  expect(replies).toEqual([]);
  expect(comments()).toHaveLength(before);
});
