import { execFileSync, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { openSigner, type Signer } from "../../../src/worker/git/signer.ts";
import { exportWork, salvage } from "../../../src/worker/steps/commit/export-work.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

/** Whose the commits in a session's work are. */
let world: StepWorld;
let one: StepServices;

beforeEach(async () => {
  world = await createStepWorld();
  one = world.worker("one");
});

afterEach(() => world.close());

const identity = ["-c", "user.name=Agent", "-c", "user.email=offstage@localhost"];
const gitIn = ([clone]: readonly Clone[], ...parameters: string[]): string =>
  execFileSync("git", ["-C", clone?.folder ?? "", ...identity, ...parameters], { encoding: "utf8" }).trim();

async function commit(clones: readonly Clone[], name: string): Promise<void> {
  await writeFile(join(clones[0]?.folder ?? "", name), name);
  gitIn(clones, "add", "--all");
  gitIn(clones, "commit", "--quiet", "--message", `add ${name}`);
}

async function publish(attempt: Attempt, services: StepServices, clones: readonly Clone[]) {
  const works = await exportWork(attempt, services, clones);
  const { pushed } = await push(attempt, services, works);
  await openPullRequests(attempt, services, pushed, "");
}

const ssh = spawnSync("ssh-keygen", ["-?"]).error === undefined;
if (!ssh) console.warn("signatures by ssh are not tested: ssh-keygen is not installed");

describe.skipIf(!ssh)("where commits are signed", () => {
  let folder: string;
  let signer: Signer;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "offstage-sign-"));
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, "id")]);
    signer = await openSigner(join(folder, "id"), { folder: join(folder, "signing"), agent: null });
  });

  afterEach(async () => {
    await signer.close();
    await rm(folder, { recursive: true, force: true });
  });

  test.each([
    ["whose git can be asked for any commit", false],
    ["whose git speaks an older protocol", true],
  ])("what the agent fetched and merged from a server %s keeps its hashes, and its own is signed", async (_, isOld) => {
    if (isOld) world.forge.speakOldGit();
    const services = { ...one, signer };
    const attempt = await world.begin();
    const { clones } = await prepareWorkspace(attempt, services);
    const branch = attempt.session.branchName;
    await commit(clones, "first.txt");
    // On the target, which moves on after that, and on a branch that is the agent's to know.
    await world.forge.commit("acme", "app", "main", { "target.txt": "t\n" });
    const onTarget = world.git("rev-parse", "main");
    world.git("branch", "feature", "main~1");
    // Of another session, whose committer is the same.
    const tree = world.git("rev-parse", "feature^{tree}");
    world.git(
      "update-ref",
      "refs/heads/feature",
      world.git(...identity, "commit-tree", tree, "-p", "feature", "-m", "f"),
    );
    const onFeature = world.git("rev-parse", "feature");
    gitIn(clones, "fetch", "--quiet", world.forge.pathOf("acme", "app"), "main", "feature");
    gitIn(clones, "merge", "--quiet", "--no-edit", onTarget);
    gitIn(clones, "merge", "--quiet", "--no-edit", onFeature);
    await world.forge.commit("acme", "app", "main", { "later.txt": "l\n" });
    await commit(clones, "second.txt");
    await publish(attempt, services, clones);
    const pushed = world.git("rev-list", branch).split("\n");
    expect(pushed).toContain(onTarget);
    expect(pushed).toContain(onFeature);
    const own = world.git("rev-list", branch, "--not", "main", "feature").split("\n");
    expect(own).toHaveLength(4);
    for (const sha of own) expect(world.git("cat-file", "commit", sha)).toContain("gpgsig ");
  });

  const isSigned = (sha: string): boolean => world.git("cat-file", "commit", sha).includes("gpgsig ");

  test("what the agent fetched of a branch that then moved on keeps its hashes, another session's too", async () => {
    const services = { ...one, signer };
    const attempt = await world.begin();
    const { clones } = await prepareWorkspace(attempt, services);
    const bare = world.forge.pathOf("acme", "app");
    world.git("branch", "reviewers");
    await world.forge.commit("acme", "app", "reviewers", { "review.txt": "r\n" });
    // Of another session, from before the server had a key: its committer is the same, and nothing else tells that it is not ours.
    const tree = world.git("rev-parse", "main^{tree}");
    const session = world.git(...identity, "commit-tree", tree, "-p", "main", "-m", "another session's");
    world.git("update-ref", "refs/heads/offstage/other", session);
    gitIn(clones, "fetch", "--quiet", bare, "offstage/other");
    gitIn(clones, "merge", "--quiet", "--ff-only", "FETCH_HEAD");
    await commit(clones, "first.txt");
    gitIn(clones, "fetch", "--quiet", bare, "reviewers");
    const review = gitIn(clones, "rev-parse", "FETCH_HEAD");
    gitIn(clones, "merge", "--quiet", "--no-edit", review);
    await world.forge.commit("acme", "app", "reviewers", { "later.txt": "l\n" });
    await world.forge.commit("acme", "app", "offstage/other", { "more.txt": "m\n" });
    await publish(attempt, services, clones);
    const pushed = world.git("rev-list", attempt.session.branchName).split("\n");
    expect(pushed).toContain(session);
    expect(pushed).toContain(review);
    expect([session, review].map(isSigned)).toEqual([false, false]);
    const own = world.git("rev-list", attempt.session.branchName, "--not", session, review).split("\n");
    expect(own.map(isSigned)).toEqual([true, true]);
  });

  test("what the agent merged keeps its hashes, also if the other branch has had many commits since", async () => {
    const services = { ...one, signer };
    const tree = world.git("rev-parse", "main^{tree}");
    const made = (parent: string, message: string, daysAgo: number): string => {
      const date = `@${Math.floor(Date.now() / 1_000 - daysAgo * 86_400)} +0000`;
      const env = { ...process.env, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
      const at = ["-C", world.forge.pathOf("acme", "app"), ...identity];
      const written = execFileSync("git", [...at, "commit-tree", tree, "-p", parent, "-m", message], { env });
      return written.toString().trim();
    };
    const base = world.git("rev-parse", "main");
    const session = made(base, "another session's", 50);
    world.git("update-ref", "refs/heads/offstage/other", session);
    let tip = base;
    for (let index = 0; index < 40; index += 1) tip = made(tip, "on the target", 40 - index);
    world.git("update-ref", "refs/heads/main", tip);
    const attempt = await world.begin();
    const { clones } = await prepareWorkspace(attempt, services);
    await commit(clones, "first.txt");
    gitIn(clones, "fetch", "--quiet", world.forge.pathOf("acme", "app"), "offstage/other");
    gitIn(clones, "merge", "--quiet", "--no-edit", "FETCH_HEAD");
    world.git("update-ref", "-d", "refs/heads/offstage/other");
    world.git("update-ref", "refs/kept/other", session);
    await publish(attempt, services, clones);
    const pushed = world.git("rev-list", attempt.session.branchName).split("\n");
    expect(pushed).toContain(session);
    const own = world.git("rev-list", attempt.session.branchName, "--not", "main", session).split("\n");
    expect(own.map(isSigned)).toEqual([true, true]);
  });

  test("a stranger's commits of a fork keep their hashes, and what the agent commits on top of its own is its own", async () => {
    const services = { ...one, signer };
    const attempt = await world.begin();
    const { clones } = await prepareWorkspace(attempt, services);
    const fork = join(folder, "fork.git");
    world.git("clone", "--quiet", "--bare", ".", fork);
    const stranger = ["-c", "user.name=Stranger", "-c", "user.email=stranger@example.org"];
    const made = ["commit-tree", "main^{tree}", "-p", "main", "-m", "a stranger's"];
    const theirs = execFileSync("git", ["-C", fork, ...stranger, ...made], { encoding: "utf8" }).trim();
    execFileSync("git", ["-C", fork, "update-ref", "refs/heads/work", theirs]);
    gitIn(clones, "fetch", "--quiet", fork, "work");
    gitIn(clones, "merge", "--quiet", "--ff-only", "FETCH_HEAD");
    await commit(clones, "first.txt");
    // In another's name, as an agent may try: no other repository has the commit before it.
    gitIn(clones, ...stranger, "commit", "--quiet", "--allow-empty", "--message", "not a stranger's");
    await publish(attempt, services, clones);
    const branch = attempt.session.branchName;
    expect(world.git("log", "--reverse", "--format=%cn: %s", branch, "--not", "main").split("\n")).toEqual([
      "Stranger: a stranger's",
      "Offstage: add first.txt",
      "Offstage: not a stranger's",
    ]);
    const [first, ...own] = world.git("rev-list", "--reverse", branch, "--not", "main").split("\n");
    expect(first).toBe(theirs);
    expect(isSigned(theirs)).toBe(false);
    expect(own.map(isSigned)).toEqual([true, true]);
  });

  test("the commits of a pull request that is in the clone are its author's", async () => {
    const services = { ...one, signer };
    const attempt = await world.begin();
    const { clones } = await prepareWorkspace(attempt, services);
    const [clone] = clones;
    if (clone === undefined) throw new Error("there is no clone");
    const options = { encoding: "utf8", env: { ...process.env } } as const;
    const inMirror = (...parameters: string[]): string =>
      execFileSync("git", ["-C", clone.mirror.path, ...identity, ...parameters], options).trim();
    const theirs = inMirror("commit-tree", `${clone.baseSha}^{tree}`, "-p", clone.baseSha, "-m", "of the pull request");
    const pin = `refs/offstage/${attempt.session.sessionId}/${clone.remote.directory}/pull-request/head`;
    inMirror("update-ref", pin, theirs);
    gitIn(clones, "merge", "--quiet", "--ff-only", theirs);
    await commit(clones, "first.txt");
    await publish(attempt, services, clones);
    expect(world.git("rev-list", attempt.session.branchName)).toContain(theirs);
  });
});

test("the text of a pull request lists commits of an attempt that ended before it", async () => {
  const first = await world.begin();
  const { clones } = await prepareWorkspace(first, one);
  await commit(clones, "first.txt");
  await salvage(first, one, first.signal);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  const next = await world.again(first, "one");
  const kept = await prepareWorkspace(next, one);
  await commit(kept.clones, "second.txt");
  await publish(next, one, kept.clones);
  const [opened] = await world.forge.pullRequests("acme", "app");
  expect(opened?.body).toMatch(/- add first\.txt\n- add second\.txt/u);
  expect((await world.events(next)).filter((line) => line.startsWith("workspace.commit"))).toHaveLength(2);
});
