import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { messageOf } from "../../src/domain/errors/errors.ts";
import { createLogger } from "../../src/observability.ts";
import { maintainMirrors } from "../../src/worker/background/mirror-maintenance.ts";
import { pruneRecordings } from "../../src/worker/background/prune-recordings.ts";
import type { CloneServices } from "../../src/worker/clones/clone.ts";
import { makeClones, openClones } from "../../src/worker/clones/clones.ts";
import { removeSession } from "../../src/worker/clones/remove-session.ts";
import { damageIn, DamagedMirrorError } from "../../src/worker/git/damage.ts";
import { mustGit } from "../../src/worker/git/git.ts";
import { noteUsed } from "../../src/worker/git/lfs/prune-contents.ts";
import { lfsPath, lfsStore, markMade } from "../../src/worker/git/lfs/store.ts";
import { markDamaged } from "../../src/worker/git/mirrors/mend.ts";
import { createFolderLock } from "../../src/worker/git/mirrors/folder-lock.ts";
import { waitFor } from "../wait-for.ts";
import { cloneServicesIn, cloneSourceAt } from "./clone-source.ts";

let data: string;
let services: CloneServices;
const { signal } = new AbortController();
const logger = createLogger("warn");

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "offstage-mirrors-"));
  services = cloneServicesIn(data);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(data, { recursive: true, force: true });
});

function git(cwd: string, ...parameters: string[]): string {
  const identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...identity, ...parameters], { cwd, encoding: "utf8", stdio: "pipe" }).trim();
}

/** A repository to clone, with one commit. */
async function createRemote(name: string, format = "sha1"): Promise<string> {
  const path = join(data, "remotes", name);
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true });
  git(path, "init", "--quiet", `--object-format=${format}`, "--initial-branch", "main");
  await commit(path, "first");
  return path;
}

async function commit(path: string, content: string): Promise<void> {
  await writeFile(join(path, "file.txt"), `${content}\n`);
  git(path, "add", "--all");
  git(path, "commit", "--quiet", "--message", content);
}

/** Begins a session on the repository. @returns its id, and its clone's folder */
async function begin(url: string, id: string = crypto.randomUUID()): Promise<{ id: string; clone: string }> {
  const request = { sessionId: id, sources: [cloneSourceAt(url)], progress: () => undefined, signal };
  const clones = (await openClones(services, request)) ?? (await makeClones(services, request, null)).clones;
  return { id, clone: clones[0]?.folder ?? "" };
}

const keep = async (days: number, maximumBytes = 0): Promise<number> =>
  (await maintainMirrors({ ...services, logger }, { days, maximumBytes }, signal)).removed;

const mirrorOf = (url: string): string => services.mirrors.pathOf(url);

/** Adds 25 small packs to a mirror. */
async function fetchOften(url: string): Promise<void> {
  for (let count = 0; count < 25; count += 1) {
    await commit(url, `change ${count}`);
    git(mirrorOf(url), "-c", "fetch.unpackLimit=1", "fetch", "--quiet", url, `+main:refs/heads/tip`);
  }
}

async function packsOf(mirror: string): Promise<string[]> {
  return (await readdir(join(mirror, "objects/pack"))).filter((name) => name.endsWith(".pack"));
}

/** As if it had been used last so many days ago. */
async function age(url: string, days: number): Promise<void> {
  const then = new Date(Date.now() - days * 24 * 60 * 60 * 1_000);
  await utimes(join(mirrorOf(url), "offstage-used"), then, then);
}

test("a mirror that was not used for long goes, but not while a session has a clone of it, and is made again", async () => {
  const url = await createRemote("one");
  const { id, clone } = await begin(url);
  await age(url, 31);
  expect(await keep(30)).toBe(0);
  expect(git(clone, "fsck", "--full")).not.toContain("missing");
  await removeSession(services, id);
  await age(url, 29);
  expect(await keep(30)).toBe(0);
  await age(url, 31);
  expect(await keep(0)).toBe(0);
  expect(await keep(30)).toBe(1);
  expect(await readdir(services.mirrors.directory)).toEqual([]);
  const again = await begin(url);
  expect(await readFile(join(again.clone, "file.txt"), "utf8")).toBe("first\n");
});

test("a file in LFS that no session used for long goes from a mirror that is used, but none that the remote may not have", async () => {
  const url = await createRemote("one");
  await begin(url);
  const store = lfsStore(mirrorOf(url));
  const put = async (name: string, days: number): Promise<string> => {
    const oid = createHash("sha256").update(name).digest("hex");
    const then = new Date(Date.now() - days * 24 * 60 * 60 * 1_000);
    await mkdir(dirname(lfsPath(store, oid)), { recursive: true });
    await writeFile(lfsPath(store, oid), name);
    await utimes(lfsPath(store, oid), then, then);
    return oid;
  };
  const [unused, used, recent, made] = [await put("a", 31), await put("b", 31), await put("c", 29), await put("d", 31)];
  await markMade(store, made);
  const commits = ["1".repeat(40), "2".repeat(40)] as const;
  await noteUsed(store, commits[0], () => Promise.resolve([used, "0".repeat(64)]));
  // Once a day is enough: what the commit has is not read again.
  await noteUsed(store, commits[0], () => Promise.reject(new Error("it is read again")));
  await expect(noteUsed(store, commits[1], () => Promise.reject(new Error("it is read")))).rejects.toThrow(
    "it is read",
  );
  expect(await keep(0)).toBe(0);
  expect(existsSync(lfsPath(store, unused))).toBe(true);
  expect(await keep(30)).toBe(0);
  expect([unused, used, recent, made].map((oid) => existsSync(lfsPath(store, oid)))).toEqual([false, true, true, true]);
});

describe("a mirror that is damaged is mended before its next use, and a session that borrows from it goes on:", () => {
  const overwrite = (files: string, content: string): string =>
    `for file in $(find ${files}); do chmod u+w "$file"; ${content} > "$file"; done`;
  test.each([
    ["refs that are empty, as after a loss of power", overwrite("refs -type f", "true")],
    ["a HEAD that is empty", overwrite("HEAD", "true")],
    ["a list of refs that is cut off", "git pack-refs --all; truncate -s -30 packed-refs"],
    ["a pack that can't be read", overwrite("objects -name *.pack", "head -c 200 /dev/zero")],
    ["packs that are gone", "rm -f objects/pack/*"],
  ])("%s", async (_, damage) => {
    const url = await createRemote("one");
    const { id, clone } = await begin(url);
    execFileSync("sh", ["-ec", damage], { cwd: mirrorOf(url), stdio: "pipe" });
    await commit(url, "second");
    const words = await begin(url).then(
      () => "",
      (error: unknown) => messageOf(error),
    );
    expect(words).toMatch(/^$|^This worker's own copy of the repository is damaged: /u);
    // As after an attempt that failed so.
    await markDamaged(mirrorOf(url));
    const second = await begin(url);
    expect(await readFile(join(second.clone, "file.txt"), "utf8")).toBe("second\n");
    expect(await begin(url, id)).toEqual({ id, clone });
    for (const each of [clone, second.clone]) expect(git(each, "fsck", "--full", "--no-dangling")).toBe("");
  });
});

test("a mirror that two sessions begin with is mended once", async () => {
  const url = await createRemote("one");
  await begin(url);
  await markDamaged(mirrorOf(url));
  const bin = join(data, "bin");
  await mkdir(bin);
  const real = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  await writeFile(join(bin, "git"), `#!/bin/sh\necho "$*" >> ${join(bin, "called")}\nexec ${real} "$@"\n`, {
    mode: 0o755,
  });
  vi.stubEnv("PATH", `${bin}${delimiter}${process.env["PATH"]}`);
  const verified = async (): Promise<number> =>
    (await readFile(join(bin, "called"), "utf8")).split("\n").filter((line) => line.includes("verify-pack")).length;
  const [{ id }] = await Promise.all([begin(url), begin(url)]);
  expect(await verified()).toBe(1);
  // As after a mend of which nothing was fetched yet.
  await writeFile(join(mirrorOf(url), "offstage-lacking"), "");
  await begin(url, id);
  expect(await verified()).toBe(1);
  expect(existsSync(join(mirrorOf(url), "offstage-lacking"))).toBe(false);
});

test.each([
  ["its pack can't be read", "pack", (pack: Buffer) => Buffer.alloc(pack.length)],
  [
    "one byte of its pack is another",
    "pack",
    (pack: Buffer) => Buffer.concat([pack.subarray(0, 40), Buffer.from([(pack[40] ?? 0) ^ 1]), pack.subarray(41)]),
  ],
  ["the index of its pack is cut off", "idx", (index: Buffer) => index.subarray(0, 20)],
])(
  "words from a clone show that the mirror is damaged where %s, and nothing where it can be read",
  async (_, kind, change) => {
    const url = await createRemote("one");
    const { clone } = await begin(url);
    const words = [git(clone, "rev-parse", "HEAD"), "1".repeat(40)]
      .map((sha) => `It broke: fatal: loose object ${sha} (stored in .git/objects) is corrupt`)
      .join("\n");
    expect(await damageIn(mirrorOf(url), words)).toBe(null);
    const packs = join(mirrorOf(url), "objects/pack");
    const path = join(packs, (await readdir(packs)).find((name) => name.endsWith(`.${kind}`)) ?? "");
    const content = change(await readFile(path));
    await rm(path);
    await writeFile(path, content);
    expect(await damageIn(mirrorOf(url), words)).toBeInstanceOf(DamagedMirrorError);
  },
);

test("what is beyond the size goes, the least recently used first, and what is pinned stays even then", async () => {
  const [oldest, middle, pinned, newest] = await Promise.all(["a", "b", "c", "d"].map((name) => createRemote(name)));
  for (const [url, days] of [
    [pinned, 4],
    [oldest, 3],
    [middle, 2],
    [newest, 1],
  ] as const) {
    const { id } = await begin(url ?? "");
    if (url !== pinned) await removeSession(services, id);
    await age(url ?? "", days);
  }
  const there = (): boolean[] => [oldest, middle, pinned, newest].map((url) => existsSync(mirrorOf(url ?? "")));
  expect(await keep(30)).toBe(0);
  const kilobytes = Number(/^size-pack: (\d+)$/mu.exec(git(mirrorOf(pinned ?? ""), "count-objects", "-v"))?.[1]);
  expect(kilobytes).toBeGreaterThan(0);
  expect(await keep(30, (4 * kilobytes - 1) * 1024)).toBe(1);
  expect(there()).toEqual([false, true, true, true]);
  expect(await keep(30, 1)).toBe(2);
  expect(there()).toEqual([false, false, true, false]);
});

test("if the disk has no room, the least recently used go until it has, and what is pinned stays", async () => {
  const urls = await Promise.all(["a", "b", "c", "d"].map((name) => createRemote(name)));
  for (const [index, url] of urls.entries()) {
    const { id } = await begin(url);
    if (index > 0) await removeSession(services, id);
    await age(url, 10 - index);
  }
  const there = (): boolean[] => urls.map((url) => existsSync(mirrorOf(url)));
  const hasRoom = () => Promise.resolve(!existsSync(mirrorOf(urls[2] ?? "")));
  const limits = { days: 0, maximumBytes: 0, hasRoom };
  expect(await maintainMirrors({ ...services, logger }, limits, signal)).toMatchObject({ removed: 2 });
  expect(there()).toEqual([true, false, false, true]);
  expect(await maintainMirrors({ ...services, logger }, limits, signal)).toMatchObject({ removed: 0 });
});

test("what an erasure could not remove, since a session borrows from it, goes when none does, once", async () => {
  const url = await createRemote("shared");
  const { id } = await begin(url);
  const everything = { days: 0, maximumBytes: 1, alsoLater: true };
  expect(await maintainMirrors({ ...services, logger }, everything, signal)).toEqual({ removed: 0, failed: 0 });
  expect(await keep(30)).toBe(0);
  await removeSession(services, id);
  expect(await keep(30)).toBe(1);
  const again = await begin(url);
  await removeSession(services, again.id);
  expect(await keep(30)).toBe(0);
});

test("sessions that start while mirrors are removed all get whole clones", async () => {
  const url = await createRemote("contended");
  let removed = 0;
  let starting = true;
  const removing = (async () => {
    while (starting) removed += await keep(0, 1);
  })();
  try {
    for (let round = 0; round < 12; round += 1) {
      const begun = await Promise.all([begin(url), begin(url)]);
      for (const { id, clone } of begun) {
        expect(git(clone, "fsck", "--full")).not.toMatch(/missing|broken|error/u);
        await removeSession(services, id);
      }
    }
  } finally {
    starting = false;
    await removing;
  }
  expect(removed).toBeGreaterThan(0);
});

test("many packs become one, and nothing that a clone borrows is dropped, pinned or not", async () => {
  const url = await createRemote("busy");
  const { id, clone } = await begin(url);
  const mirror = mirrorOf(url);
  await fetchOften(url);
  // An agent found it among the borrowed objects; in the mirror no ref reaches it any more.
  const tip = git(mirror, "rev-parse", "refs/heads/tip");
  git(clone, "update-ref", "refs/heads/found", tip);
  git(mirror, "update-ref", "-d", "refs/heads/tip");
  expect(await packsOf(mirror)).toHaveLength(26);
  const stale = join(mirror, "objects/pack/tmp_pack_killed");
  const fresh = join(mirror, "objects/pack/tmp_pack_at_work");
  for (const path of [stale, fresh]) await writeFile(path, "x");
  const longAgo = new Date(Date.now() - 2 * 24 * 60 * 60 * 1_000);
  await utimes(stale, longAgo, longAgo);
  expect(await keep(30)).toBe(0);
  expect(await packsOf(mirror)).toHaveLength(1);
  expect([stale, fresh].map((path) => existsSync(path))).toEqual([false, true]);
  expect(git(clone, "fsck", "--full")).not.toMatch(/missing|broken|error/u);
  expect(git(clone, "show", "found:file.txt")).toBe("change 24");
  await removeSession(services, id);
});

test("small packs and loose objects are joined beside a large pack, which is not written again", async () => {
  const url = await createRemote("large");
  for (let file = 0; file < 200; file += 1) await writeFile(join(url, `file-${file}`), String(file));
  await commit(url, "many files");
  const { id, clone } = await begin(url);
  const mirror = mirrorOf(url);
  const [large = ""] = await packsOf(mirror);
  await fetchOften(url);
  const loose = git(mirror, "hash-object", "-w", "/dev/null");
  const hasRoom = () => Promise.resolve(false);
  await maintainMirrors({ ...services, logger }, { days: 30, maximumBytes: 0, hasRoom }, signal);
  expect(await packsOf(mirror)).toHaveLength(26);
  await keep(30);
  expect(await packsOf(mirror)).toHaveLength(2);
  expect(await packsOf(mirror)).toContain(large);
  expect(git(mirror, "count-objects")).toMatch(/^0 objects/u);
  expect(git(mirror, "cat-file", "-t", loose)).toBe("blob");
  expect(git(clone, "fsck", "--full")).not.toMatch(/missing|broken|error/u);
  await removeSession(services, id);
});

test("a repack that is stopped leaves nothing of what it wrote", async () => {
  const url = await createRemote("stopped");
  await begin(url);
  const mirror = mirrorOf(url);
  await fetchOften(url);
  // A large content takes long: git is ended as soon as it writes.
  const large = Readable.from([randomBytes(64 * 1024 ** 2)]);
  await mustGit(["-c", "core.compression=0", "hash-object", "-w", "--stdin"], { cwd: mirror, signal, input: large });
  const folder = join(mirror, "objects/pack");
  const unfinished = async (): Promise<string[]> => (await readdir(folder)).filter((name) => name.includes("tmp"));
  const stop = new AbortController();
  const repacked = maintainMirrors({ ...services, logger }, { days: 30, maximumBytes: 0 }, stop.signal);
  await waitFor(async () => (await unfinished()).length > 0, "git writes a pack");
  stop.abort();
  await repacked;
  expect(await unfinished()).toEqual([]);
});

test("pins that a killed removal left are let go, and what the next fetch builds on stays", async () => {
  const url = await createRemote("left");
  const { id } = await begin(url);
  const { id: alive } = await begin(url);
  await rm(join(data, "sessions", id), { recursive: true });
  await keep(30);
  const refs = git(mirrorOf(url), "for-each-ref", "--format=%(refname)").split("\n");
  expect(refs.toSorted()).toEqual([`refs/offstage/${alive}/clone/target`, "refs/offstage/latest/main"].toSorted());
});

test("what was half made or half removed when a process died goes", async () => {
  const directory = join(data, "mirrors");
  const old = new Date(Date.now() - 2 * 24 * 60 * 60 * 1_000);
  for (const name of ["removed-0123", ".new-old", ".new-fresh"])
    await mkdir(join(directory, name, "objects"), { recursive: true });
  await utimes(join(directory, ".new-old"), old, old);
  await keep(30);
  expect(await readdir(directory)).toEqual([".new-fresh"]);
});

test("a session whose mirror was removed gets it back, with its work kept", async () => {
  const url = await createRemote("gone");
  const { id, clone } = await begin(url);
  await writeFile(join(clone, "work.txt"), "done so far");
  await rm(mirrorOf(url), { recursive: true });
  await begin(url, id);
  expect(await readFile(join(clone, "work.txt"), "utf8")).toBe("done so far");
  expect(git(clone, "fsck", "--full")).not.toMatch(/missing|broken|error/u);
  // What it started from is no longer there to fetch: it begins with what is.
  await rm(mirrorOf(url), { recursive: true });
  git(url, "checkout", "--quiet", "--orphan", "other");
  await commit(url, "rewritten");
  git(url, "branch", "--force", "main");
  git(url, "checkout", "--quiet", "main");
  git(url, "reflog", "expire", "--expire=now", "--all");
  git(url, "gc", "--quiet", "--prune=now");
  await begin(url, id);
  expect(await readFile(join(clone, "file.txt"), "utf8")).toBe("rewritten\n");
});

test.each([
  ["sha1", "sha256"],
  ["sha256", "sha1"],
])(
  "a remote of %s that is made anew with %s gets another mirror as soon as no session borrows from the earlier one",
  async (before, now) => {
    const url = await createRemote("a", before);
    const old = await begin(url);
    await createRemote("a", now);
    await expect(begin(url)).rejects.toMatchObject({
      failure: { code: "repository_unreachable", passing: false, reason: expect.stringContaining("object format") },
    });
    expect(git(old.clone, "fsck", "--full")).not.toMatch(/missing|broken|error/u);
    await removeSession(services, old.id);
    const { clone } = await begin(url);
    expect(git(clone, "rev-parse", "HEAD")).toBe(git(url, "rev-parse", "HEAD"));
  },
);

test("a mirror is not removed while it is used, and who wants to use it waits for the removal", async () => {
  const use = createFolderLock();
  const done: string[] = [];
  const opened = Promise.withResolvers<void>();
  const using = use.whileUsed("m", async () => {
    await opened.promise;
    done.push("used");
  });
  const remove = (): Promise<void> => Promise.resolve(void done.push("removed"));
  expect(await use.whileUnused("m", remove)).toBe(false);
  opened.resolve();
  await using;
  const closed = Promise.withResolvers<void>();
  const removing = use.whileUnused("m", async () => {
    await closed.promise;
    done.push("removed");
  });
  const next = use.whileUsed("m", () => Promise.resolve(void done.push("used again")));
  expect(await use.whileUnused("m", remove)).toBe(false);
  closed.resolve();
  expect(await removing).toBe(true);
  await next;
  expect(done).toEqual(["used", "removed", "used again"]);
});

test("recordings go to which nothing was added for so many days", async () => {
  const folder = join(data, "recordings");
  await mkdir(folder);
  for (const name of ["old.jsonl", "young.jsonl"]) await writeFile(join(folder, name), "{}\n");
  const then = new Date(Date.now() - 31 * 24 * 60 * 60 * 1_000);
  await utimes(join(folder, "old.jsonl"), then, then);
  expect(await pruneRecordings(folder, 0, signal)).toBe(0);
  expect(await pruneRecordings(folder, 30, signal)).toBe(1);
  expect(await readdir(folder)).toEqual(["young.jsonl"]);
  expect(await pruneRecordings(join(data, "none"), 30, signal)).toBe(0);
});

test("locks that gits left which were killed along with their machine stop no session", async () => {
  const url = await createRemote("locked");
  const { id } = await begin(url);
  const mirror = mirrorOf(url);
  await rm(join(data, "sessions", id), { recursive: true });
  await commit(url, "second");
  const left = [
    "packed-refs.lock",
    `refs/offstage/${id}/clone/target.lock`,
    `refs/offstage/fetching/refs-offstage-${id}-clone-target.lock`,
  ];
  await mkdir(join(mirror, "refs/offstage/fetching"), { recursive: true });
  for (const name of left) await writeFile(join(mirror, name), "");
  const then = new Date(Date.now() - 60_000);
  await utimes(join(mirror, "packed-refs.lock"), then, then);
  const { clone } = await begin(url, id);
  expect(await readFile(join(clone, "file.txt"), "utf8")).toBe("second\n");
});
