import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { mustGit } from "../../src/worker/git/git.ts";
import { ensureMirror, fetchBranch, lookUpHeads, type Mirror } from "../../src/worker/git/mirror.ts";
import { pushBranch, type Push, type PushEnd } from "../../src/worker/git/push.ts";
import { startForge, type TestForge } from "../forge/server.ts";

const { signal } = new AbortController();
const author = { name: "Offstage", email: "offstage@localhost" };
let forge: TestForge;
let folder: string;
let mirror: Mirror;
let base: string;

beforeEach(async () => {
  forge = await startForge();
  folder = await mkdtemp(join(tmpdir(), "offstage-push-"));
  const { url } = await forge.createRepository("acme", "late", { "README.md": "# Before\n" });
  const credentials = () => Promise.resolve({ username: "token", password: forge.token });
  mirror = { path: join(folder, "mirror.git"), url, local: false, named: true, credentials };
  await ensureMirror(mirror, signal);
  const heads = await lookUpHeads(mirror, { targetBranch: null, branch: "work" }, signal);
  base = heads.targetSha;
  await fetchBranch(mirror, { branch: "main", sha: base, into: "refs/offstage/test/target" }, () => undefined, signal);
});

afterEach(async () => {
  await forge.close();
  await rm(folder, { recursive: true, force: true });
});

const git = (...parameters: string[]): Promise<string> => mustGit(parameters, { cwd: mirror.path, signal });

type Files = Readonly<Record<string, string>>;

/** A commit with the base's files and these, on top of the parents, or of the base. */
async function commitFiles(files: Files, message: string, ...parents: readonly string[]): Promise<string> {
  const identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
  const file = join(folder, "file");
  let listed = await git("ls-tree", base);
  for (const [path, content] of Object.entries(files)) {
    await writeFile(file, content);
    listed += `\n100644 blob ${await git("hash-object", "-w", file)}\t${path}`;
  }
  const input = Readable.from([`${listed}\n`]);
  const tree = await mustGit(["mktree"], { cwd: mirror.path, signal, input });
  const on = (parents.length === 0 ? [base] : parents).flatMap((parent) => ["-p", parent]);
  return mustGit([...identity, "commit-tree", tree, ...on, "-m", message], { cwd: mirror.path, signal });
}

/** A commit on the base with one file more. */
const commit = (content: string, message: string): Promise<string> => commitFiles({ "work.txt": content }, message);

function pushWith(sha: string, wish: Partial<Push> = {}, to = mirror): Promise<PushEnd> {
  const unchecked = {
    requireClaim: () => Promise.resolve(),
    requireClean: () => Promise.resolve(),
    mayRecreate: () => Promise.resolve(true),
  };
  const usual = { own: new Set<string>(), pushed: null, pin: "refs/offstage/test/theirs", author, message: "Go on" };
  return pushBranch(to, { branch: "work", configuredBranch: null, sha, ...unchecked, ...usual, ...wish }, signal);
}

async function push(sha: string, own: readonly string[], configuredBranch: string | null = null): Promise<string> {
  const end = await pushWith(sha, { own: new Set(own), configuredBranch });
  return end.kind === "pushed" ? end.sha : end.kind;
}

/** What somebody else leaves the branch at, by force if need be. */
const theirPush = (sha: string): Promise<string> =>
  git("push", "--quiet", "--force", mirror.url.replace("://", `://x:${forge.token}@`), `${sha}:refs/heads/work`);

const remote = (parameter: string): Promise<string> =>
  mustGit(["rev-parse", parameter], { cwd: forge.pathOf("acme", "late"), signal });

test("what a worker that was cut off pushed late is kept, and the work of its successor comes on top", async () => {
  const late = await commit("of the first", "first");
  const mine = await commit("of the second", "second");
  expect(await push(late, [])).toBe(late);
  const reached = await push(mine, [late, mine]);
  expect(await remote("work")).toBe(reached);
  expect(await remote("work^")).toBe(late);
  expect(await remote("work^{tree}")).toBe(await git("rev-parse", `${mine}^{tree}`));
});

test("what was pushed late and is the same is left as it is", async () => {
  const late = await commit("the same", "first");
  const mine = await commit("the same", "second");
  await push(late, []);
  expect(await push(mine, [late])).toBe(late);
  expect(await remote("work")).toBe(late);
});

test("what somebody else committed is merged with the work, and nothing of either is lost", async () => {
  const first = await commit("1\n", "first");
  await push(first, []);
  const theirs = await commitFiles({ "work.txt": "1\n", "their.txt": "t\n" }, "theirs", first);
  await theirPush(theirs);
  const mine = await commitFiles({ "work.txt": "1\n", "mine.txt": "m\n" }, "mine", first);
  const end = await pushWith(mine, { own: new Set([first, mine]), pushed: first });
  expect(end).toEqual({ kind: "pushed", sha: await remote("work") });
  expect([await remote("work^1"), await remote("work^2")]).toEqual([mine, theirs]);
  expect(await git("ls-tree", "--name-only", await remote("work"))).toBe("README.md\nmine.txt\ntheir.txt\nwork.txt");
});

test("a branch that somebody made meanwhile under the same name is merged too", async () => {
  const theirs = await commitFiles({ "their.txt": "t\n" }, "theirs");
  const mine = await commit("of the agent", "mine");
  await theirPush(theirs);
  await push(mine, [mine]);
  expect([await remote("work^1"), await remote("work^2")]).toEqual([mine, theirs]);
});

test("what joins the two is looked through before it is pushed", async () => {
  const theirs = await commitFiles({ "their.txt": "t\n" }, "theirs");
  const mine = await commit("of the agent", "mine");
  await theirPush(theirs);
  const found = new Error("a secret");
  const seen: string[] = [];
  const requireClean = async (joined: string, of: string): Promise<void> => {
    seen.push(await git("rev-parse", `${joined}^1`, `${joined}^2`), of);
    throw found;
  };
  await expect(pushWith(mine, { requireClean })).rejects.toBe(found);
  expect(seen).toEqual([`${mine}\n${theirs}`, theirs]);
  expect(await remote("work")).toBe(theirs);
});

test("work that collides with somebody else's is not pushed, and the files are named", async () => {
  const theirs = await commit("of a person", "theirs");
  const mine = await commit("of the agent", "mine");
  await theirPush(theirs);
  expect(await pushWith(mine)).toEqual({ kind: "collided", theirs, paths: ["work.txt"], onto: null });
  expect(await remote("work")).toBe(theirs);
});

test("a branch that moves at every push is given up after a while, and may be tried again", async () => {
  const theirs = await commitFiles({ "their.txt": "0\n" }, "theirs");
  await theirPush(theirs);
  let pushes = 0;
  let tip = theirs;
  const requireClaim = async (): Promise<void> => {
    pushes += 1;
    tip = await commitFiles({ "their.txt": `${pushes}\n` }, `theirs ${pushes}`, tip);
    await theirPush(tip);
  };
  const mine = await commit("of the agent", "mine");
  await expect(pushWith(mine, { requireClaim })).rejects.toMatchObject({ code: "branch_diverged", retryable: true });
  expect(pushes).toBe(5);
  expect(await remote("work")).toBe(tip);
});

test("a branch that moves once while it is pushed is joined, and pushed", async () => {
  const theirs = await commitFiles({ "their.txt": "0\n" }, "theirs");
  let pushes = 0;
  const requireClaim = async (): Promise<void> => void ((pushes += 1) === 1 && (await theirPush(theirs)));
  const mine = await commit("of the agent", "mine");
  expect(await pushWith(mine, { requireClaim })).toMatchObject({ kind: "pushed" });
  expect([pushes, await remote("work^2")]).toEqual([2, theirs]);
});

test("nothing is pushed by a worker that lost the session", async () => {
  const mine = await commit("of the agent", "mine");
  const lost = new Error("lost");
  await expect(pushWith(mine, { requireClaim: () => Promise.reject(lost) })).rejects.toBe(lost);
  await expect(remote("work")).rejects.toThrow("unknown revision");
});

test("after somebody rewrote the branch, theirs is the base: only what was not pushed before comes on top", async () => {
  const kept = await commitFiles({ "kept.txt": "k\n" }, "kept");
  const dropped = await commitFiles({ "kept.txt": "k\n", "dropped.txt": "d\n" }, "dropped", kept);
  await push(dropped, []);
  const rewritten = await commitFiles({ "kept.txt": "k\n", "reviewed.txt": "r\n" }, "rewritten");
  await theirPush(rewritten);
  const files = { "kept.txt": "k\n", "dropped.txt": "d\n", "fresh.txt": "f\n" };
  const mine = await commitFiles(files, "fresh", dropped);
  await pushWith(mine, { own: new Set([kept, dropped, mine]), pushed: dropped });
  expect(await remote("work^")).toBe(rewritten);
  expect(await git("ls-tree", "--name-only", await remote("work"))).toBe(
    "README.md\nfresh.txt\nkept.txt\nreviewed.txt",
  );
});

test("what somebody took off the branch's end does not come back", async () => {
  const kept = await commitFiles({ "kept.txt": "k\n" }, "kept");
  const dropped = await commitFiles({ "kept.txt": "k\n", "dropped.txt": "d\n" }, "dropped", kept);
  await push(dropped, []);
  await theirPush(kept);
  expect(await pushWith(dropped, { own: new Set([kept, dropped]), pushed: dropped })).toEqual({
    kind: "pushed",
    sha: kept,
  });
  const files = { "kept.txt": "k\n", "dropped.txt": "d\n", "fresh.txt": "f\n" };
  const mine = await commitFiles(files, "fresh", dropped);
  await pushWith(mine, { own: new Set([kept, dropped, mine]), pushed: dropped });
  expect(await git("ls-tree", "--name-only", await remote("work"))).toBe("README.md\nfresh.txt\nkept.txt");
});

test("an agent that rewrote its own commits does not undo what somebody else committed on top of them", async () => {
  const first = await commit("1\n", "first");
  await push(first, []);
  await theirPush(await commitFiles({ "work.txt": "1\n", "their.txt": "t\n" }, "theirs", first));
  const amended = await commitFiles({ "work.txt": "1\n", "more.txt": "m\n" }, "first, amended");
  await pushWith(amended, { own: new Set([first, amended]), pushed: first });
  expect(await git("ls-tree", "--name-only", await remote("work"))).toBe("README.md\nmore.txt\ntheir.txt\nwork.txt");
});

test("an agent that rewrote its own commits, and nobody else's, has its files on the branch", async () => {
  const first = await commit("1\n", "first");
  await push(first, []);
  const amended = await commit("2\n", "first, amended");
  await pushWith(amended, { own: new Set([first, amended]), pushed: first });
  expect(await remote("work^")).toBe(first);
  expect(await remote("work^{tree}")).toBe(await git("rev-parse", `${amended}^{tree}`));
});

test("a branch of another history is not pushed to", async () => {
  const identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
  const other = await git(...identity, "commit-tree", `${base}^{tree}`, "-m", "another history");
  await theirPush(other);
  await expect(pushWith(await commit("mine", "mine"))).rejects.toMatchObject({
    code: "branch_diverged",
    retryable: false,
  });
  expect(await remote("work")).toBe(other);
});

test("a branch that was pushed and deleted is made again only if that is wished, or there is something new", async () => {
  const mine = await commit("1\n", "mine");
  await push(mine, []);
  const url = mirror.url.replace("://", `://x:${forge.token}@`);
  await git("push", "--quiet", "--delete", url, "work");
  const refused = { pushed: mine, mayRecreate: () => Promise.resolve(false) };
  expect(await pushWith(mine, refused)).toEqual({ kind: "gone" });
  await expect(remote("work")).rejects.toThrow("unknown revision");
  const more = await commitFiles({ "more.txt": "m\n" }, "more", mine);
  expect(await pushWith(more, refused)).toEqual({ kind: "pushed", sha: more });
  await git("push", "--quiet", "--delete", url, "work");
  expect(await pushWith(mine, { pushed: mine })).toEqual({ kind: "pushed", sha: mine });
});

test("a branch that became the repository's own since the session began is not pushed to", async () => {
  const mine = await commit("of the agent", "mine");
  await push(await commit("before", "before"), []);
  const before = await remote("work");
  await expect(push(mine, [before], "work")).rejects.toMatchObject({ code: "branch_protected" });
  await mustGit(["symbolic-ref", "HEAD", "refs/heads/work"], { cwd: forge.pathOf("acme", "late"), signal });
  await expect(push(mine, [before])).rejects.toMatchObject({ code: "branch_protected" });
  expect(await remote("work")).toBe(before);
  await mustGit(["symbolic-ref", "HEAD", "refs/heads/main"], { cwd: forge.pathOf("acme", "late"), signal });
  expect(await push(mine, [before])).toBe(await remote("work"));
});

test("a refusal of git's own has its words", async () => {
  const bare = forge.pathOf("acme", "late");
  await mustGit(["config", "receive.hideRefs", "refs/heads/work"], { cwd: bare, signal });
  await expect(pushWith(await commit("mine", "mine"))).rejects.toMatchObject({
    code: "push_rejected",
    message: "The server rejected the push of work: deny updating a hidden ref",
    retryable: false,
  });
});

test.each([
  ["push", "push to"],
  ["fetch", "question for branches to"],
] as const)("a server that never ends a %s holds no session for longer than the limit", async (at, words) => {
  const mine = await commit("mine", "mine");
  await forge.failNext({ kind: "hang", at });
  const limited = { ...mirror, fetchLimits: { bytes: 2 ** 30, memoryBytes: 2 ** 32, ms: 1_500 } };
  await expect(pushWith(mine, {}, limited)).rejects.toMatchObject({
    code: "repository_unreachable",
    message: expect.stringContaining(`The ${words} the repository`) as string,
    retryable: true,
  });
});

test("a server that never answers the first question holds no session for longer than the limit", async () => {
  await forge.failNext({ kind: "hang", at: "fetch" });
  const path = join(folder, "new.git");
  const limited = { ...mirror, path, fetchLimits: { bytes: 2 ** 30, memoryBytes: 2 ** 32, ms: 1_500 } };
  await expect(ensureMirror(limited, signal)).rejects.toMatchObject({
    code: "repository_unreachable",
    message: expect.stringContaining("The question for branches to the repository") as string,
    passing: true,
  });
});
