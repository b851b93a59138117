import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { ClaimLost, WorkerDraining } from "../../../src/worker/attempt/stop-reasons.ts";
import { createCheckpointer } from "../../../src/worker/checkpoints/checkpointer.ts";
import { fetchCheckpoint, restoreCheckpoint } from "../../../src/worker/checkpoints/restore.ts";
import { exportWork } from "../../../src/worker/steps/commit/export-work.ts";
import { prepareWorkspace, type Workspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import { breakingAt, takeCheckpoint } from "./step-actions.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let one: StepServices;
let two: StepServices;

beforeEach(async () => {
  world = await createStepWorld();
  one = world.worker("one");
  two = world.worker("two");
});

afterEach(() => world.close());

const folderOf = ({ clones }: Workspace): string => clones[0]?.folder ?? "";

async function begin(): Promise<{ attempt: Attempt; workspace: Workspace }> {
  const attempt = await world.begin();
  const workspace = await prepareWorkspace(attempt, one);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  return { attempt, workspace };
}

async function take(attempt: Attempt, { clones }: Workspace): Promise<boolean> {
  return takeCheckpoint(attempt, one, clones);
}

test("what a checkpoint has is not known after one that the database did not take", async () => {
  const { attempt, workspace } = await begin();
  const { database, breaks } = breakingAt(world.database, "insert into checkpoint ");
  await writeFile(join(folderOf(workspace), "first.txt"), "first\n");
  let isAway = false;
  const transaction: typeof database.transaction = (work) =>
    isAway ? database.transaction(work) : world.database.transaction(work);
  const checkpointer = createCheckpointer(attempt, { ...one, database: { ...database, transaction } });
  checkpointer.start(workspace.clones);
  expect([await checkpointer.take(), checkpointer.work()]).toEqual([true, expect.any(String)]);
  isAway = true;
  await writeFile(join(folderOf(workspace), "second.txt"), "second\n");
  await expect(checkpointer.take()).rejects.toThrow(/connection/u);
  expect([breaks(), checkpointer.work()]).toEqual([1, null]);
  expect([await checkpointer.take(), checkpointer.work()]).toEqual([true, expect.any(String)]);
  await checkpointer.stop();
});

test("another worker continues with the files as the agent left them, on its own HEAD", async () => {
  const { attempt, workspace } = await begin();
  const identity = ["-c", "user.name=Agent", "-c", "user.email=agent@example.com"];
  await writeFile(join(folderOf(workspace), "committed.txt"), "committed\n");
  execFileSync("git", ["-C", folderOf(workspace), "add", "--all"]);
  execFileSync("git", ["-C", folderOf(workspace), ...identity, "commit", "--quiet", "--message", "the agent's own"]);
  await writeFile(join(folderOf(workspace), "left.txt"), "not committed\n");
  expect(await take(attempt, workspace)).toBe(true);

  const next = await world.again(attempt, "two");
  const moved = await prepareWorkspace(next, two);
  expect(moved.origin).toBe("remote");
  expect(existsSync(join(folderOf(moved), "left.txt"))).toBe(false);
  if (moved.checkpoint === null) throw new Error("no checkpoint was fetched");
  expect(await restoreCheckpoint(next, two, moved.clones, moved.checkpoint)).toBe("checkpoint");
  expect(await readFile(join(folderOf(moved), "left.txt"), "utf8")).toBe("not committed\n");
  const git = (...parameters: string[]): string =>
    execFileSync("git", ["-C", folderOf(moved), ...parameters], { encoding: "utf8" }).trim();
  expect(git("log", "-1", "--format=%s")).toBe("the agent's own");
  expect(git("status", "--short")).toBe("?? left.txt");
  // What was fetched on the way is not left beside the folders.
  expect(existsSync(two.folders.incomingPath(attempt.session.sessionId))).toBe(false);
});

test("another worker continues with a follow-up's commits on top of what an earlier attempt pushed", async () => {
  const identity = ["-c", "user.name=Agent", "-c", "user.email=agent@example.com"];
  const commit = async ({ clones }: Workspace, name: string): Promise<void> => {
    await writeFile(join(clones[0]?.folder ?? "", name), `${name}\n`);
    execFileSync("git", ["-C", clones[0]?.folder ?? "", "add", "--all"]);
    execFileSync("git", ["-C", clones[0]?.folder ?? "", ...identity, "commit", "--quiet", "--message", name]);
  };
  const { attempt, workspace } = await begin();
  await commit(workspace, "first.txt");
  await take(attempt, workspace);
  await push(attempt, one, await exportWork(attempt, one, workspace.clones));
  const followUp = await world.again(attempt, "one");
  const continued = await prepareWorkspace(followUp, one);
  expect(continued.origin).toBe("disk");
  await commit(continued, "second.txt");
  await take(followUp, continued);

  const next = await world.again(followUp, "two");
  const moved = await prepareWorkspace(next, two);
  if (moved.checkpoint === null) throw new Error("the checkpoint was thrown away");
  expect(await restoreCheckpoint(next, two, moved.clones, moved.checkpoint)).toBe("checkpoint");
  expect(await readFile(join(folderOf(moved), "second.txt"), "utf8")).toBe("second.txt\n");
});

test.each([
  ["the folders that it was made with", "true", ["docs/a.md", "docs/new.md"], "?? docs/new.md"],
  [
    "a change elsewhere",
    "mkdir -p lib/deep && echo c > lib/deep/a.c && echo n > lib/n.c",
    ["docs/a.md", "docs/new.md", "lib/deep/a.c", "lib/n.c"],
    " M lib/deep/a.c\n?? docs/new.md\n?? lib/n.c",
  ],
  [
    "another folder",
    "git sparse-checkout add lib/deep && rm lib/deep/a.c && echo x > lib/x.c",
    ["docs/a.md", "docs/new.md", "lib/deep/b.c", "lib/x.c"],
    " D lib/deep/a.c\n?? docs/new.md\n?? lib/x.c",
  ],
  [
    "everything",
    "git sparse-checkout disable && rm lib/deep/a.c",
    ["docs/a.md", "docs/new.md", "lib/deep/b.c", "other/o.c"],
    " D lib/deep/a.c\n?? docs/new.md",
  ],
  ["no .git", "rm -rf .git", ["docs/a.md", "docs/new.md"], "?? docs/new.md"],
])("another worker continues in a clone of some folders with %s", async (_name, commands, files, status) => {
  await world.database.pool.query("update repository set sparse = '{docs}'");
  const names = ["docs/a.md", "lib/deep/a.c", "lib/deep/b.c", "other/o.c"];
  await world.forge.commit("acme", "app", "main", Object.fromEntries(names.map((name) => [name, `${name}\n`])));
  const { attempt, workspace } = await begin();
  expect(existsSync(join(folderOf(workspace), "lib"))).toBe(false);
  execFileSync("sh", ["-ec", `echo new > docs/new.md; ${commands}`], { cwd: folderOf(workspace) });
  expect(await take(attempt, workspace)).toBe(true);
  // The setting counts for clones that are made anew.
  await world.database.pool.query("update repository set sparse = '{other}'");

  const next = await world.again(attempt, "two");
  const moved = await prepareWorkspace(next, two);
  if (moved.checkpoint === null) throw new Error("no checkpoint was fetched");
  expect(await restoreCheckpoint(next, two, moved.clones, moved.checkpoint)).toBe("checkpoint");
  const run = (command: string): string =>
    execFileSync("sh", ["-ec", command], { cwd: folderOf(moved), encoding: "utf8" }).trimEnd();
  expect(run("find docs lib other -type f 2> /dev/null | sort || true").split("\n")).toEqual(files);
  expect(run("git status --porcelain -uall")).toBe(status);
});

test("a checkpoint from before a push is not continued from: the branch has more", async () => {
  const { attempt, workspace } = await begin();
  await writeFile(join(folderOf(workspace), "first.txt"), "first\n");
  await take(attempt, workspace);
  await writeFile(join(folderOf(workspace), "second.txt"), "second\n");
  await push(attempt, one, await exportWork(attempt, one, workspace.clones));
  const next = await world.again(attempt, "two");
  const moved = await prepareWorkspace(next, two);
  if (moved.checkpoint !== null) await restoreCheckpoint(next, two, moved.clones, moved.checkpoint);
  expect(await readFile(join(folderOf(moved), "second.txt"), "utf8")).toBe("second\n");
});

test("what was fetched of a checkpoint does not stay if the rest can't be fetched", async () => {
  const { attempt, workspace } = await begin();
  await writeFile(join(folderOf(workspace), "left.txt"), "not committed\n");
  await take(attempt, workspace);
  const next = await world.again(attempt, "two");
  const { sessionId } = attempt.session;
  let isFetching = false;
  const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  const open = (): never => {
    isFetching = existsSync(two.folders.incomingPath(sessionId));
    throw full;
  };
  const vault = { ...two.vault, open };
  await expect(prepareWorkspace(next, { ...two, vault })).rejects.toBe(full);
  expect(isFetching).toBe(true);
  expect(existsSync(two.folders.incomingPath(sessionId))).toBe(false);
});

test("folders are not complete until the checkpoint is restored into them", async () => {
  const { attempt, workspace } = await begin();
  await writeFile(join(folderOf(workspace), "left.txt"), "not committed\n");
  await take(attempt, workspace);
  await prepareWorkspace(await world.again(attempt, "two"), two);
  // The worker was killed here.
  const again = await prepareWorkspace(await world.again(attempt, "two"), two);
  expect(again.checkpoint).not.toBeNull();
});

test("a workspace without a repository is kept by its files", async () => {
  const attempt = await world.begin({ repositories: [] });
  const workspace = await prepareWorkspace(attempt, one);
  const { workspace: folder } = one.folders.pathsOf(attempt.session.sessionId);
  await mkdir(join(folder, "notes"));
  await writeFile(join(folder, "notes/a.txt"), "a\n");
  expect(await take(attempt, workspace)).toBe(true);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  const next = await world.again(attempt, "two");
  const moved = await prepareWorkspace(next, two);
  if (moved.checkpoint === null) throw new Error("no checkpoint was fetched");
  await restoreCheckpoint(next, two, moved.clones, moved.checkpoint);
  const place = two.folders.pathsOf(attempt.session.sessionId);
  expect(await readFile(join(place.workspace, "notes/a.txt"), "utf8")).toBe("a\n");
});

test("a checkpoint that can't be opened is said to be unusable, and the clones start from the remote", async () => {
  const { attempt, workspace } = await begin();
  await writeFile(join(folderOf(workspace), "left.txt"), "not committed\n");
  await take(attempt, workspace);
  await world.database.pool.query(
    "update checkpoint_piece set sealed = set_byte(sealed, 30, get_byte(sealed, 30) # 255)",
  );
  const next = await world.again(attempt, "two");
  expect(await fetchCheckpoint(next, two)).toBeNull();
  expect(await prepareWorkspace(next, two)).toMatchObject({ origin: "remote", checkpoint: null });
  expect((await world.events(attempt)).at(-1)).toMatch(
    /^notice The work of the previous worker could not be restored/u,
  );
});

test("a checkpointer that was never started takes nothing, and can be stopped twice", async () => {
  const attempt = await world.begin();
  const checkpointer = createCheckpointer(attempt, one);
  expect(await checkpointer.take()).toBe(false);
  await checkpointer.takeLast(new Error("it failed"));
  await checkpointer.stop();
  await checkpointer.stop();
  expect(await fetchCheckpoint(attempt, two)).toBeNull();
});

test.each([
  ["a worker that shuts down", new WorkerDraining(), true],
  ["a lost lease", new ClaimLost(), false],
])("after %s the last checkpoint is taken only if it may be", async (_, reason, isTaken) => {
  const { attempt, workspace } = await begin();
  const ended = new AbortController();
  const checkpointer = createCheckpointer({ ...attempt, signal: ended.signal }, one);
  checkpointer.start(workspace.clones);
  await writeFile(join(folderOf(workspace), "left.txt"), "not committed\n");
  ended.abort(reason);
  await checkpointer.takeLast(reason);
  expect((await fetchCheckpoint(attempt, two)) !== null).toBe(isTaken);
});
