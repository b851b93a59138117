import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { cloneSource } from "../../../src/worker/attempt/session-repositories.ts";
import { createCheckpointer } from "../../../src/worker/checkpoints/checkpointer.ts";
import { restoreCheckpoint } from "../../../src/worker/checkpoints/restore.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { makeClones } from "../../../src/worker/clones/clones.ts";
import { withOthersWork } from "../../../src/worker/steps/agent/conflict-prompt.ts";
import { exportWork } from "../../../src/worker/steps/commit/export-work.ts";
import { joinBranches } from "../../../src/worker/steps/joins/join-branches.ts";
import { resumeJoins } from "../../../src/worker/steps/joins/by-hand.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import { seedRepository } from "../../forge/seed-repository.ts";
import { takeCheckpoint } from "./step-actions.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

const isInstalled = spawnSync("git", ["lfs", "version"]).status === 0;
const attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
const megabyte = 1024 * 1024;
let world: StepWorld;
let one: StepServices;
let two: StepServices;

beforeEach(async () => {
  world = await createStepWorld();
  one = world.worker("one");
  two = world.worker("two");
});

afterEach(() => world.close());

const oidOf = (content: string | Buffer): string => createHash("sha256").update(content).digest("hex");
const pointerOf = (content: string | Buffer): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${Buffer.byteLength(content)}\n`;
const onServer = (content: string | Buffer): string => world.forge.lfs.pathOf("acme", "app", oidOf(content));

async function upload(content: string): Promise<void> {
  await mkdir(dirname(onServer(content)), { recursive: true });
  await writeFile(onServer(content), content);
}

/** The repository then has `old.bin` in LFS. */
async function useLfs(content = "the old content"): Promise<void> {
  await upload(content);
  await seedRepository(world.forge.pathOf("acme", "app"), {
    commands: `printf '${attributes}' > .gitattributes; printf '%s' '${pointerOf(content)}' > old.bin`,
  });
}

const folderOf = (clones: readonly Clone[]): string => clones[0]?.folder ?? "";
const read = (clones: readonly Clone[], path: string): Promise<string> =>
  readFile(join(folderOf(clones), path), "utf8");
const gitIn = (clones: readonly Clone[], ...parameters: string[]): string =>
  execFileSync(
    "git",
    ["-C", folderOf(clones), "-c", "user.name=Agent", "-c", "user.email=a@example.com", ...parameters],
    // As in an image without git-lfs.
    { encoding: "utf8", env: { ...process.env, GIT_CONFIG_NOSYSTEM: "1" } },
  ).trim();

async function write(clones: readonly Clone[], files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folderOf(clones), path)), { recursive: true });
    await writeFile(join(folderOf(clones), path), content);
  }
}

async function commit(clones: readonly Clone[], files: Record<string, string | Buffer>): Promise<void> {
  await write(clones, files);
  gitIn(clones, "add", "--all");
  gitIn(clones, "commit", "--quiet", "--message", Object.keys(files).join(", "));
}

async function begin(): Promise<{ attempt: Attempt; clones: readonly Clone[] }> {
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, one);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  return { attempt, clones };
}

async function take(attempt: Attempt, clones: readonly Clone[], services = one): Promise<boolean> {
  return takeCheckpoint(attempt, services, clones);
}

/** Another worker continues from the last checkpoint. */
async function takeOver(attempt: Attempt) {
  const next = await world.again(attempt, "two");
  const { clones, checkpoint } = await prepareWorkspace(next, two);
  if (checkpoint === null) throw new Error("no checkpoint was fetched");
  const from = await restoreCheckpoint(next, two, clones, checkpoint);
  return { attempt: next, clones, from };
}

async function publish(attempt: Attempt, services: StepServices, clones: readonly Clone[]): Promise<void> {
  const works = await exportWork(attempt, services, clones);
  const { collided } = await push(
    attempt,
    services,
    works.filter(({ isChanged }) => isChanged),
  );
  expect(collided).toEqual([]);
}

/** A follow-up whose change of `old.bin` collides with another's. */
async function collide() {
  await useLfs();
  const { attempt, clones } = await begin();
  await commit(clones, { "old.bin": "first" });
  await publish(attempt, one, clones);
  await upload("theirs");
  await world.forge.commit("acme", "app", attempt.session.branchName, { "old.bin": pointerOf("theirs") });
  const next = await world.again(attempt, "one");
  const { clones: before } = await prepareWorkspace(next, one);
  await commit(before, { "old.bin": "second" });
  const { clones: joined, conflicts } = await joinBranches(next, one, before);
  return { attempt, next, joined, conflicts };
}

const onBranch = (attempt: Attempt, path: string): string => world.git("show", `${attempt.session.branchName}:${path}`);
const noticesOf = async (attempt: Attempt): Promise<string[]> =>
  (await world.events(attempt)).filter((line) => line.startsWith("notice") && line.includes("LFS"));
/** How many pieces with contents in LFS the checkpoint has. */
async function keptPieces(): Promise<number> {
  const { rows } = await world.database.pool.query<{ count: number }>(
    "select coalesce(jsonb_array_length(content #> '{repositories,0,lfs}'), 0)::integer as count from checkpoint",
  );
  return rows[0]?.count ?? -1;
}

describe.runIf(isInstalled)("a checkpoint", () => {
  test("holds new contents of files in LFS, which another worker restores and pushes", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    const made = Buffer.alloc(2 * megabyte, "made ");
    await commit(clones, { "made.bin": made, "deep/the same.bin": made });
    expect(await take(attempt, clones)).toBe(true);
    const odd = 'a "quoted"\nname $(x) %f.bin';
    await write(clones, { [odd]: "not committed", "empty.bin": "", "text.txt": "text" });
    expect(await take(attempt, clones)).toBe(true);

    const moved = await takeOver(attempt);
    expect(moved.from).toBe("checkpoint");
    expect((await readFile(join(folderOf(moved.clones), "made.bin"))).equals(made)).toBe(true);
    expect((await readFile(join(folderOf(moved.clones), "deep/the same.bin"))).equals(made)).toBe(true);
    expect(await read(moved.clones, odd)).toBe("not committed");
    expect(await read(moved.clones, "empty.bin")).toBe("");
    expect(await read(moved.clones, "old.bin")).toBe("the old content");
    await publish(moved.attempt, two, moved.clones);
    expect(onBranch(attempt, "deep/the same.bin")).toBe(pointerOf(made).trim());
    expect(onBranch(attempt, odd)).toBe(pointerOf("not committed").trim());
    expect(onBranch(attempt, "empty.bin")).toBe("");
    for (const content of [made, "not committed"])
      expect((await readFile(onServer(content))).equals(Buffer.from(content))).toBe(true);
    expect(await noticesOf(attempt)).toEqual([]);
  });

  test("is not whole without contents that are too large for it, which the session says at once", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    const small = { ...one, checkpointBytes: megabyte };
    await write(clones, { "large.bin": Buffer.alloc(3 * megabyte, "large"), "small.bin": "small" });
    const checkpointer = createCheckpointer(attempt, small);
    checkpointer.start(clones);
    expect(await checkpointer.take()).toBe(false);
    expect(await noticesOf(attempt)).toEqual([
      expect.stringMatching(/too large to be stored outside this worker \(3 MB; .* allows 1\): large\.bin/u) as string,
    ]);
    await write(clones, { "more.txt": "more" });
    expect(await checkpointer.take()).toBe(false);
    await checkpointer.stop();
    expect(await noticesOf(attempt)).toHaveLength(1);

    const moved = await takeOver(attempt);
    expect(moved.from).toBe("checkpoint without contents");
    expect(await read(moved.clones, "small.bin")).toBe("small");
    expect(await read(moved.clones, "large.bin")).toMatch(/^version https/u);
    expect(await read(moved.clones, "more.txt")).toBe("more");
    expect((await noticesOf(attempt)).at(-1)).toContain("Not all files in LFS of acme/app could be restored");
  });

  test("is whole if a large file is a pointer without content, which the push judges", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${"a".repeat(64)}\nsize 999999999999\n`;
    await write(clones, { "pointer.bin": pointer });
    expect(await take(attempt, clones, { ...one, checkpointBytes: megabyte })).toBe(true);
    expect(await noticesOf(attempt)).toEqual([]);
  });

  test("holds no content that is another than its pointer names, and none but files that the store has", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    const contents = { "swapped.bin": "right", "link.bin": "linked", "pipe.bin": "piped", "good.bin": "good" };
    // Pointers stay as they are, and the agent puts next to them what it likes.
    for (const [path, content] of Object.entries(contents)) await write(clones, { [path]: pointerOf(content) });
    const stored = (content: string): string => {
      const oid = oidOf(content);
      return join(".git/lfs/objects", oid.slice(0, 2), oid.slice(2, 4), oid);
    };
    for (const content of Object.values(contents)) await write(clones, { [stored(content)]: content });
    await write(clones, { [stored("right")]: "wrong", "../outside": "linked" });
    const [link, pipe] = [stored("linked"), stored("piped")];
    execFileSync("sh", ["-c", `ln -sf ../../../../../../outside ${link}; rm ${pipe}; mkfifo ${pipe}`], {
      cwd: folderOf(clones),
    });
    // The control: it leads there.
    expect(await read(clones, link)).toBe("linked");
    await take(attempt, clones);
    await expect(exportWork(attempt, one, clones)).rejects.toMatchObject({
      code: "push_rejected",
      message: expect.stringMatching(/neither in the clone nor on the server: .*swapped\.bin/u) as string,
    });
    const store = join(clones[0]?.mirror.path ?? "", "lfs/objects");
    const inStore = (content: string): boolean => {
      const oid = oidOf(content);
      return existsSync(join(store, oid.slice(0, 2), oid.slice(2, 4), oid));
    };
    // The control: what is right is there.
    expect(["right", "linked", "piped", "good"].map(inStore)).toEqual([false, false, false, true]);
    const moved = await takeOver(attempt);
    expect(moved.from).toBe("checkpoint without contents");
    expect(await read(moved.clones, "good.bin")).toBe("good");
    for (const path of ["swapped.bin", "link.bin", "pipe.bin"])
      expect(await read(moved.clones, path)).toMatch(/^version https/u);
  });

  test("holds no contents that the server has by then, which another worker fetches from there", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    await commit(clones, { "first.bin": "first" });
    await take(attempt, clones);
    expect(await keptPieces()).toBe(1);
    await publish(attempt, one, clones);
    const followUp = await world.again(attempt, "one");
    const continued = (await prepareWorkspace(followUp, one)).clones;
    await commit(continued, { "second.txt": "second" });
    await take(followUp, continued);
    expect(await keptPieces()).toBe(0);
    const moved = await takeOver(followUp);
    expect(moved.from).toBe("checkpoint");
    expect(await read(moved.clones, "first.bin")).toBe("first");
    expect(await noticesOf(attempt)).toEqual([]);
  });

  test("adds only what is new, and drops what the work no longer has", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    const checkpointer = createCheckpointer(attempt, one);
    checkpointer.start(clones);
    const bytes = async (): Promise<number> => {
      const { rows } = await world.database.pool.query<{ bytes: string }>("select bytes from checkpoint");
      return Number(rows[0]?.bytes);
    };
    await write(clones, { "a.bin": Buffer.alloc(megabyte, "a") });
    await checkpointer.take();
    await write(clones, { "b.bin": Buffer.alloc(megabyte, "b") });
    await checkpointer.take();
    expect(await keptPieces()).toBe(2);
    expect(await bytes()).toBeLessThan(2.1 * megabyte);
    execFileSync("rm", [join(folderOf(clones), "a.bin")]);
    await checkpointer.take();
    expect(await keptPieces()).toBe(1);
    expect(await bytes()).toBeLessThan(1.1 * megabyte);
    await checkpointer.stop();
    const moved = await takeOver(attempt);
    expect(moved.from).toBe("checkpoint");
    expect((await stat(join(folderOf(moved.clones), "b.bin"))).size).toBe(megabyte);
  });

  test("stays if the server of LFS is away when another worker restores it", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    await write(clones, { "new.bin": "new" });
    await take(attempt, clones);
    const next = await world.again(attempt, "two");
    const { clones: theirs, checkpoint } = await prepareWorkspace(next, two);
    if (checkpoint === null) throw new Error("no checkpoint was fetched");
    await world.forge.failNext({ kind: "hang", at: "lfs" });
    const brief = (clone: Clone): Clone => ({
      ...clone,
      mirror: { ...clone.mirror, fetchLimits: { bytes: 2 ** 30, memoryBytes: 2 ** 32, ms: 2_000 } },
    });
    const pending = checkpoint.pending.map((work) => ({ ...work, clone: brief(work.clone) }));
    await expect(restoreCheckpoint(next, two, theirs, { ...checkpoint, pending })).rejects.toMatchObject({
      code: "repository_unreachable",
      passing: true,
    });
    expect((await takeOver(next)).from).toBe("checkpoint");
  });
});

test.runIf(isInstalled)("the download of files in LFS reports its progress like a fetch", async () => {
  await useLfs();
  const attempt = await world.begin();
  const progress: { text: string; fraction?: number }[] = [];
  const { session, signal } = attempt;
  const sources = session.repositories.map((repository) => cloneSource(attempt, one, repository));
  const request = { sessionId: session.sessionId, sources, signal };
  await makeClones(one, { ...request, progress: (step) => void progress.push(step) }, null);
  // git-lfs writes its progress from beside the download, and may exit before it has written the last line.
  expect(progress).toContainEqual({
    text: expect.stringMatching(/^Downloading LFS objects: +(?:0% \(0|100% \(1)\/1\), \d+ B/u) as string,
    fraction: expect.toSatisfy((fraction: number) => fraction === 0 || fraction === 1) as number,
  });
});

describe.runIf(isInstalled)("a follow-up on another worker", () => {
  test("goes back to a content of the base, by a revert and by checking it out", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    await commit(clones, { "old.bin": "changed" });
    await publish(attempt, one, clones);
    const next = await world.again(attempt, "two");
    const { clones: theirs } = await prepareWorkspace(next, two);
    expect(await read(theirs, "old.bin")).toBe("changed");
    gitIn(theirs, "revert", "--no-edit", "HEAD");
    expect(await read(theirs, "old.bin")).toBe("the old content");
    gitIn(theirs, "checkout", "--quiet", "HEAD~", "--", "old.bin");
    expect(await read(theirs, "old.bin")).toBe("changed");
    gitIn(theirs, "checkout", "--quiet", "HEAD", "--", "old.bin");
    await publish(next, two, theirs);
    expect(onBranch(attempt, "old.bin")).toBe(pointerOf("the old content").trim());
  });
});

describe.runIf(isInstalled)("others' files in LFS", () => {
  test("are contents in the clone when a follow-up begins", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    await commit(clones, { "mine.bin": "mine" });
    await publish(attempt, one, clones);
    await upload("theirs");
    await world.forge.commit("acme", "app", attempt.session.branchName, { "theirs.bin": pointerOf("theirs") });
    await upload("targets");
    await world.forge.commit("acme", "app", "main", { "target.bin": pointerOf("targets") });
    const next = await world.again(attempt, "one");
    const { clones: before } = await prepareWorkspace(next, one);
    const joined = await joinBranches(next, one, before, { withTarget: true });
    expect(joined.conflicts).toEqual([]);
    expect(await read(joined.clones, "theirs.bin")).toBe("theirs");
    expect(await read(joined.clones, "target.bin")).toBe("targets");
    expect(await read(joined.clones, "mine.bin")).toBe("mine");
    expect(gitIn(joined.clones, "status", "--porcelain")).toBe("");
    expect(await noticesOf(attempt)).toEqual([]);
  });

  test("are contents also if the agent's image sets another filter for all users", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    await commit(clones, { "mine.txt": "mine" });
    await publish(attempt, one, clones);
    await upload("theirs");
    await world.forge.commit("acme", "app", attempt.session.branchName, { "theirs.bin": pointerOf("theirs") });
    const { home } = one.folders.pathsOf(attempt.session.sessionId);
    await mkdir(home, { recursive: true });
    // What `git lfs install` writes, of a git-lfs that can't reach the server.
    await writeFile(join(home, ".gitconfig"), '[filter "lfs"]\n\tprocess = false\n\trequired = true\n');
    const next = await world.again(attempt, "one");
    const { clones: before } = await prepareWorkspace(next, one);
    const joined = await joinBranches(next, one, before);
    expect(await read(joined.clones, "theirs.bin")).toBe("theirs");
  });

  test("that the server lacks are said to be pointers, to people and to the agent", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    await commit(clones, { "mine.bin": "mine" });
    await publish(attempt, one, clones);
    await world.forge.commit("acme", "app", attempt.session.branchName, { "theirs.bin": pointerOf("nowhere") });
    const next = await world.again(attempt, "one");
    const { clones: before } = await prepareWorkspace(next, one);
    const joined = await joinBranches(next, one, before);
    expect(await read(joined.clones, "theirs.bin")).toBe(pointerOf("nowhere"));
    expect((await noticesOf(attempt)).at(-1)).toContain(`others committed to ${attempt.session.branchName} of app`);
    expect(withOthersWork("The task", joined)).toContain("Some of their files in LFS could not be fetched");
  });

  test("that collide are there on both sides for the agent", async () => {
    const { attempt, next, joined, conflicts } = await collide();
    expect(conflicts.map(({ paths }) => paths)).toEqual([["old.bin"]]);
    gitIn(joined, "checkout", "--theirs", "old.bin");
    expect(await read(joined, "old.bin")).toBe("theirs");
    gitIn(joined, "checkout", "--ours", "old.bin");
    expect(await read(joined, "old.bin")).toBe("second");
    gitIn(joined, "add", "old.bin");
    gitIn(joined, "commit", "--quiet", "--no-edit");
    await publish(next, one, joined);
    expect(onBranch(attempt, "old.bin")).toBe(pointerOf("second").trim());
  });

  test("that collide are not resolved by taking the filter out of the clone", async () => {
    const { next, joined } = await collide();
    // Also one that is set for all users of the image.
    gitIn(joined, "config", "filter.lfs.process", "");
    gitIn(joined, "config", "filter.lfs.clean", "cat");
    const { conflicts } = await resumeJoins(next, one, joined, false);
    expect(conflicts.map(({ paths }) => paths)).toEqual([["old.bin"]]);
    // The control: a content of the agent's own is a resolution.
    await write(joined, { "old.bin": "both" });
    expect((await resumeJoins(next, one, joined, false)).conflicts).toEqual([]);
  });

  test("that collide with work that is put on top of a rewritten branch are there on both sides, also on another worker", async () => {
    await useLfs();
    const { attempt, clones } = await begin();
    await commit(clones, { "old.bin": "first" });
    await publish(attempt, one, clones);
    await upload("theirs");
    const reviewer = join(folderOf(clones), "../../elsewhere");
    const { branchName: branch } = attempt.session;
    // Without LFS there: pointers are files like others.
    const rewrite = `git clone -q -b ${branch} '${world.forge.pathOf("acme", "app")}' '${reviewer}'; cd '${reviewer}'
      printf '%s' '${pointerOf("theirs")}' > old.bin; git -c filter.lfs.process= -c filter.lfs.clean=cat add old.bin
      git -c user.name=R -c user.email=r@example.com commit -q --amend -m reworded; git push -q --force`;
    execFileSync("sh", ["-ec", rewrite], {
      env: { ...process.env, GIT_LFS_SKIP_SMUDGE: "1", GIT_CONFIG_NOSYSTEM: "1" },
    });
    const next = await world.again(attempt, "one");
    const { clones: before } = await prepareWorkspace(next, one);
    await commit(before, { "old.bin": "second" });
    const { clones: joined, conflicts } = await joinBranches(next, one, before);
    expect(conflicts.map(({ paths }) => paths)).toEqual([["old.bin"]]);
    expect(await take(next, joined)).toBe(true);
    const moved = await takeOver(next);
    gitIn(moved.clones, "checkout", "--theirs", "old.bin");
    expect(await read(moved.clones, "old.bin")).toBe("second");
    gitIn(moved.clones, "checkout", "--ours", "old.bin");
    expect(await read(moved.clones, "old.bin")).toBe("theirs");
  });
});

describe.runIf(isInstalled)("LFS that the agent introduces", () => {
  test("gets pointers in git and contents on the server", async () => {
    const { attempt, clones } = await begin();
    const large = Buffer.alloc(2 * megabyte, "large");
    await commit(clones, { ".gitattributes": attributes, "committed.bin": large });
    await write(clones, { "left.bin": "left" });
    await publish(attempt, one, clones);
    expect(onBranch(attempt, "committed.bin")).toBe(pointerOf(large).trim());
    expect(onBranch(attempt, "left.bin")).toBe(pointerOf("left").trim());
    expect((await readFile(onServer(large))).equals(large)).toBe(true);
    expect(await readFile(onServer("left"), "utf8")).toBe("left");
  });

  test("is uploaded too if the agent takes it back in a later commit", async () => {
    const { attempt, clones } = await begin();
    await commit(clones, { ".gitattributes": attributes, "between.bin": "between" });
    execFileSync("rm", [join(folderOf(clones), ".gitattributes"), join(folderOf(clones), "between.bin")]);
    await commit(clones, { "after.txt": "after" });
    await publish(attempt, one, clones);
    expect(await readFile(onServer("between"), "utf8")).toBe("between");
  });

  test("without git-lfs on the worker stops the push, with the reason", async () => {
    const { attempt, clones } = await begin();
    await commit(clones, { ".gitattributes": attributes, "new.bin": Buffer.alloc(2 * megabyte, "new") });
    const bin = join(folderOf(clones), "../bin");
    await mkdir(bin);
    const real = execFileSync("sh", ["-c", "command -v git"]).toString().trim();
    const without = `#!/bin/sh\nfor word; do [ "$word" != lfs ] || exit 1; done\nexec ${real} "$@"\n`;
    await writeFile(join(bin, "git"), without, { mode: 0o755 });
    const path = process.env["PATH"];
    process.env["PATH"] = `${bin}:${path}`;
    try {
      await expect(publish(attempt, one, clones)).rejects.toMatchObject({
        message: expect.stringContaining("git-lfs is not installed on the worker") as string,
        passing: false,
      });
    } finally {
      process.env["PATH"] = path;
    }
    expect(world.git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
  });
});

describe.runIf(isInstalled)("an agent that began another repository in its folder", () => {
  test.each([
    ["with a new one", "rm -rf .git && git init --quiet"],
    ["with none", "rm -rf .git"],
    ["with one elsewhere", "rm -rf .git && git init --quiet --separate-git-dir=../kept.git"],
    ["with one around it", "rm -rf .git && git init --quiet .."],
  ])("%s leaves pointers in git all the same, and its new contents are uploaded", async (_, commands) => {
    await useLfs();
    const { attempt, clones } = await begin();
    execFileSync("sh", ["-ec", commands], { cwd: folderOf(clones) });
    await write(clones, { "new.bin": "new content" });
    expect(await take(attempt, clones)).toBe(true);
    expect(await keptPieces()).toBe(1);
    await publish(attempt, one, clones);
    expect(onBranch(attempt, "new.bin")).toBe(pointerOf("new content").trim());
    expect(onBranch(attempt, "old.bin")).toBe(pointerOf("the old content").trim());
    expect(await readFile(onServer("new content"), "utf8")).toBe("new content");
  });
});

describe.runIf(isInstalled)("a large file that belongs in LFS and is in git itself is not pushed", () => {
  const around = async (clones: readonly Clone[], files: Record<string, string | Buffer>): Promise<void> => {
    gitIn(clones, "config", "filter.lfs.process", "");
    gitIn(clones, "config", "filter.lfs.required", "false");
    await commit(clones, files);
  };
  test.each([
    ["under a name with a line break", { "a\nname.bin": Buffer.alloc(2 * megabyte, "x") }],
    [
      "beside the same content that belongs in git",
      { "a.txt": Buffer.alloc(2 * megabyte, "x"), "b.bin": Buffer.alloc(2 * megabyte, "x") },
    ],
  ])("%s", async (_, files) => {
    await useLfs();
    const { attempt, clones } = await begin();
    await around(clones, files);
    await expect(exportWork(attempt, one, clones)).rejects.toMatchObject({
      code: "push_rejected",
      message: expect.stringContaining("belong in LFS, and the commits have them in git itself") as string,
    });
  });
});
