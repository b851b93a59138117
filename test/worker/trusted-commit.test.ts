import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fetchHeads, trustedSince, type Heads } from "../../src/worker/clones/create-clone.ts";
import { ensureMirror } from "../../src/worker/git/mirrors/make-mirror.ts";
import type { Mirror } from "../../src/worker/git/mirrors/mirror.ts";
import type { RemoteRepository } from "../../src/worker/git/remote-repository.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

const signal = AbortSignal.timeout(hangTimeoutMs);
let folder: string;
let remote: string;
let mirror: Mirror;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-trusted-"));
  remote = join(folder, "remote");
  execFileSync("git", ["init", "--quiet", "--initial-branch", "main", remote]);
  commit("first");
  const credentials = () => Promise.resolve(null);
  mirror = { path: join(folder, "mirror.git"), url: remote, local: true, named: true, credentials };
  await ensureMirror(mirror, signal);
});

afterEach(() => rm(folder, { recursive: true, force: true }));

function git(...parameters: string[]): string {
  const identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
  return execFileSync("git", ["-C", remote, ...identity, ...parameters], { encoding: "utf8" }).trim();
}

function commit(message: string): string {
  git("commit", "--quiet", "--allow-empty", "--message", message);
  return git("rev-parse", "HEAD");
}

const fetched = (how: Partial<RemoteRepository> = {}): Promise<Heads> =>
  fetchHeads(
    mirror,
    "a-session",
    {
      id: remote,
      url: remote,
      directory: "clone",
      branch: "offstage/work",
      targetBranch: null,
      configuredBranch: null,
      baseSha: null,
      headSha: null,
      named: true,
      credentials: mirror.credentials,
      ...how,
    },
    () => undefined,
    signal,
  );

describe("the commit whose setup may have secrets", () => {
  test("is the tip of the configured branch, or else of the default branch", async () => {
    const main = git("rev-parse", "main");
    expect((await fetched()).trusted).toEqual({ sha: main, branch: "main", isDefault: true });
    git("checkout", "--quiet", "-b", "trunk");
    const trunk = commit("second");
    git("checkout", "--quiet", "main");
    const configured = { targetBranch: "trunk", configuredBranch: "trunk" };
    expect((await fetched(configured)).trusted).toEqual({ sha: trunk, branch: "trunk", isDefault: false });
  });

  test.each([
    ["another branch", { targetBranch: "other" }],
    ["an older commit of it", { targetBranch: "older" }],
    ["the default branch, where another is configured", { targetBranch: "main", configuredBranch: "other" }],
    ["a branch whose name ends with it", { targetBranch: "refs/heads/main" }],
    ["a branch, where the configured one is gone", { targetBranch: "other", configuredBranch: "gone" }],
    ["the branch of an open pull request, where the default one is another by now", { formerTarget: "older" }],
  ])("is none for %s", async (_, how) => {
    git("branch", "older", "main");
    commit("second");
    for (const name of ["other", "refs/heads/main"]) {
      git("checkout", "--quiet", "-b", name, "main");
      commit(`on ${name}`);
    }
    git("checkout", "--quiet", "main");
    expect((await fetched(how)).trusted).toBeNull();
  });

  test("stays the one that a session began with while the branch goes on", async () => {
    const start = await fetched();
    commit("second");
    const now = await fetched();
    expect(now.trusted).not.toEqual(start.trusted);
    expect(await trustedSince(mirror, start, now, signal)).toEqual(start.trusted);
    expect(await trustedSince(mirror, { ...start, trusted: null }, now, signal)).toEqual(now.trusted);
  });

  test("is another once the branch was rewritten, another one is configured, or the session goes elsewhere", async () => {
    const start = await fetched();
    git("branch", "other", "main");
    git("commit", "--quiet", "--amend", "--allow-empty", "--message", "Without what was bad");
    const rewritten = await fetched();
    expect(await trustedSince(mirror, start, rewritten, signal)).toEqual(rewritten.trusted);
    const configured = await fetched({ targetBranch: "other", configuredBranch: "other" });
    expect(await trustedSince(mirror, start, configured, signal)).toEqual(configured.trusted);
    const elsewhere = await fetched({ targetBranch: "other" });
    expect(await trustedSince(mirror, start, elsewhere, signal)).toBeNull();
  });
});
