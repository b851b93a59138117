import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SessionError } from "../../src/domain/errors/errors.ts";
import { mustGit } from "../../src/worker/git/git.ts";
import { ensureMirror } from "../../src/worker/git/mirrors/make-mirror.ts";
import { fetchBranch, fetchCommit } from "../../src/worker/git/mirrors/fetch-commits.ts";
import { createFetchTurns, type FetchTurns } from "../../src/worker/git/mirrors/fetch-turns.ts";
import { lookUpHeads } from "../../src/worker/git/mirrors/ask-remote.ts";
import { remoteOptions, type Mirror } from "../../src/worker/git/mirrors/mirror.ts";
import { findTip, joinWithTip, pushCommit } from "../../src/worker/git/mirrors/push.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { commitFiles, type Files } from "./commit-files.ts";

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

/** A commit in the mirror, with the base's files and these. */
const mineOf = (files: Files, ...parents: readonly string[]): Promise<string> =>
  commitFiles(mirror.path, base, files, "mine", ...parents);

/** A commit in the repository on the forge alone, with the base's files and these. */
const theirsOf = (files: Files, ...parents: readonly string[]): Promise<string> =>
  commitFiles(forge.pathOf("acme", "late"), base, files, "theirs", ...parents);

const onForge = (...parameters: string[]): Promise<string> =>
  mustGit(parameters, { cwd: forge.pathOf("acme", "late"), signal });

/** Moves the branch, as another's push. */
const theirPush = (sha: string): Promise<string> => onForge("update-ref", "refs/heads/work", sha);

const remote = (parameter: string): Promise<string> => onForge("rev-parse", parameter);

const find = async (configuredBranch: string | null = null, from = mirror): Promise<string | null> =>
  findTip(from, { branch: "work", configuredBranch }, await remoteOptions(from, signal));

const push = async (sha: string, to = mirror): ReturnType<typeof pushCommit> =>
  pushCommit(to, { branch: "work", sha }, await remoteOptions(to, signal));

function joinTip(ours: string, theirs: string): ReturnType<typeof joinWithTip> {
  const usual = {
    branch: "work",
    pushed: null,
    own: new Set<string>(),
    author,
    message: "Go on",
    pin: "refs/offstage/test/theirs",
  };
  return joinWithTip(mirror, { ...usual, ours, theirs }, signal);
}

test.each<["fetch" | "push", "first" | "later"]>([
  ["fetch", "first"],
  ["fetch", "later"],
  ["push", "first"],
  ["push", "later"],
])("a %s whose %s request is refused for a while says how long, as the server asked", async (at, which) => {
  const mine = await mineOf({ "mine.txt": "m\n" });
  const attempt = (): Promise<unknown> => (at === "fetch" ? find() : push(mine));
  const refusal = { kind: "refuseGit", at, late: which === "later" } as const;
  const passing = { code: "repository_unreachable", passing: true };

  await forge.failNext({ ...refusal, status: 429, retryAfter: "120" });
  await expect(attempt()).rejects.toMatchObject({ ...passing, retryAfterMs: 120_000 });

  const tomorrow = new Date(Date.now() + 24 * 60 * 60_000).toUTCString();
  await forge.failNext({ ...refusal, status: 503, retryAfter: tomorrow });
  const error = await attempt().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ ...passing, message: expect.not.stringContaining("Retry-After") as string });
  expect((error as SessionError).retryAfterMs).toBeGreaterThan(60 * 60_000);

  await forge.failNext({ ...refusal, status: 503 });
  await expect(attempt()).rejects.toMatchObject({ ...passing, retryAfterMs: undefined });
  await attempt();
});

test("a refusal that names a time is not for good, and is not asked otherwise at once", async () => {
  await forge.failNext({ kind: "refuseGit", at: "fetch", status: 403, retryAfter: "60" });
  const unknown = "1".repeat(40);
  await expect(fetchCommit(mirror, unknown, () => undefined, signal)).rejects.toMatchObject({
    code: "repository_unreachable",
    passing: true,
    retryAfterMs: 60_000,
  });
});

test("sessions that fetch one branch at the same time wait for one fetch", async () => {
  const theirs = await theirsOf({ "their.txt": "t\n" });
  await theirPush(theirs);
  const pins = ["refs/offstage/one", "refs/offstage/two", "refs/offstage/three"];
  const inner = createFetchTurns();
  const fetchAll = (): Promise<PromiseSettledResult<void>[]> => {
    let arrived = 0;
    const all = Promise.withResolvers<void>();
    const turns: FetchTurns = {
      take(...wanted) {
        arrived += 1;
        if (arrived === pins.length) all.resolve();
        return inner.take(...wanted);
      },
    };
    const credentials = () => all.promise.then(() => mirror.credentials());
    const shared = { ...mirror, turns, credentials };
    return Promise.allSettled(
      pins.map((into) => fetchBranch(shared, { branch: "work", sha: theirs, into }, () => undefined, signal)),
    );
  };
  await forge.failNext({ kind: "refuseGit", at: "fetch", late: true, status: 503, retryAfter: "60" });
  const refused = { status: "rejected", reason: expect.objectContaining({ retryAfterMs: 60_000 }) as unknown };
  expect(await fetchAll()).toEqual(pins.map(() => refused));
  expect((await fetchAll()).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  const kept = await mustGit(["for-each-ref", "--format=%(refname) %(objectname)", ...pins], {
    cwd: mirror.path,
    signal,
  });
  expect(kept.split("\n").toSorted()).toEqual(pins.map((pin) => `${pin} ${theirs}`).toSorted());
});

test("the tip of a branch is the commit that the remote has it at, and null if it has no such branch", async () => {
  expect(await find()).toBe(null);
  const theirs = await theirsOf({ "their.txt": "t\n" });
  await theirPush(theirs);
  expect(await find()).toBe(theirs);
});

test("a branch that is the repository's own is not looked at further", async () => {
  await theirPush(base);
  await expect(find("work")).rejects.toMatchObject({ code: "branch_protected" });
  await onForge("symbolic-ref", "HEAD", "refs/heads/work");
  await expect(find()).rejects.toMatchObject({ code: "branch_protected" });
  await onForge("symbolic-ref", "HEAD", "refs/heads/main");
  expect(await find("main")).toBe(base);
});

test("work is joined with a tip that only the remote has, which the mirror keeps from then on", async () => {
  const theirs = await theirsOf({ "their.txt": "t\n" });
  await theirPush(theirs);
  const mine = await mineOf({ "mine.txt": "m\n" });
  const joined = (await joinTip(mine, theirs)) as string;
  const inMirror = (...parameters: string[]): Promise<string> => mustGit(parameters, { cwd: mirror.path, signal });
  expect(await inMirror("rev-parse", `${joined}^1`, `${joined}^2`)).toBe(`${mine}\n${theirs}`);
  expect(await inMirror("rev-parse", `refs/offstage/test/theirs/${theirs}`)).toBe(theirs);
});

test("work that has the tip is pushed as it is, and a tip that has the work stays", async () => {
  const theirs = await theirsOf({ "their.txt": "t\n" });
  await theirPush(theirs);
  expect(await joinTip(base, theirs)).toBe(theirs);
  const mine = await mineOf({ "their.txt": "t\n", "mine.txt": "m\n" }, theirs);
  expect(await joinTip(mine, theirs)).toBe(mine);
});

test("work that collides with the tip has no commit that could be pushed", async () => {
  const theirs = await theirsOf({ "work.txt": "theirs\n" });
  await theirPush(theirs);
  const mine = await mineOf({ "work.txt": "mine\n" });
  expect(await joinTip(mine, theirs)).toMatchObject({ theirs, paths: ["work.txt"], onto: null });
});

test("a commit is pushed onto what it has, and never over what it lacks", async () => {
  const mine = await mineOf({ "mine.txt": "m\n" });
  expect(await push(mine)).toBe("pushed");
  expect(await remote("work")).toBe(mine);
  const theirs = await theirsOf({ "their.txt": "t\n" }, mine);
  await theirPush(theirs);
  expect(await push(await mineOf({ "more.txt": "m\n" }, mine))).toMatchObject({ code: "push_rejected", passing: true });
  expect(await remote("work")).toBe(theirs);
});

test("a refusal of git's own has its words", async () => {
  await onForge("config", "receive.hideRefs", "refs/heads/work");
  await expect(push(await mineOf({ "work.txt": "mine" }))).rejects.toMatchObject({
    code: "push_rejected",
    message: "The server rejected the push of work: deny updating a hidden ref",
    retryable: false,
  });
});

test.each([
  ["push", "push to"],
  ["fetch", "question for branches to"],
] as const)("a server that never ends a %s holds no session for longer than the limit", async (at, words) => {
  const mine = await mineOf({ "work.txt": "mine" });
  await forge.failNext({ kind: "hang", at });
  const limited = { ...mirror, fetchLimits: { bytes: 2 ** 30, memoryBytes: 2 ** 32, ms: 1_500 } };
  const asking = at === "push" ? push(mine, limited) : find(null, limited);
  await expect(asking).rejects.toMatchObject({
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
