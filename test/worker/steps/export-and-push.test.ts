import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { recordedWork } from "../../../src/store/queue/recorded-work.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { exportWork, salvage, type ClonedWork } from "../../../src/worker/steps/commit/export-work.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import { finishSession } from "../../../src/store/queue/claims.ts";
import { commandLines, uniqueMark } from "../../sandboxes/sandbox-folders.ts";
import { waitFor } from "../../wait-for.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

const secret = "the-servers-own-secret-value";
let world: StepWorld;
let services: StepServices;

beforeEach(async () => {
  world = await createStepWorld([secret]);
  services = world.worker("one");
});

afterEach(() => world.close());

/** As an agent leaves a file, committed or not. */
async function work(clone: Clone | undefined, name: string, content: string, isCommitted = true): Promise<void> {
  const folder = clone?.folder ?? "";
  await writeFile(join(folder, name), content);
  if (!isCommitted) return;
  const identity = ["-c", "user.name=Agent", "-c", "user.email=agent@example.com"];
  execFileSync("git", ["-C", folder, "add", "--all"]);
  execFileSync("git", ["-C", folder, ...identity, "commit", "--quiet", "--message", `add ${name}`]);
}

async function begin(): Promise<{ attempt: Attempt; clones: readonly Clone[] }> {
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, services);
  return { attempt, clones };
}

/** The next attempt at the session, on the same worker. */
async function again(attempt: Attempt): Promise<{ attempt: Attempt; works: ClonedWork[] }> {
  const next = await world.again(attempt, "one");
  const { clones } = await prepareWorkspace(next, services);
  return { attempt: next, works: await exportWork(next, services, clones) };
}

const changesOf = (works: readonly ClonedWork[]): ClonedWork[] => works.filter(({ isChanged }) => isChanged);

test("commits what the agent left, exports all of it, and saves diff and commits", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  await work(clones[0], "two.txt", "two\n", false);
  const works = await exportWork(attempt, services, clones);
  expect(works).toMatchObject([{ isChanged: true, commits: [{ by: "agent" }, { by: "offstage" }] }]);
  const { rows } = await world.database.pool.query("select head_sha, patch from session_repository");
  expect(rows).toEqual([{ head_sha: works[0]?.headSha, patch: expect.stringContaining("+two") as string }]);
  const recorded = await world.database.pool.query("select sha from session_commit");
  expect(recorded.rowCount).toBe(2);
  expect(await world.events(attempt)).toEqual(["workspace.commit", "workspace.commit"]);
});

test("shows each commit once, also if the attempt that exported it ended before it was pushed", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  await exportWork(attempt, services, clones);
  const { works } = await again(attempt);
  expect(changesOf(works)).toHaveLength(1);
  expect(await world.events(attempt)).toEqual(["workspace.commit"]);
});

test("has nothing to push if the agent changed nothing", async () => {
  const { attempt, clones } = await begin();
  expect(changesOf(await exportWork(attempt, services, clones))).toEqual([]);
});

test("keeps a secret from the remote, and from the diff", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", `${secret}\n`);
  await expect(exportWork(attempt, services, clones)).rejects.toMatchObject({ code: "secret_in_work" });
  const { rows } = await world.database.pool.query<{ patch: string }>("select patch from session_repository");
  expect(rows[0]?.patch).toContain("one.txt");
  expect(rows[0]?.patch).not.toContain(secret);
});

test("pushes the work branch, and opens one pull request for it", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  const { pushed } = await push(attempt, services, changesOf(await exportWork(attempt, services, clones)));
  expect(world.git("rev-parse", attempt.session.branchName)).toBe(pushed[0]?.pushedSha);
  await openPullRequests(attempt, services, pushed, "What I did.");
  const pulls = await world.forge.pullRequests("acme", "app");
  expect(pulls).toMatchObject([{ head: attempt.session.branchName }]);
  const { rows } = await world.database.pool.query("select head_sha, target from pull_request");
  expect(rows).toEqual([{ head_sha: pushed[0]?.pushedSha, target: "main" }]);
});

test("an attempt after a pull request was merged pushes nothing, and opens no second one", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  const { pushed } = await push(attempt, services, changesOf(await exportWork(attempt, services, clones)));
  await openPullRequests(attempt, services, pushed, "");
  world.forge.endPullRequest("acme", "app", 1, "merged");
  // The same without events: they may have been removed for their age.
  await world.database.pool.query("delete from event");
  const { works } = await again(attempt);
  expect(changesOf(works)).toEqual([]);
});

test("an attempt after one that was killed between push and pull request opens it", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  await push(attempt, services, changesOf(await exportWork(attempt, services, clones)));
  await world.database.pool.query("delete from event");
  const next = await again(attempt);
  const { pushed } = await push(next.attempt, services, changesOf(next.works));
  await openPullRequests(next.attempt, services, pushed, "");
  expect(await world.forge.pullRequests("acme", "app")).toHaveLength(1);
});

test("a pull request of an earlier version, whose commit is not recorded, is taken for the last push's", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  const { pushed } = await push(attempt, services, changesOf(await exportWork(attempt, services, clones)));
  await openPullRequests(attempt, services, pushed, "");
  await world.database.pool.query("update pull_request set head_sha = null");
  const { works } = await again(attempt);
  expect(changesOf(works)).toEqual([]);
});

test("a pull request that a node of the version before saved again is taken for the last push's", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  const { pushed } = await push(attempt, services, changesOf(await exportWork(attempt, services, clones)));
  await openPullRequests(attempt, services, pushed, "");
  // It pushed another commit, and found the pull request: it saves neither of them in `head_sha`.
  const other = "1".repeat(40);
  await world.database.pool.query("update session_repository set pushed_sha = $1, head_sha = $1", [other]);
  const saves = "update pull_request set number = number, url = url, state = 'merged', session_id = session_id";
  await world.database.pool.query(saves);
  expect(await recordedWork(world.database, attempt.session)).toMatchObject([{ hasPullRequest: true }]);
});

test("reading a pull request's state from its forge does not make its commit unknown", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  const { pushed } = await push(attempt, services, changesOf(await exportWork(attempt, services, clones)));
  await openPullRequests(attempt, services, pushed, "");
  await world.database.pool.query("update pull_request set checked_at = now(), state = 'closed'");
  const { rows } = await world.database.pool.query("select head_sha from pull_request");
  expect(rows).toEqual([{ head_sha: pushed[0]?.pushedSha }]);
});

test("new work after a push is pushed again, to the same pull request", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n");
  const { pushed: first } = await push(attempt, services, changesOf(await exportWork(attempt, services, clones)));
  await openPullRequests(attempt, services, first, "");
  await work(clones[0], "two.txt", "two\n");
  const next = await again(attempt);
  const { pushed: second } = await push(next.attempt, services, changesOf(next.works));
  await openPullRequests(next.attempt, services, second, "");
  expect(await world.forge.pullRequests("acme", "app")).toHaveLength(1);
  const { rows } = await world.database.pool.query("select head_sha from pull_request");
  expect(rows).toEqual([{ head_sha: world.git("rev-parse", attempt.session.branchName) }]);
  expect(second[0]?.pushedSha).not.toBe(first[0]?.pushedSha);
});

test("what looked like a secret stays masked in the diff that is saved after a later failure", async () => {
  const { attempt, clones } = await begin();
  const token = `ghp_${randomBytes(27).toString("base64").replaceAll(/[+/=]/gu, "x").slice(0, 36)}`;
  await work(clones[0], "one.txt", `${token}\n`);
  await expect(exportWork(attempt, services, clones)).rejects.toMatchObject({ code: "token_in_work" });
  await work(clones[0], "two.txt", "two\n", false);
  await salvage(attempt, services, attempt.signal);
  const { rows } = await world.database.pool.query<{ patch: string }>("select patch from session_repository");
  expect(rows[0]?.patch).toContain("+two");
  expect(rows[0]?.patch).not.toContain(token);
});

test("after a failure the diff of what is there is saved, and nothing if no clone was completed", async () => {
  const { attempt, clones } = await begin();
  await work(clones[0], "one.txt", "one\n", false);
  const { signal } = new AbortController();
  await salvage(attempt, world.worker("without"), signal);
  const patch = async (): Promise<unknown> =>
    (await world.database.pool.query("select patch from session_repository")).rows[0];
  expect(await patch()).toEqual({ patch: null });
  await salvage(attempt, services, signal);
  expect(await patch()).toEqual({ patch: expect.stringContaining("+one") as string });
});

test("a diff that takes too long to save is given up with a notice, also if the session was cancelled meanwhile", async () => {
  const { attempt, clones } = await begin();
  const mark = uniqueMark();
  const folder = clones[0]?.folder ?? "";
  execFileSync("git", ["-C", folder, "config", "filter.slow.clean", `sleep ${mark}; cat`]);
  await work(clones[0], ".gitattributes", "one.txt filter=slow\n", false);
  await work(clones[0], "one.txt", "one\n", false);
  const over = new AbortController();
  const saving = salvage(attempt, services, over.signal);
  await waitFor(() => commandLines().some((line) => line.startsWith(`sleep ${mark}`)), "it is being taken out");
  await finishSession(world.database, attempt.session, { status: "cancelled", summary: null, failure: null });
  over.abort();
  await saving;
  expect((await world.events(attempt)).at(-1)).toContain("was not saved: taking it out took too long");
});
