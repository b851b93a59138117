import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { restoreCheckpoint } from "../../../src/worker/checkpoints/restore.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { exportWork, salvage } from "../../../src/worker/steps/commit/export-work.ts";
import { joinBranches } from "../../../src/worker/steps/joins/join-branches.ts";
import { resumeJoins } from "../../../src/worker/steps/joins/by-hand.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import { folderOf, gitIn, publish, takeCheckpoint } from "./step-actions.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

/** Turns that end in the middle of a merge: it stays under way, on this worker and on the next. */
let world: StepWorld;
let one: StepServices;
let two: StepServices;

beforeEach(async () => {
  world = await createStepWorld();
  one = world.worker("one");
  two = world.worker("two");
});

afterEach(() => world.close());

const write = (clones: readonly Clone[], name: string, content: string): Promise<void> =>
  writeFile(join(folderOf(clones), name), content);

async function commit(clones: readonly Clone[], message: string): Promise<void> {
  gitIn(clones, "add", "--all");
  gitIn(clones, "commit", "--quiet", "--message", message);
}

/** How the two sides collide, and what the unresolved file is when git has tried. */
const collisions = {
  "a file that is no text": { mine: "mine\0", theirs: "theirs\0", status: "AA work.bin" },
  "a file that others deleted": { mine: "mine\n", theirs: null, status: "UD first.txt" },
  "a file that the session deleted": { mine: null, theirs: "theirs\n", status: "DU first.txt" },
  "a text of which no marker was removed": { mine: "mine\n", theirs: "theirs\n", status: "UU first.txt" },
} as const;
type Collided = (typeof collisions)[keyof typeof collisions];

/**
 * A session that pushed `first.txt`, and is in the middle of a merge with others' pushes since; `new.txt` is theirs.
 */
async function begin({ mine, theirs, status }: Collided, isRewritten = false) {
  const first = await world.begin();
  const { clones } = await prepareWorkspace(first, one);
  await write(clones, "first.txt", "first\n");
  await commit(clones, "first");
  await publish(first, one, clones);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  const branch = first.session.branchName;
  const path = status.slice(3);
  const reviewer = join(folderOf(clones), "../../elsewhere");
  const at = ["-C", reviewer, "-c", "user.name=R", "-c", "user.email=r@example.com"];
  const elsewhere = (...parameters: string[]) =>
    execFileSync("git", [...at, ...parameters], { encoding: "utf8" }).trim();
  execFileSync("git", ["clone", "-q", world.forge.pathOf("acme", "app"), reviewer]);
  elsewhere("checkout", "-q", branch);
  if (isRewritten) elsewhere("commit", "-q", "--amend", "-m", "reworded");
  if (theirs === null) await rm(join(reviewer, path));
  else await writeFile(join(reviewer, path), theirs);
  await writeFile(join(reviewer, "new.txt"), "new\n");
  elsewhere("add", "--all");
  elsewhere("commit", "-q", "-m", "theirs");
  elsewhere("push", "-q", "--force", "origin", `HEAD:refs/heads/${branch}`);

  const attempt = await world.again(first, "one");
  const kept = await prepareWorkspace(attempt, one);
  if (mine === null) await rm(join(folderOf(kept.clones), path));
  else await write(kept.clones, path, mine);
  await commit(kept.clones, "mine");
  const joined = await joinBranches(attempt, one, kept.clones);
  expect(joined.conflicts).toMatchObject([{ paths: [path] }]);
  return { attempt, clones: joined.clones, path, branch, theirs: elsewhere("rev-parse", "HEAD") };
}

async function keep(attempt: Attempt, clones: readonly Clone[]): Promise<void> {
  expect(await takeCheckpoint(attempt, one, clones)).toBe(true);
}

/** The next attempt on the worker that has the folders, or on another. */
async function takeOver(attempt: Attempt, worker: "one" | "two") {
  const next = await world.again(attempt, worker);
  const services = worker === "one" ? one : two;
  const { clones, checkpoint } = await prepareWorkspace(next, services);
  if (checkpoint !== null && (await restoreCheckpoint(next, services, clones, checkpoint)) !== "checkpoint")
    throw new Error("the checkpoint was not restored");
  return { next, services, clones };
}

const sides = (clones: readonly Clone[]): string => gitIn(clones, "ls-files", "--stage");

describe.each(["one", "two"] as const)("on worker %s, after another ended in the middle", (worker) => {
  test.each(Object.entries(collisions))("a merge with %s goes on, and is in the prompt again", async (_, collision) => {
    const { attempt, clones, path, branch, theirs } = await begin(collision);
    const before = sides(clones);
    await keep(attempt, clones);
    await salvage(attempt, one, attempt.signal);
    expect(sides(clones)).toBe(before);
    const over = await takeOver(attempt, worker);
    expect(sides(over.clones)).toBe(before);
    expect(gitIn(over.clones, "status", "--short", path)).toBe(collision.status);
    expect(gitIn(over.clones, "rev-parse", "MERGE_HEAD")).toBe(theirs);
    const resumed = await resumeJoins(over.next, over.services, over.clones, true);
    expect(resumed.conflicts).toMatchObject([{ directory: "app", branch, theirs, paths: [path], isTarget: false }]);
    // Nothing of it is pushed, also if the agent says that it is done.
    const [left] = await exportWork(over.next, over.services, resumed.clones);
    expect(left?.unfinished).toEqual([path]);
    expect(world.git("rev-parse", branch)).toBe(theirs);

    await write(over.clones, path, "both\n");
    gitIn(over.clones, "add", path);
    gitIn(over.clones, "commit", "--quiet", "--no-edit");
    const ended = await resumeJoins(over.next, over.services, resumed.clones, true);
    expect(ended.conflicts).toEqual([]);
    expect(ended.clones[0]?.joining ?? null).toBeNull();
    const { pushed } = await publish(over.next, over.services, ended.clones);
    expect(pushed).toHaveLength(1);
    expect(world.git("rev-parse", `${branch}^2`)).toBe(theirs);
    expect([world.git("show", `${branch}:${path}`), world.git("show", `${branch}:new.txt`)]).toEqual(["both", "new"]);
  });

  test("work that is put on top of a rewritten branch goes on, and is in the prompt again", async () => {
    const { attempt, clones, path, branch, theirs } = await begin(collisions["a file that is no text"], true);
    const before = sides(clones);
    await keep(attempt, clones);
    await salvage(attempt, one, attempt.signal);
    const over = await takeOver(attempt, worker);
    expect(sides(over.clones)).toBe(before);
    const resumed = await resumeJoins(over.next, over.services, over.clones, true);
    expect(resumed.conflicts).toMatchObject([{ theirs, paths: [path], onto: expect.any(String) as string }]);
    expect((await exportWork(over.next, over.services, resumed.clones))[0]?.unfinished).toEqual([path]);
    await write(over.clones, path, "both\n");
    gitIn(over.clones, "add", path);
    gitIn(over.clones, "cherry-pick", "--no-edit", "--continue");
    const ended = await resumeJoins(over.next, over.services, resumed.clones, true);
    expect(ended.conflicts).toEqual([]);
    expect((await publish(over.next, over.services, ended.clones)).pushed).toHaveLength(1);
    expect(world.git("rev-parse", `${branch}^`)).toBe(theirs);
    expect(world.git("show", `${branch}:${path}`)).toBe("both");
  });
});

test("an agent that throws the work away with the rest of a rewritten branch gets it again", async () => {
  const { attempt, clones, path, theirs } = await begin(collisions["a file that is no text"], true);
  gitIn(clones, "cherry-pick", "--abort");
  expect(gitIn(clones, "rev-parse", "HEAD")).toBe(theirs);
  const resumed = await resumeJoins(attempt, one, clones, false);
  expect(resumed.conflicts).toMatchObject([{ theirs, paths: [path] }]);
  expect(gitIn(clones, "status", "--short", path)).toBe("AA work.bin");
});

test("what the agent has resolved, and not committed, is committed when its turn has ended", async () => {
  const { attempt, clones, path, branch, theirs } = await begin(collisions["a file that others deleted"]);
  gitIn(clones, "rm", "--quiet", path);
  expect((await resumeJoins(attempt, one, clones, true)).conflicts).toHaveLength(1);
  const ended = await resumeJoins(attempt, one, clones, false);
  expect(ended.conflicts).toEqual([]);
  expect((await publish(attempt, one, ended.clones)).pushed).toHaveLength(1);
  expect(world.git("rev-parse", `${branch}^2`)).toBe(theirs);
  expect(world.git("ls-tree", "--name-only", branch)).toBe("README.md\nnew.txt");
});

test("a merge of the agent's own is not ended by saving the diff either", async () => {
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, one);
  await write(clones, "own.bin", "one\0");
  await commit(clones, "one");
  gitIn(clones, "checkout", "--quiet", "-b", "other", "HEAD^");
  await write(clones, "own.bin", "two\0");
  await commit(clones, "two");
  gitIn(clones, "checkout", "--quiet", attempt.session.branchName);
  const head = gitIn(clones, "rev-parse", "HEAD");
  expect(() => gitIn(clones, "merge", "--quiet", "other")).toThrow("Command failed");
  await salvage(attempt, one, attempt.signal);
  expect(existsSync(join(folderOf(clones), ".git/MERGE_HEAD"))).toBe(true);
  const { rows } = await world.database.pool.query("select head_sha from session_repository");
  expect(rows).toEqual([{ head_sha: head }]);
  expect(await readFile(join(folderOf(clones), "own.bin"), "utf8")).toBe("one\0");
  expect((await exportWork(attempt, one, clones))[0]?.unfinished).toEqual(["own.bin"]);
});

/** A session whose clone has the folder `docs` alone, in the middle of a merge with changes of others in `lib` and `other` too. */
async function beginInFolders(mine: string | null, theirs: string | null, isRewritten = false) {
  await world.database.pool.query("update repository set sparse = '{docs}'");
  const names = ["docs/a.md", "lib/deep.c", "lib/stays.c", "lib/theirs.c", "other/gone.c", "other/stays.c"];
  await world.forge.commit("acme", "app", "main", Object.fromEntries(names.map((name) => [name, `${name}\n`])));
  const first = await world.begin();
  const { clones } = await prepareWorkspace(first, one);
  await write(clones, "docs/mine.md", "mine\n");
  await commit(clones, "first");
  await publish(first, one, clones);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  const branch = first.session.branchName;
  const reviewer = join(folderOf(clones), "../../elsewhere");
  execFileSync("git", ["clone", "-q", "-b", branch, world.forge.pathOf("acme", "app"), reviewer]);
  const change = (content: string | null): string =>
    content === null ? "rm lib/deep.c" : `printf '${content.replace("\0", String.raw`\0`)}' > lib/deep.c`;
  const reword = isRewritten ? "git -c user.name=R -c user.email=r@example.com commit -q --amend -m reworded; " : "";
  const others = `${reword}${change(theirs)}; echo theirs > docs/a.md; echo theirs > lib/theirs.c; echo new > lib/new.c; rm other/gone.c
    git add --all; git -c user.name=R -c user.email=r@example.com commit -qm theirs; git push -q --force`;
  execFileSync("sh", ["-ec", others], { cwd: reviewer });

  const attempt = await world.again(first, "one");
  const kept = await prepareWorkspace(attempt, one);
  const own = mine === null ? "git rm -q --cached --sparse lib/deep.c" : `mkdir lib; ${change(mine)}`;
  execFileSync("sh", ["-ec", `${own}; echo mine > docs/a.md`], { cwd: folderOf(kept.clones) });
  gitIn(kept.clones, "add", "--all", "--sparse");
  gitIn(kept.clones, "commit", "--quiet", "--message", "mine");
  const joined = await joinBranches(attempt, one, kept.clones);
  expect(joined.conflicts).toMatchObject([{ paths: ["docs/a.md", "lib/deep.c"] }]);
  return { attempt, clones: joined.clones, branch };
}

const changesSince = (before: string, branch: string): string[] =>
  world.git("diff", "--no-renames", "--name-status", before, branch).replaceAll("\t", " ").split("\n");
const filesThere = (clones: readonly Clone[]): string =>
  execFileSync("sh", ["-c", "find docs lib other -type f | sort"], {
    cwd: folderOf(clones),
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();

describe("a clone of some folders, in the middle of a merge that collides elsewhere too", () => {
  test.each([
    ["in a text", "mine\n", "theirs\n"],
    ["in a file that is no text", "mine\0", "theirs\0"],
    ["in a file that others deleted", "mine\n", null],
    ["in a file that the session deleted", null, "theirs\n"],
  ])("%s: another worker goes on with it, and nothing that is not there counts as deleted", async (_, mine, theirs) => {
    const { attempt, clones, branch } = await beginInFolders(mine, theirs);
    const before = sides(clones);
    const status = gitIn(clones, "status", "--short");
    await keep(attempt, clones);
    const over = await takeOver(attempt, "two");
    expect(sides(over.clones)).toBe(before);
    expect(gitIn(over.clones, "status", "--short")).toBe(status);
    // Files that only others changed stay as they are.
    expect(filesThere(over.clones)).toBe("docs/a.md\ndocs/mine.md\nlib/deep.c");
    const resumed = await resumeJoins(over.next, over.services, over.clones, true);
    expect(resumed.conflicts).toMatchObject([{ paths: ["docs/a.md", "lib/deep.c"] }]);
    const pushed = world.git("rev-parse", branch);

    for (const path of ["docs/a.md", "lib/deep.c"]) await write(over.clones, path, "both\n");
    const ended = await resumeJoins(over.next, over.services, resumed.clones, false);
    const { works } = await publish(over.next, over.services, ended.clones);
    expect(works[0]?.unfinished).toBeNull();
    expect(changesSince(pushed, branch)).toEqual(["M docs/a.md", `${theirs === null ? "A" : "M"} lib/deep.c`]);
    expect(changesSince(`${branch}^1`, branch)).toEqual([
      "M docs/a.md",
      `${mine === null ? "A" : "M"} lib/deep.c`,
      "A lib/new.c",
      "M lib/theirs.c",
      "D other/gone.c",
    ]);
  });

  test.each(["one", "two"] as const)("that loses its index is merged again, on worker %s", async (worker) => {
    const { attempt, clones, branch } = await beginInFolders("mine\n", "theirs\n");
    for (const path of ["docs/a.md", "lib/deep.c"]) await write(clones, path, "both\n");
    await rm(join(folderOf(clones), ".git/index"));
    await keep(attempt, clones);
    const over = await takeOver(attempt, worker);
    const pushed = world.git("rev-parse", branch);
    const resumed = await resumeJoins(over.next, over.services, over.clones, false);
    const [work] = await exportWork(over.next, over.services, resumed.clones);
    const changed = execFileSync(
      "git",
      ["diff", "--name-status", work?.recorded.pushedSha ?? "", work?.headSha ?? ""],
      {
        cwd: over.clones[0]?.mirror.path,
        encoding: "utf8",
      },
    );
    expect(changed).toBe("M\tdocs/a.md\nM\tlib/deep.c\n");
    const { collided } = await push(over.next, over.services, work === undefined ? [] : [work]);
    expect(collided).toHaveLength(1);
    expect(world.git("rev-parse", branch)).toBe(pushed);
  });
});

test("what a session changed outside of its folders is put on top of a rewritten branch again if the clone loses its index", async () => {
  const { attempt, clones } = await beginInFolders("mine\n", "theirs\n", true);
  expect(existsSync(join(folderOf(clones), ".git/CHERRY_PICK_HEAD"))).toBe(true);
  await write(clones, "docs/a.md", "both\n");
  await rm(join(folderOf(clones), ".git/index"));
  // The agent's turn has ended. Committed now, what is in its folders would be taken for all of the work.
  expect((await exportWork(attempt, one, clones))[0]?.unfinished).toEqual([]);
  const resumed = await resumeJoins(attempt, one, clones, false);
  expect(resumed.conflicts).toMatchObject([{ paths: ["docs/a.md", "lib/deep.c"] }]);
  for (const path of ["docs/a.md", "lib/deep.c"]) await write(resumed.clones, path, "both\n");
  const ended = await resumeJoins(attempt, one, resumed.clones, false);
  expect(ended.conflicts).toEqual([]);
  const [work] = await exportWork(attempt, one, ended.clones);
  const cwd = ended.clones[0]?.mirror.path;
  const show = (path: string) => execFileSync("git", ["show", `${work?.headSha}:${path}`], { cwd, encoding: "utf8" });
  expect([show("docs/a.md"), show("lib/deep.c"), show("lib/theirs.c")]).toEqual(["both\n", "both\n", "theirs\n"]);
});

test("another worker keeps what the agent deleted elsewhere in a clone of some folders", async () => {
  await world.database.pool.query("update repository set sparse = '{docs}'");
  await world.forge.commit("acme", "app", "main", { "docs/a.md": "a\n", "lib/a.c": "a\n", "lib/b.c": "b\n" });
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, one);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  gitIn(clones, "rm", "--quiet", "--cached", "--sparse", "lib/a.c");
  await keep(attempt, clones);
  const over = await takeOver(attempt, "two");
  expect(gitIn(over.clones, "status", "--short")).toBe("D  lib/a.c");
});

describe("commits that a checkpoint builds on, and the remote has lost", () => {
  /** As a reviewer who takes them back, on a server that has collected its garbage since. */
  function lose(branch: string): void {
    world.git("update-ref", `refs/heads/${branch}`, `${branch}~1`);
    // What a forge keeps of a pull request's commits, it loses as well.
    const kept = world.git("for-each-ref", "--format=%(refname)", "refs/pull*/**", "refs/merge-requests");
    for (const ref of kept.split("\n").filter((name) => name !== "")) world.git("update-ref", "-d", ref);
    world.git("-c", "gc.reflogExpire=now", "-c", "gc.reflogExpireUnreachable=now", "gc", "--quiet", "--prune=now");
  }

  test("are in the checkpoint: another worker goes on with the work, and with the merge under way", async () => {
    const { attempt, clones, branch, path, theirs } = await begin(collisions["a file that is no text"]);
    await keep(attempt, clones);
    lose(branch);
    expect(() => world.git("cat-file", "-e", theirs)).toThrow("Command failed");
    const { next, services, clones: restored } = await takeOver(attempt, "two");
    expect(gitIn(restored, "rev-parse", "MERGE_HEAD")).toBe(theirs);
    expect((await resumeJoins(next, services, restored, true)).conflicts).toMatchObject([{ theirs, paths: [path] }]);
    expect(await readFile(join(folderOf(restored), path), "utf8")).toBe("mine\0");
  });

  test("are fetched by their names if it does not hold them", async () => {
    const { attempt, clones, branch, theirs } = await begin(collisions["a file that is no text"]);
    await keep(attempt, clones);
    await forgetHeld();
    world.git("update-ref", `refs/heads/${branch}`, `${branch}~1`);
    const { clones: restored } = await takeOver(attempt, "two");
    expect(gitIn(restored, "rev-parse", "MERGE_HEAD")).toBe(theirs);
  });

  test("are reported as missing if they are nowhere, and the clone starts from the remote", async () => {
    const { attempt, clones, branch } = await begin(collisions["a file that is no text"]);
    await keep(attempt, clones);
    await forgetHeld();
    lose(branch);
    const next = await world.again(attempt, "two");
    expect(await prepareWorkspace(next, two)).toMatchObject({ origin: "remote", checkpoint: null });
    expect(await world.events(next)).toContainEqual(
      expect.stringMatching(/could not be restored: It builds on the commit [0-9a-f]{12}, which .* no longer has/u),
    );
  });

  /** As in a checkpoint of an earlier version, or one whose commits of others were too large. */
  const forgetHeld = () =>
    world.database.pool.query("update checkpoint set content = content #- '{repositories,0,held}'");
});
