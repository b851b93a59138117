import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LeaseLostError } from "../../../src/store/queue/lease.ts";
import { saveRepository } from "../../../src/store/queue/recorded-work.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { mustGit } from "../../../src/worker/git/git.ts";
import type { ClonedWork } from "../../../src/worker/steps/commit/export-work.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { pushBranch, type PushEnd } from "../../../src/worker/steps/push/push-branch.ts";
import { requireNoSecret } from "../../../src/worker/steps/commit/require-no-secret.ts";
import { expireLease } from "../../store/fixtures.ts";
import { waitFor } from "../../wait-for.ts";
import { commitApart, commitFiles, type Files } from "../commit-files.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

/** A secret of three lines, of which none is one by itself. */
const secretLines = ["f1rst", "m1dd", "l4st5"];
let world: StepWorld;
let services: StepServices;
let attempt: Attempt;
let clone: Clone;
let bare: string;

beforeEach(async () => {
  world = await createStepWorld([secretLines.join("\n")]);
  services = world.worker("one");
  attempt = await world.begin({ branchName: "work" });
  const { clones } = await prepareWorkspace(attempt, services);
  if (clones[0] === undefined) throw new Error("the session has no clone");
  [clone] = clones as [Clone];
  bare = world.forge.pathOf("acme", "app");
});

afterEach(() => world.close());

/** git in the mirror. */
const git = (...parameters: string[]): Promise<string> =>
  mustGit(parameters, { cwd: clone.mirror.path, signal: attempt.signal });

/** A commit of the session in the mirror, as an export leaves it: with the base's files and these. */
const workOf = (files: Files, message: string, ...parents: readonly string[]): Promise<string> =>
  commitFiles(clone.mirror.path, clone.baseSha, files, message, ...parents);

/** Another's commit, in the repository on the forge alone. */
const theirsOf = (files: Files, message: string, ...parents: readonly string[]): Promise<string> =>
  commitFiles(bare, clone.baseSha, files, message, ...parents);

/** A commit of the session on the base with one file more. */
const commit = (content: string, message: string): Promise<string> => workOf({ "work.txt": content }, message);

/** What else is known of the work; of the session's own commits, none is. */
interface Known {
  readonly own?: readonly string[];
  readonly pushed?: string | null;
  readonly configuredBranch?: string;
}

function exported(headSha: string, { own = [], pushed = null, configuredBranch }: Known = {}): ClonedWork {
  const { position } = clone.repository;
  return {
    headSha,
    commits: [],
    isMoved: true,
    isAhead: true,
    patch: "",
    patchTruncated: false,
    changedSubmodules: [],
    leftOut: { refs: [], files: [], why: null },
    unfinished: null,
    clone: { ...clone, remote: { ...clone.remote, configuredBranch: configuredBranch ?? null } },
    recorded: { position, commits: new Set(own), pushedSha: pushed, hasPullRequest: false, askedMsAgo: null },
    isChanged: true,
    refused: null,
    lfs: [],
  };
}

const pushWith = (sha: string, known?: Known): Promise<PushEnd> =>
  pushBranch(attempt, services, exported(sha, known), { mirror: clone.mirror, fork: undefined });

async function push(sha: string, own: readonly string[], configuredBranch?: string): Promise<string> {
  const end = await pushWith(sha, { own, ...(configuredBranch !== undefined && { configuredBranch }) });
  return end.kind === "pushed" ? end.sha : end.kind;
}

/** Moves the branch, as another's push, by force if need be. */
const theirPush = (sha: string): string => world.git("update-ref", "refs/heads/work", sha);

const deleteBranch = (): string => world.git("update-ref", "-d", "refs/heads/work");

const remote = (parameter: string): string => world.git("rev-parse", parameter);

const branches = (): string => world.git("branch", "--format=%(refname:short)");

const files = (): string => world.git("ls-tree", "--name-only", "work");

/**
 * Another is quicker: when the n-th push has arrived, and before it is taken, the branch moves to the n-th of these
 * commits.
 */
async function moveAtPushes(...tips: readonly string[]): Promise<void> {
  await writeFile(join(bare, "tips"), `${tips.join("\n")}\n`);
  const hook = `#!/bin/sh
    if [ -e hold ]; then rm hold; mkfifo held; fi
    echo push >> pushes
    if [ -p held ]; then read -r _ < held; rm held; fi
    tip=$(sed -n "$(wc -l < pushes)p" tips)
    if [ -z "$tip" ]; then exit 0; fi
    unset $(env | sed -n 's/^\\(GIT_[A-Z_]*\\)=.*/\\1/p')
    git --git-dir . update-ref refs/heads/work "$tip"
  `;
  await writeFile(join(bare, "hooks/pre-receive"), hook, { mode: 0o755 });
}

/** Keeps the next push at the forge, until the function that it returns is called after it has arrived. */
async function holdPush(): Promise<() => Promise<void>> {
  await writeFile(join(bare, "hold"), "");
  return () => writeFile(join(bare, "held"), "\n");
}

/** How many pushes have arrived. */
async function pushes(): Promise<number> {
  const lines = await readFile(join(bare, "pushes"), "utf8").catch(() => "");
  return lines.split("\n").length - 1;
}

test("what a worker that was cut off pushed late is kept, and the work of its successor comes on top", async () => {
  const late = await commit("of the first", "first");
  const mine = await commit("of the second", "second");
  expect(await push(late, [])).toBe(late);
  const reached = await push(mine, [late, mine]);
  expect(remote("work")).toBe(reached);
  expect(remote("work^")).toBe(late);
  expect(remote("work^{tree}")).toBe(await git("rev-parse", `${mine}^{tree}`));
});

test("each push that began is known, from the one that was recorded last, also if its worker died", async () => {
  const { database } = world;
  const { position } = clone.repository;
  const made: string[] = [];
  const pushMore = async (): Promise<string> => {
    made.push(await commit(`work ${made.length}`, "more"));
    const reached = await push(made.at(-1) ?? "", made);
    made.push(reached);
    return reached;
  };
  const record = (pushedSha: string) => saveRepository(database, attempt.session, position, { pushedSha });
  const begun = async () => {
    const { rows } = await database.pool.query<{ begun: readonly string[] }>(
      "select begun_pushes as begun from session_repository where session_id = $1",
      [attempt.session.sessionId],
    );
    return rows[0]?.begun;
  };
  const first = await pushMore();
  await record(first);
  const lost = await pushMore();
  const next = await pushMore();
  expect(await begun()).toEqual([first, lost, next]);
  await record(next);
  expect(await begun()).toEqual([first, lost, next]);
  const last = await pushMore();
  expect(await begun()).toEqual([next, last]);
});

test("what was pushed late and is the same is left as it is", async () => {
  const late = await commit("the same", "first");
  const mine = await commit("the same", "second");
  await push(late, []);
  expect(await push(mine, [late])).toBe(late);
  expect(remote("work")).toBe(late);
});

test("another's commits are merged with the work, and nothing of either is lost", async () => {
  const first = await commit("1\n", "first");
  await push(first, []);
  const theirs = await theirsOf({ "work.txt": "1\n", "their.txt": "t\n" }, "theirs", first);
  theirPush(theirs);
  const mine = await workOf({ "work.txt": "1\n", "mine.txt": "m\n" }, "mine", first);
  const end = await pushWith(mine, { own: [first, mine], pushed: first });
  expect(end).toEqual({ kind: "pushed", sha: remote("work") });
  expect([remote("work^1"), remote("work^2")]).toEqual([mine, theirs]);
  expect(files()).toBe("README.md\nmine.txt\ntheir.txt\nwork.txt");
});

test("a branch that was made meanwhile under the same name is merged too", async () => {
  const theirs = await theirsOf({ "their.txt": "t\n" }, "theirs");
  const mine = await commit("of the agent", "mine");
  theirPush(theirs);
  await push(mine, [mine]);
  expect([remote("work^1"), remote("work^2")]).toEqual([mine, theirs]);
});

test("what joins the two is looked through before it is pushed", async () => {
  const [first = "", middle = "", last = ""] = secretLines;
  const lines = (...three: string[]): Files => ({ "lines.txt": `${three.join("\n")}\n` });
  const before = await workOf(lines("1", middle, "3"), "before");
  await push(before, []);
  const theirs = await theirsOf(lines("1", middle, last), "theirs", before);
  theirPush(theirs);
  const mine = await workOf(lines(first, middle, "3"), "mine", before);
  const known = { own: [before, mine], pushed: before };
  const refusal = await pushWith(mine, known).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: "secret_in_work" });
  const [, joined = ""] = /lines\.txt of commit ([0-9a-f]+):/u.exec(String(refusal)) ?? [];
  expect(await git("rev-parse", `${joined}^1`, `${joined}^2`)).toBe(`${mine}\n${theirs}`);
  expect(remote("work")).toBe(theirs);
  // Each side has a half of it, which is none.
  for (const sha of [mine, theirs]) await requireNoSecret(attempt, services, clone, exported(sha), []);
});

test("others' own commits are not searched for it", async () => {
  const theirs = await theirsOf({ "their.txt": secretLines.join("\n") }, "theirs");
  const mine = await commit("of the agent", "mine");
  theirPush(theirs);
  await push(mine, [mine]);
  expect([remote("work^1"), remote("work^2")]).toEqual([mine, theirs]);
});

test("work that collides with another's is not pushed, and the files are named", async () => {
  const theirs = await theirsOf({ "work.txt": "of a person" }, "theirs");
  const mine = await commit("of the agent", "mine");
  theirPush(theirs);
  expect(await pushWith(mine)).toEqual({ kind: "collided", theirs, paths: ["work.txt"], onto: null });
  expect(remote("work")).toBe(theirs);
});

test("a branch that moves at every push is given up after a while, and may be tried again", async () => {
  const tips = [await theirsOf({ "their.txt": "0\n" }, "theirs")];
  for (let number = 1; number <= 6; number += 1)
    tips.push(await theirsOf({ "their.txt": `${number}\n` }, `theirs ${number}`, tips.at(-1) ?? ""));
  const [theirs = "", ...later] = tips;
  theirPush(theirs);
  await moveAtPushes(...later);
  const mine = await commit("of the agent", "mine");
  await expect(pushWith(mine)).rejects.toMatchObject({ code: "branch_diverged", retryable: true });
  expect(await pushes()).toBe(5);
  expect(remote("work")).toBe(later[4]);
});

test("a server that can't write the branch, which has not moved, is reported in its own words, and may be tried again", async () => {
  const mine = await commit("mine\n", "Mine");
  const lock = join(bare, "refs/heads/work.lock");
  await writeFile(lock, "");
  const message = expect.stringMatching(/cannot lock ref|failed to update ref/u) as string;
  await expect(pushWith(mine)).rejects.toMatchObject({ code: "push_rejected", passing: true, message });
  // The control: nothing else was in the way.
  await rm(lock);
  expect(await pushWith(mine)).toEqual({ kind: "pushed", sha: mine });
});

test("a branch that moves once while it is pushed is joined, and pushed", async () => {
  const theirs = await theirsOf({ "their.txt": "0\n" }, "theirs");
  await moveAtPushes(theirs);
  const mine = await commit("of the agent", "mine");
  expect(await pushWith(mine)).toMatchObject({ kind: "pushed" });
  expect([await pushes(), remote("work^2")]).toEqual([2, theirs]);
});

test("nothing is pushed by a worker that lost the session", async () => {
  const mine = await commit("of the agent", "mine");
  await world.again(attempt, "two");
  await expect(pushWith(mine)).rejects.toBeInstanceOf(LeaseLostError);
  expect(branches()).toBe("main");
});

test("nothing is pushed once the lease has run out, although no other worker has the session", async () => {
  const mine = await commit("of the agent", "mine");
  await expireLease(world.database, attempt.session.sessionId);
  await expect(pushWith(mine)).rejects.toBeInstanceOf(LeaseLostError);
  expect(branches()).toBe("main");
});

test("a worker that loses the session while the branch moves does not push again", async () => {
  const theirs = await theirsOf({ "their.txt": "0\n" }, "theirs");
  await moveAtPushes(theirs);
  const letGo = await holdPush();
  const pushing = pushWith(await commit("of the agent", "mine"));
  pushing.catch(() => undefined);
  await waitFor(async () => (await pushes()) === 1, "the first push has arrived");
  await world.again(attempt, "two");
  await letGo();
  await expect(pushing).rejects.toBeInstanceOf(LeaseLostError);
  expect([await pushes(), remote("work")]).toEqual([1, theirs]);
});

test("after the branch was rewritten, theirs is the base: only what was not pushed before comes on top", async () => {
  const kept = await workOf({ "kept.txt": "k\n" }, "kept");
  const dropped = await workOf({ "kept.txt": "k\n", "dropped.txt": "d\n" }, "dropped", kept);
  await push(dropped, []);
  const rewritten = await theirsOf({ "kept.txt": "k\n", "reviewed.txt": "r\n" }, "rewritten");
  theirPush(rewritten);
  const fresh = { "kept.txt": "k\n", "dropped.txt": "d\n", "fresh.txt": "f\n" };
  const mine = await workOf(fresh, "fresh", dropped);
  await pushWith(mine, { own: [kept, dropped, mine], pushed: dropped });
  expect(remote("work^")).toBe(rewritten);
  expect(files()).toBe("README.md\nfresh.txt\nkept.txt\nreviewed.txt");
});

test("a commit that was removed from the branch's end does not come back", async () => {
  const kept = await workOf({ "kept.txt": "k\n" }, "kept");
  const dropped = await workOf({ "kept.txt": "k\n", "dropped.txt": "d\n" }, "dropped", kept);
  await push(dropped, []);
  theirPush(kept);
  expect(await pushWith(dropped, { own: [kept, dropped], pushed: dropped })).toEqual({ kind: "pushed", sha: kept });
  const fresh = { "kept.txt": "k\n", "dropped.txt": "d\n", "fresh.txt": "f\n" };
  const mine = await workOf(fresh, "fresh", dropped);
  await pushWith(mine, { own: [kept, dropped, mine], pushed: dropped });
  expect(files()).toBe("README.md\nfresh.txt\nkept.txt");
});

test("an agent that rewrote its own commits does not undo another's commits on top of them", async () => {
  const first = await commit("1\n", "first");
  await push(first, []);
  theirPush(await theirsOf({ "work.txt": "1\n", "their.txt": "t\n" }, "theirs", first));
  const amended = await workOf({ "work.txt": "1\n", "more.txt": "m\n" }, "first, amended");
  await pushWith(amended, { own: [first, amended], pushed: first });
  expect(files()).toBe("README.md\nmore.txt\ntheir.txt\nwork.txt");
});

test("an agent that rewrote its own commits, and no others, has its files on the branch", async () => {
  const first = await commit("1\n", "first");
  await push(first, []);
  const amended = await commit("2\n", "first, amended");
  await pushWith(amended, { own: [first, amended], pushed: first });
  expect(remote("work^")).toBe(first);
  expect(remote("work^{tree}")).toBe(await git("rev-parse", `${amended}^{tree}`));
});

test("a branch of another history is not pushed to", async () => {
  const other = await commitApart(bare, clone.baseSha);
  theirPush(other);
  await expect(pushWith(await commit("mine", "mine"))).rejects.toMatchObject({
    code: "branch_diverged",
    retryable: false,
  });
  expect(remote("work")).toBe(other);
});

test("a branch that was pushed and deleted is made again only if no pull request of it ended, or there is something new", async () => {
  const mine = await commit("1\n", "mine");
  await push(mine, []);
  deleteBranch();
  expect(await pushWith(mine, { pushed: mine })).toEqual({ kind: "pushed", sha: mine });
  await openPullRequests(attempt, services, [{ ...exported(mine), pushedSha: mine, fork: undefined }], "");
  deleteBranch();
  expect(await pushWith(mine, { pushed: mine })).toEqual({ kind: "pushed", sha: mine });
  world.forge.endPullRequest("acme", "app", 1, "merged");
  deleteBranch();
  expect(await pushWith(mine, { pushed: mine })).toEqual({ kind: "gone" });
  expect(branches()).toBe("main");
  expect((await world.events(attempt)).at(-1)).toBe(
    "notice The branch work of acme/app was not pushed again: it was deleted after pull request #1 was merged, and nothing was added since.",
  );
  const { rows } = await world.database.pool.query("select number, state from pull_request");
  expect(rows).toEqual([{ number: 1, state: "merged" }]);
  const more = await workOf({ "more.txt": "m\n" }, "more", mine);
  expect(await pushWith(more, { pushed: mine })).toEqual({ kind: "pushed", sha: more });
});

test("a branch that became the repository's own since the session began is not pushed to", async () => {
  const mine = await commit("of the agent", "mine");
  await push(await commit("before", "before"), []);
  const before = remote("work");
  await expect(push(mine, [before], "work")).rejects.toMatchObject({ code: "branch_protected" });
  world.git("symbolic-ref", "HEAD", "refs/heads/work");
  await expect(push(mine, [before])).rejects.toMatchObject({ code: "branch_protected" });
  expect(remote("work")).toBe(before);
  world.git("symbolic-ref", "HEAD", "refs/heads/main");
  expect(await push(mine, [before])).toBe(remote("work"));
});
