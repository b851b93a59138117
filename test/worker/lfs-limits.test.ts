import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fetchContents, uploadContents } from "../../src/worker/git/lfs/transfers.ts";
import { lfsPath, lfsStore } from "../../src/worker/git/lfs/store.ts";
import { ensureMirror } from "../../src/worker/git/mirrors/make-mirror.ts";
import { fetchBranch } from "../../src/worker/git/mirrors/fetch-commits.ts";
import { lookUpHeads } from "../../src/worker/git/mirrors/ask-remote.ts";
import type { Mirror } from "../../src/worker/git/mirrors/mirror.ts";
import { startForge, type TestForge } from "../forge/server.ts";

const isInstalled = spawnSync("git", ["lfs", "version"]).status === 0;
const { signal } = new AbortController();
const content = "content of a file in LFS";
const oid = createHash("sha256").update(content).digest("hex");
let forge: TestForge;
let folder: string;
let mirror: Mirror;
let sha: string;

beforeEach(async () => {
  forge = await startForge();
  folder = await mkdtemp(join(tmpdir(), "offstage-lfs-"));
  const { url } = await forge.createRepository("acme", "large", {
    ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    "old.bin": `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${content.length}\n`,
  });
  const credentials = () => Promise.resolve({ username: "token", password: forge.token });
  mirror = { path: join(folder, "mirror.git"), url, local: false, named: true, credentials };
  await ensureMirror(mirror, signal);
  sha = (await lookUpHeads(mirror, { targetBranch: null, branch: "work" }, signal)).targetSha;
  await fetchBranch(mirror, { branch: "main", sha, into: "refs/offstage/test/target" }, () => undefined, signal);
  await forge.failNext({ kind: "hang", at: "lfs" });
  mirror = { ...mirror, fetchLimits: { bytes: 2 ** 30, memoryBytes: 2 ** 32, ms: 3_000 } };
});

afterEach(async () => {
  await forge.close();
  await rm(folder, { recursive: true, force: true });
});

describe.skipIf(!isInstalled)("a server of LFS that never answers", () => {
  test("holds a download for no longer than the limit", async () => {
    await expect(fetchContents(mirror, sha, signal)).rejects.toMatchObject({
      code: "repository_unreachable",
      message: expect.stringContaining("The download of files in LFS from the repository") as string,
      passing: true,
    });
  });

  test("holds an upload for no longer than the limit", async () => {
    const path = lfsPath(lfsStore(mirror.path), oid);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
    await expect(uploadContents(mirror, [oid], signal)).rejects.toMatchObject({
      code: "repository_unreachable",
      message: expect.stringContaining("The upload of files in LFS to the repository") as string,
      passing: true,
    });
  });
});
