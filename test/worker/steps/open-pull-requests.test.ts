import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { exportWork } from "../../../src/worker/steps/commit/export-work.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let services: StepServices;

beforeEach(async () => {
  world = await createStepWorld();
  services = world.worker("one");
});

afterEach(() => world.close());

async function work(clone: Clone | undefined, name: string): Promise<void> {
  const folder = clone?.folder ?? "";
  await writeFile(join(folder, name), "words\n");
  execFileSync("git", ["-C", folder, "add", "--all"]);
}

/** The steps of an attempt after its turn. @returns whether there was something to publish */
async function publish(attempt: Attempt, file: string | null): Promise<boolean> {
  const { clones } = await prepareWorkspace(attempt, services);
  if (file !== null) await work(clones[0], file);
  const works = await exportWork(attempt, services, clones);
  const changes = works.filter(({ isChanged }) => isChanged);
  const { pushed, refused } = await push(attempt, services, changes);
  await openPullRequests(attempt, services, pushed, "Did it.", refused);
  return changes.length > 0;
}

/** What a worker that dies between the forge's answer and its row leaves behind. */
async function forgetRow(): Promise<void> {
  const { rows: known } = await world.database.pool.query<{ sha: string }>("select head_sha as sha from pull_request");
  await world.database.pool.query("update session_repository set asked_sha = $1, asked_at = now()", [known[0]?.sha]);
  await world.database.pool.query("delete from pull_request");
  await world.database.pool.query("delete from event where type = 'pullRequest.opened'");
}

const pulls = () => world.forge.pullRequests("acme", "app");
const rows = async () =>
  (await world.database.pool.query<{ number: number; state: string }>("select number, state from pull_request")).rows;

test.each(["closed", "merged"] as const)(
  "a pull request that was %s between a worker's death and the takeover is recorded, and no other opened",
  async (state) => {
    const attempt = await world.begin();
    await publish(attempt, "one.txt");
    await forgetRow();
    world.forge.endPullRequest("acme", "app", 1, state);
    const next = await world.again(attempt, "one");
    expect(await publish(next, null)).toBe(true);
    expect(await pulls()).toMatchObject([{ number: 1, state }]);
    expect(await rows()).toEqual([{ number: 1, state }]);
    expect((await world.events(next)).slice(-2)).toEqual(["pullRequest.opened", "pullRequest.closed"]);
    // From here on it is known.
    expect(await publish(await world.again(next, "one"), null)).toBe(false);
  },
);

test("the same on a forge that lags: the request that was recorded is waited for", async () => {
  const attempt = await world.begin();
  world.forge.lag(1_500);
  await publish(attempt, "one.txt");
  await forgetRow();
  world.forge.endPullRequest("acme", "app", 1, "merged");
  const next = await world.again(attempt, "one");
  await publish(next, null);
  expect(await pulls()).toHaveLength(1);
  expect((await rows())[0]).toMatchObject({ number: 1 });
});

test("a forge that does not know the branch that was just pushed is waited for", async () => {
  world.forge.lag(1_500);
  await publish(await world.begin(), "one.txt");
  expect(await pulls()).toHaveLength(1);
  expect(await rows()).toEqual([{ number: 1, state: "open" }]);
});

test("a follow-up's commits after a merge get a pull request of their own", async () => {
  const attempt = await world.begin();
  await publish(attempt, "one.txt");
  // The request was answered: nothing is left to wait for.
  const { rows: asked } = await world.database.pool.query("select asked_at from session_repository");
  expect(asked).toEqual([{ asked_at: null }]);
  world.forge.endPullRequest("acme", "app", 1, "merged");
  const next = await world.again(attempt, "one");
  await publish(next, "two.txt");
  expect(await pulls()).toMatchObject([{ state: "merged" }, { number: 2, state: "open" }]);
  expect(await rows()).toEqual([{ number: 2, state: "open" }]);
});

test("a turn that the forge does not take into the text now is added when it does", async () => {
  const attempt = await world.begin();
  await publish(attempt, "one.txt");
  const { forgeOf } = services;
  services = {
    ...services,
    forgeOf: (address) => ({
      ...forgeOf(address),
      editPullRequest: async (...edit) => {
        await world.forge.failNext({ kind: "primaryLimit", resetInSeconds: 3_600 });
        return forgeOf(address).editPullRequest(...edit);
      },
    }),
  };
  const next = await world.again(attempt, "one");
  await expect(publish(next, "two.txt")).rejects.toMatchObject({ code: "forge_unavailable", passing: true });
  services = { ...services, forgeOf };
  expect(await publish(await world.again(next, "one"), null)).toBe(true);
  const marks = (await pulls())[0]?.body.split(
    `<!-- offstage ${world.git("rev-parse", attempt.session.branchName)} -->`,
  );
  expect(marks).toHaveLength(2);
});

test("a body has the session's mark at its end", async () => {
  const attempt = await world.begin();
  await publish(attempt, "one.txt");
  const [pull] = await pulls();
  const sha = world.git("rev-parse", attempt.session.branchName);
  expect(pull?.body.endsWith(`<!-- offstage session=${attempt.session.sessionId} commit=${sha} -->`)).toBe(true);
});

const settings = { draft: true, labels: ["bug"], reviewers: ["ada", "acme/core"], assignees: [] };
const openAs = (attempt: Attempt) =>
  world.database.pool.query("update session set pull_request = $2 where id = $1", [
    attempt.session.sessionId,
    JSON.stringify(settings),
  ]);
const queued = async () =>
  (
    await world.database.pool.query<{ action: unknown }>(
      "select action from answer where action ->> 'kind' = 'settings' order by number",
    )
  ).rows.map(({ action }) => action);
const subject = { kind: "pullRequest", number: 1 };

test("a pull request is opened as it is set, and gets its labels and reviewers once, whichever worker dies and however often it is published", async () => {
  const attempt = await world.begin();
  await openAs(attempt);
  await publish(attempt, "one.txt");
  expect(await pulls()).toMatchObject([{ draft: true }]);
  const wanted = [
    { kind: "settings", subject, field: "labels", names: ["bug"] },
    { kind: "settings", subject, field: "reviewers", names: ["ada", "acme/core"] },
  ];
  expect(await queued()).toEqual(wanted);
  // A worker that died before it queued them, and its row.
  await world.database.pool.query("delete from answer");
  await forgetRow();
  const next = await world.again(attempt, "one");
  await publish(next, null);
  expect(await queued()).toEqual(wanted);
  await publish(await world.again(next, "one"), "two.txt");
  expect(await queued()).toEqual(wanted);
  expect(await pulls()).toHaveLength(1);
});

test("a pull request that another opened for the branch stays as it is", async () => {
  const attempt = await world.begin();
  await openAs(attempt);
  world.git("branch", attempt.session.branchName, "main");
  await world.forge.commit("acme", "app", attempt.session.branchName, { "theirs.txt": "theirs\n" });
  await fetch(`${world.forge.apiUrl}/repos/acme/app/pulls`, {
    method: "POST",
    headers: { Authorization: `Bearer ${world.forge.token}` },
    body: JSON.stringify({ head: attempt.session.branchName, base: "main", title: "Theirs", body: "" }),
  });
  await publish(attempt, "one.txt");
  expect(await pulls()).toMatchObject([{ title: "Theirs", draft: false }]);
  expect(await queued()).toEqual([]);
});

test("a notice says that a repository has no drafts", async () => {
  world.forge.describe("acme", "app", { hasDrafts: false });
  const attempt = await world.begin();
  await openAs(attempt);
  await publish(attempt, "one.txt");
  expect(await pulls()).toMatchObject([{ draft: false, state: "open" }]);
  const { rows: notices } = await world.database.pool.query<{ text: string }>(
    "select data ->> 'text' as text from event where type = 'notice'",
  );
  expect(notices.map(({ text }) => text).join()).toContain("is no draft");
});

test("who may approve is said once, and kept for the text", async () => {
  world.forge.describe("acme", "app", { approvals: { excludesPusher: true, pushDismisses: true } });
  const attempt = await world.begin();
  await publish(attempt, "one.txt");
  const approving = async (): Promise<string[]> =>
    (await world.events(attempt)).filter((event) => event.includes("does not count"));
  expect(await approving()).toEqual([
    expect.stringMatching(
      /^notice On .*, for the pull request of acme\/app: an approval by the account that pushed last does not count/u,
    ),
  ]);
  const kept = await world.database.pool.query("select approval from pull_request");
  expect(kept.rows).toEqual([
    { approval: { excludesPusher: true, excludesAuthor: null, excludesEveryAuthor: true, pushDismisses: true } },
  ]);
  await publish(await world.again(attempt, "one"), "two.txt");
  expect(await approving()).toHaveLength(1);
  expect((await world.database.pool.query("select approval from pull_request")).rows).toEqual(kept.rows);
});

/** What becomes of the target while no worker has the session. */
const moved: [string, () => Promise<void> | void, string][] = [
  ["its default branch was renamed", () => world.forge.renameBranch("acme", "app", "main", "trunk"), "trunk"],
  ["a reviewer chose another", () => world.forge.retarget("acme", "app", 1, "release"), "release"],
];

describe.each(moved)("a pull request of which %s between two turns", (_, move, target) => {
  beforeEach(() => world.forge.commit("acme", "app", "release", { "c.txt": "c\n" }));

  test.each(["one", "two"])("stays the one, on the worker %s", async (worker) => {
    const attempt = await world.begin();
    await publish(attempt, "one.txt");
    await move();
    const next = await world.again(attempt, worker);
    services = world.worker(worker);
    const { clones } = await prepareWorkspace(next, services);
    expect(clones).toMatchObject([{ targetBranch: target }]);
    await publish(next, "two.txt");
    expect(await pulls()).toMatchObject([{ number: 1, state: "open", base: target }]);
    const { rows: known } = await world.database.pool.query("select number, target from pull_request");
    expect(known).toEqual([{ number: 1, target }]);
  });

  test("is followed too if the session named the target, and if it changes while the agent works", async () => {
    const attempt = await world.begin({ targetBranch: "main" });
    await publish(attempt, "one.txt");
    const next = await world.again(attempt, "one");
    const { clones } = await prepareWorkspace(next, services);
    await move();
    await work(clones[0], "two.txt");
    const works = await exportWork(next, services, clones);
    const { pushed } = await push(next, services, works);
    await openPullRequests(next, services, pushed, "Did it.");
    expect(await pulls()).toMatchObject([{ number: 1, state: "open", base: target }]);
  });
});

test("a default branch that is renamed before there is a pull request gets it under its new name", async () => {
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, services);
  await world.forge.renameBranch("acme", "app", "main", "trunk");
  await work(clones[0], "one.txt");
  const { pushed } = await push(attempt, services, await exportWork(attempt, services, clones));
  await openPullRequests(attempt, services, pushed, "Did it.");
  expect(await pulls()).toMatchObject([{ base: "trunk" }]);
  expect((await world.events(attempt)).join("\n")).toContain("The branch main of acme/app is gone");
});

test("a target that the session named and that is gone is not replaced", async () => {
  await world.forge.commit("acme", "app", "release", { "c.txt": "c\n" });
  const attempt = await world.begin({ targetBranch: "release" });
  const { clones } = await prepareWorkspace(attempt, services);
  await world.forge.renameBranch("acme", "app", "release", "old");
  await work(clones[0], "one.txt");
  const { pushed } = await push(attempt, services, await exportWork(attempt, services, clones));
  await expect(openPullRequests(attempt, services, pushed, "Did it.")).rejects.toMatchObject({
    code: "target_branch_not_found",
  });
  expect(await pulls()).toEqual([]);
});

test("a branch that was deleted after its pull request was merged into another target is not made again", async () => {
  const attempt = await world.begin();
  await publish(attempt, "one.txt");
  await world.forge.commit("acme", "app", "release", { "c.txt": "c\n" });
  world.forge.retarget("acme", "app", 1, "release");
  world.forge.endPullRequest("acme", "app", 1, "merged");
  world.git("branch", "-D", attempt.session.branchName);
  await publish(await world.again(attempt, "one"), null);
  expect(world.git("branch", "--list", attempt.session.branchName)).toBe("");
  expect(await pulls()).toHaveLength(1);
});
