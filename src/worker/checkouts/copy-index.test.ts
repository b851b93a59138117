import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { copyIndex } from "./copy-index.ts";

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-index-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

function git(...parameters: readonly string[]): string {
  return execFileSync("git", parameters, { cwd: folder, encoding: "utf8", stdio: "pipe" });
}

/** A repository with files whose names have each length that matters to the form of an index. */
async function makeRepository(format: "sha1" | "sha256"): Promise<string> {
  git("init", "--quiet", `--object-format=${format}`);
  // Longer than an entry has room to say, and than a file system would take.
  const deep = Array.from({ length: 25 }, () => "x".repeat(200)).join("/");
  const names = Array.from({ length: 17 }, (_, length) => "n".repeat(length + 1));
  for (const name of [...names, "ü"]) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), name);
  }
  git("add", "--all");
  git("update-index", "--add", "--cacheinfo", `100644,${git("hash-object", "-w", "n").trim()},${deep}`);
  return git("write-tree").trim();
}

async function copied(sha: string): Promise<Buffer> {
  await copyIndex(join(folder, ".git/index"), join(folder, "copy"), { uid: 2_100_000_123, gid: 77 }, sha);
  return readFile(join(folder, "copy"));
}

test.each(["sha1", "sha256"] as const)(
  "an index of a repository with %s names another owner, and is as git writes it",
  async (format) => {
    const sha = await makeRepository(format);
    // Another tree, so that the index has an extension, and an entry with more flags, which makes it one of version 3.
    await writeFile(join(folder, "later"), "");
    git("add", "--intent-to-add", "later");
    const before = git("ls-files", "--stage", "--debug");
    const index = await copied(sha);
    const hash = createHash(format)
      .update(index.subarray(0, -sha.length / 2))
      .digest("hex");
    expect(index.subarray(-sha.length / 2).toString("hex")).toBe(hash);
    expect(index.readUInt32BE(4)).toBe(3);
    await writeFile(join(folder, ".git/index"), index);
    const [uid, gid] = [process.getuid?.(), process.getgid?.()];
    const after = git("ls-files", "--stage", "--debug");
    expect(after).toContain("uid: 2100000123\tgid: 77");
    expect(after.replaceAll("uid: 2100000123\tgid: 77", `uid: ${uid}\tgid: ${gid}`)).toBe(
      before.replaceAll("uid: 0\tgid: 0", `uid: ${uid}\tgid: ${gid}`),
    );
    git("fsck", "--cache");
  },
);

test("an index of another version is refused", async () => {
  const sha = await makeRepository("sha1");
  git("update-index", "--index-version", "4");
  await expect(copied(sha)).rejects.toThrow(/has the form 4$/u);
});
