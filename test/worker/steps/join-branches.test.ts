import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { recordedWork } from "../../../src/store/queue/recorded-work.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { createCheckpointer } from "../../../src/worker/checkpoints/checkpointer.ts";
import { restoreCheckpoint } from "../../../src/worker/checkpoints/restore.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { filesWithMarkers } from "../../../src/worker/clones/take-in.ts";
import { withOthersWork } from "../../../src/worker/steps/agent/conflict-prompt.ts";
import { exportWork } from "../../../src/worker/steps/commit/export-work.ts";
import { joinBranches } from "../../../src/worker/steps/joins/join-branches.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import { folderOf, gitIn, publish, takeCheckpoint } from "./step-actions.ts";
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

/** As an agent leaves a file, committed. */
async function work(clones: readonly Clone[], name: string, content: string): Promise<void> {
  await writeFile(join(folderOf(clones), name), content);
  gitIn(clones, "add", "--all");
  gitIn(clones, "commit", "--quiet", "--message", `change ${name}`);
}

/** A session that pushed `work.txt`; after that another committed to its branch. */
async function begin(theirs: Record<string, string>): Promise<Attempt> {
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, one);
  await work(clones, "work.txt", "first\n");
  await publish(attempt, one, clones);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  await world.forge.commit("acme", "app", attempt.session.branchName, theirs);
  return world.again(attempt, "one");
}

const ownCommits = async (attempt: Attempt): Promise<string[]> => {
  const { rows } = await world.database.pool.query<{ sha: string }>("select sha from session_commit");
  const own = new Set(rows.map(({ sha }) => sha));
  return world
    .git("log", "--format=%H %s", attempt.session.branchName)
    .split("\n")
    .filter((line) => own.has(line.slice(0, 40)))
    .map((line) => line.slice(41));
};

test("can be repeated: what is in the clone already stays, and is reported once", async () => {
  const attempt = await begin({ "their.txt": "theirs\n" });
  const { clones } = await prepareWorkspace(attempt, one);
  const first = await joinBranches(attempt, one, clones);
  expect(first).toMatchObject({ takenIn: [{ directory: "app", isTarget: false }], conflicts: [] });
  expect(await readFile(join(folderOf(clones), "their.txt"), "utf8")).toBe("theirs\n");
  const again = await world.again(attempt, "one");
  const kept = await prepareWorkspace(again, one);
  expect(kept.clones[0]?.theirs).toEqual(first.clones[0]?.theirs);
  const second = await joinBranches(again, one, kept.clones);
  expect(second).toMatchObject({ takenIn: [], conflicts: [] });
  expect((await publish(again, one, second.clones)).pushed).toEqual([]);
});

test("a clone that could not be brought there is joined when it is pushed", async () => {
  const attempt = await begin({ "their.txt": "theirs\n" });
  const { clones } = await prepareWorkspace(attempt, one);
  // As in a repository that the agent broke: the program in the sandbox fails.
  const broken = { ...one, sandbox: { ...one.sandbox, start: failing(one.sandbox.start, "offstage-taken-in") } };
  const joined = await joinBranches(attempt, broken, clones);
  expect(joined).toMatchObject({ takenIn: [], conflicts: [] });
  expect((await world.events(attempt)).at(-1)).toMatch(/could not be brought into app: it is joined with the work/u);
  await work(joined.clones, "more.txt", "more\n");
  expect((await publish(attempt, one, joined.clones)).pushed).toHaveLength(1);
  const files = world.git("ls-tree", "--name-only", attempt.session.branchName);
  expect(files).toBe("README.md\nmore.txt\ntheir.txt\nwork.txt");
  // The join is the session's own, too: a delivery of its push is not of another's.
  const joinCommit = expect.stringMatching(/^Merge what others committed to offstage\//u) as string;
  expect(await ownCommits(attempt)).toEqual([joinCommit, "change more.txt", "change work.txt"]);
});

test("a clone whose work can't be taken out stays as it is, for the turn that may mend it", async () => {
  const attempt = await begin({ "their.txt": "theirs\n" });
  const { clones } = await prepareWorkspace(attempt, one);
  const broken = { ...one, sandbox: { ...one.sandbox, start: failing(one.sandbox.start, "offstage-head") } };
  const joined = await joinBranches(attempt, broken, clones);
  expect(joined).toMatchObject({ takenIn: [], conflicts: [] });
  expect((await world.events(attempt)).at(-1)).toMatch(/could not be brought into app/u);
  expect((await joinBranches(attempt, one, joined.clones)).takenIn).toHaveLength(1);
});

/** A sandbox in which the programs with these words end with an error, as of a broken repository. */
function failing(start: StepServices["sandbox"]["start"], words: string): StepServices["sandbox"]["start"] {
  return (request) =>
    start(
      request.arguments.some((text) => text.includes(words)) ? { ...request, arguments: ["-c", "exit 1"] } : request,
    );
}

test("others' changes to submodules are brought in beside a conflict, too, and reported as far as they could not be", async () => {
  const attempt = await begin({ "work.txt": "theirs\n" });
  const { branchName } = attempt.session;
  const record = [
    'export GIT_INDEX_FILE="$PWD/an-index"; git read-tree "$0"',
    `list="$(for name in lib app; do printf '[submodule "%s"]\\n\\tpath = %s\\n\\turl = ../%s\\n' $name $name $name; done | git hash-object -w --stdin)"`,
    'at="$(git rev-parse "$0")"',
    'git update-index --add --cacheinfo "100644,$list,.gitmodules" --cacheinfo "160000,$at,lib" --cacheinfo "160000,$at,app"',
    'git update-ref "refs/heads/$0" "$(git -c user.name=A -c user.email=a@a.example commit-tree -p "$0" -m Lib "$(git write-tree)")"',
  ];
  execFileSync("bash", ["-ec", record.join("; "), branchName], { cwd: world.forge.pathOf("acme", "app") });
  const { clones } = await prepareWorkspace(attempt, one);
  await work(clones, "work.txt", "mine\n");
  const { conflicts, ...joined } = await joinBranches(attempt, one, clones);
  expect(conflicts).toMatchObject([
    { paths: ["work.txt"], submodules: { moved: [], added: ["lib"], renewed: ["app"] } },
  ]);
  // What is recorded of the submodules leaves the rest of the record as it is.
  expect(joined.clones).toMatchObject([{ joining: { paths: ["work.txt"] } }]);
  expect(withOthersWork("Go on.", { takenIn: [], conflicts })).toContain(
    'their folders are empty in this session: "lib"',
  );
  expect((await world.events(attempt)).join("\n")).toMatch(/submodules of acme\/app are new, .*: lib \(/u);
  expect(gitIn(clones, "-C", "app", "show", "HEAD:work.txt")).toBe("theirs");
  expect(gitIn(clones, "status", "--short", "--", "app", "work.txt")).toBe("A  app\nUU work.txt");
});

test("a merge under way goes on on another worker, from the checkpoint", async () => {
  const attempt = await begin({ "work.txt": "theirs\n" });
  const { clones } = await prepareWorkspace(attempt, one);
  await work(clones, "work.txt", "mine\n");
  const joined = await joinBranches(attempt, one, clones);
  expect(joined.conflicts).toMatchObject([{ directory: "app", paths: ["work.txt"], onto: null }]);
  expect(gitIn(clones, "status", "--short")).toBe("UU work.txt");
  const checkpointer = createCheckpointer(attempt, one);
  checkpointer.start(joined.clones);
  expect(await checkpointer.take()).toBe(true);
  await checkpointer.stop();

  const next = await world.again(attempt, "two");
  const moved = await prepareWorkspace(next, two);
  if (moved.checkpoint === null) throw new Error("no checkpoint was fetched");
  expect(await restoreCheckpoint(next, two, moved.clones, moved.checkpoint)).toBe("checkpoint");
  expect(await readFile(join(folderOf(moved.clones), "work.txt"), "utf8")).toContain("<<<<<<<");
  const theirs = world.git("rev-parse", attempt.session.branchName);
  expect(gitIn(moved.clones, "rev-parse", "MERGE_HEAD")).toBe(theirs);
  await writeFile(join(folderOf(moved.clones), "work.txt"), "mine and theirs\n");
  const { pushed } = await publish(next, two, moved.clones);
  expect(pushed).toHaveLength(1);
  expect(world.git("show", `${attempt.session.branchName}:work.txt`)).toBe("mine and theirs");
  expect(world.git("rev-parse", `${attempt.session.branchName}^2`)).toBe(theirs);
  // Another's commit is not the session's, on any worker.
  const [recorded] = await recordedWork(world.database, next.session);
  expect(recorded?.commits.has(theirs)).toBe(false);
});

test("a worker that takes over after others' commits were merged keeps them, and its own work", async () => {
  const attempt = await begin({ "their.txt": "theirs\n" });
  const { clones } = await prepareWorkspace(attempt, one);
  await work(clones, "more.txt", "more\n");
  const joined = await joinBranches(attempt, one, clones);
  expect(joined.takenIn).toHaveLength(1);
  const checkpointer = createCheckpointer(attempt, one);
  checkpointer.start(joined.clones);
  await writeFile(join(folderOf(clones), "left.txt"), "left\n");
  await checkpointer.take();
  await checkpointer.stop();
  const next = await world.again(attempt, "two");
  const moved = await prepareWorkspace(next, two);
  if (moved.checkpoint === null) throw new Error("no checkpoint was fetched");
  await restoreCheckpoint(next, two, moved.clones, moved.checkpoint);
  expect((await publish(next, two, moved.clones)).pushed).toHaveLength(1);
  const files = world.git("ls-tree", "--name-only", attempt.session.branchName);
  expect(files).toBe("README.md\nleft.txt\nmore.txt\ntheir.txt\nwork.txt");
});

test("what collides with a rewritten branch is put on top of it by hand, and left markers are seen", async () => {
  const attempt = await begin({ "their.txt": "theirs\n" });
  const branch = attempt.session.branchName;
  const { clones } = await prepareWorkspace(attempt, one);
  await work(clones, "work.txt", "mine\n");
  world.git("branch", "--force", branch, "main");
  await world.forge.commit("acme", "app", branch, { "work.txt": "rewritten\n" });
  const joined = await joinBranches(attempt, one, clones);
  expect(joined.conflicts).toMatchObject([
    { paths: ["work.txt"], onto: expect.stringMatching(/^[0-9a-f]{40}$/u) as string },
  ]);
  expect(gitIn(clones, "rev-parse", "HEAD")).toBe(world.git("rev-parse", branch));
  const [clone] = joined.clones;
  expect((await exportWork(attempt, one, joined.clones))[0]?.unfinished).toEqual(["work.txt"]);
  gitIn(clones, "add", "--all");
  gitIn(clones, "commit", "--quiet", "--no-edit");
  const [left] = await exportWork(attempt, one, joined.clones);
  const options = { cwd: clone?.mirror.path ?? "", signal: attempt.signal };
  const markersIn = (head = "") =>
    filesWithMarkers({ head, theirs: clone?.theirs?.at(-1) ?? "" }, attempt.session.title, options);
  expect(await markersIn(left?.headSha)).toEqual(["work.txt"]);
  await work(clones, "work.txt", "mine on theirs\n");
  const { works, pushed } = await publish(attempt, one, joined.clones);
  expect(await markersIn(works[0]?.headSha)).toEqual([]);
  expect(pushed).toHaveLength(1);
  expect(world.git("ls-tree", "--name-only", branch)).toBe("README.md\nwork.txt");
  expect(world.git("show", `${branch}:work.txt`)).toBe("mine on theirs");
});

test.each([
  ["with the whole repository's", true, ["work.txt", "more.txt"], "change more.txt"],
  ["alone", false, ["README.md", "more.txt"], "Work"],
])("work goes on, and is shown, on a branch whose history was written anew %s", async (_, isAll, shown, subject) => {
  const attempt = await begin({ "their.txt": "theirs\n" });
  const branch = attempt.session.branchName;
  const who = ["-c", "user.name=Other", "-c", "user.email=other@example.com"];
  const root = world.git(...who, "commit-tree", "main^{tree}", "-m", "Root");
  const files = isAll ? `${branch}^{tree}` : world.git("hash-object", "-t", "tree", "-w", "/dev/null");
  const parents = isAll ? ["-p", root] : [];
  const tip = world.git(...who, "commit-tree", files, ...parents, "-m", "Anew");
  if (isAll) world.git("update-ref", "refs/heads/main", root);
  world.git("update-ref", `refs/heads/${branch}`, tip);
  const { clones } = await prepareWorkspace(attempt, one);
  const joined = await joinBranches(attempt, one, clones);
  await work(joined.clones, "more.txt", "more\n");
  const { works, pushed } = await publish(attempt, one, joined.clones);
  expect(pushed).toHaveLength(1);
  expect(world.git("log", "--format=%s", "-1", `${branch}^`)).toBe("Anew");
  expect(world.git("log", "--format=%s", "-1", branch)).toBe(subject);
  const patch = works[0]?.patch ?? "";
  for (const file of shown) expect(patch).toContain(`b/${file}\n`);
});

test("a session that lost its claim pushes nothing", async () => {
  const attempt = await begin({ "their.txt": "theirs\n" });
  const { clones } = await prepareWorkspace(attempt, one);
  await work(clones, "more.txt", "more\n");
  const works = await exportWork(attempt, one, clones);
  const before = world.git("rev-parse", attempt.session.branchName);
  await world.again(attempt, "two");
  await expect(push(attempt, one, works)).rejects.toMatchObject({ code: "conflict" });
  expect(world.git("rev-parse", attempt.session.branchName)).toBe(before);
});

test.each([
  ["branch", "acme"],
  ["fork's branch", "tester"],
])("a %s that was deleted after its merge is not made again by a push that came late", async (_, owner) => {
  const services = { ...one, forks: owner !== "acme" };
  world.forge.describe("acme", "app", { push: owner === "acme" });
  const at = (...parameters: string[]): string =>
    execFileSync("git", ["-C", world.forge.pathOf(owner, "app"), ...parameters], { encoding: "utf8" }).trim();
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, services);
  await work(clones, "work.txt", "first\n");
  const works = await exportWork(attempt, services, clones);
  const { pushed } = await push(attempt, services, works);
  // It was killed before it recorded the pull request.
  await openPullRequests(attempt, services, pushed, "");
  await world.database.pool.query("delete from pull_request");
  world.forge.endPullRequest("acme", "app", 1, "merged");
  at("update-ref", "-d", `refs/heads/${attempt.session.branchName}`);
  const next = await world.again(attempt, "one");
  const kept = await prepareWorkspace(next, services);
  expect((await publish(next, services, kept.clones)).pushed).toEqual([]);
  expect(() => at("rev-parse", "--verify", "--quiet", attempt.session.branchName)).toThrow("Command failed");
  expect(await world.forge.pullRequests("acme", "app")).toHaveLength(1);
  const { rows } = await world.database.pool.query("select number, state from pull_request");
  expect(rows).toEqual([{ number: 1, state: "merged" }]);
});

describe("after a merge that squashed the branch", () => {
  /** The pull request of `work.txt` is one commit of the target, which has changed on. */
  async function squashed(isDeleted: boolean): Promise<{ attempt: Attempt; clones: readonly Clone[] }> {
    const first = await world.begin();
    const { clones } = await prepareWorkspace(first, one);
    await work(clones, "work.txt", "first\n");
    await publish(first, one, clones);
    await world.database.pool.query("update session set workspace_worker = 'one'");
    await world.forge.commit("acme", "app", "main", { "work.txt": "first\n" });
    await world.forge.commit("acme", "app", "main", { "work.txt": "first, and changed\n", "their.txt": "theirs\n" });
    world.forge.endPullRequest("acme", "app", 1, "merged");
    if (isDeleted) world.git("update-ref", "-d", `refs/heads/${first.session.branchName}`);
    const attempt = await world.again(first, "one");
    return { attempt, clones: (await prepareWorkspace(attempt, one)).clones };
  }

  const branches = [
    ["deleted", true],
    ["left", false],
  ] as const;

  test.each(branches)(
    "new work begins at the target, and its pull request has nothing else: branch %s",
    async (_, gone) => {
      const { attempt, clones } = await squashed(gone);
      const joined = await joinBranches(attempt, one, clones);
      expect(joined).toMatchObject({ takenIn: [{ branch: "main", isTarget: true }], conflicts: [] });
      expect(await readFile(join(folderOf(clones), "work.txt"), "utf8")).toBe("first, and changed\n");
      await work(joined.clones, "more.txt", "more\n");
      expect((await publish(attempt, one, joined.clones)).pushed).toHaveLength(1);
      const { branchName } = attempt.session;
      expect(world.git("diff", "--name-only", `main...${branchName}`)).toBe("more.txt");
      expect(world.git("merge-base", "main", branchName)).toBe(world.git("rev-parse", "main"));
      expect(await world.forge.pullRequests("acme", "app")).toHaveLength(2);
    },
  );

  test.each(branches)("a turn without a change publishes nothing: branch %s", async (_, gone) => {
    const { attempt, clones } = await squashed(gone);
    const refs = world.git("for-each-ref", "refs/heads");
    const joined = await joinBranches(attempt, one, clones);
    expect((await publish(attempt, one, joined.clones)).pushed).toEqual([]);
    const again = await world.again(attempt, "one");
    const kept = await prepareWorkspace(again, one);
    const rejoined = await joinBranches(again, one, kept.clones);
    expect(rejoined.takenIn).toEqual([]);
    expect((await publish(again, one, rejoined.clones)).pushed).toEqual([]);
    expect(world.git("for-each-ref", "refs/heads")).toBe(refs);
    expect(await world.forge.pullRequests("acme", "app")).toHaveLength(1);
  });

  test("nor does one that another worker takes over, which knows the branch by the checkpoint alone", async () => {
    const { attempt, clones } = await squashed(true);
    const joined = await joinBranches(attempt, one, clones);
    expect(await takeCheckpoint(attempt, one, joined.clones)).toBe(true);
    const next = await world.again(attempt, "two");
    const moved = await prepareWorkspace(next, two);
    if (moved.checkpoint === null) throw new Error("no checkpoint was fetched");
    expect(await restoreCheckpoint(next, two, moved.clones, moved.checkpoint)).toBe("checkpoint");
    expect(gitIn(moved.clones, "rev-parse", "HEAD")).toBe(world.git("rev-parse", "main"));
    expect((await publish(next, two, moved.clones)).pushed).toEqual([]);
    expect(await world.forge.pullRequests("acme", "app")).toHaveLength(1);
  });

  test("work that was not pushed before the merge is put on top of the target", async () => {
    const { attempt, clones } = await squashed(true);
    await work(clones, "more.txt", "more\n");
    const joined = await joinBranches(attempt, one, clones);
    expect((await publish(attempt, one, joined.clones)).pushed).toHaveLength(1);
    expect(world.git("diff", "--name-only", `main...${attempt.session.branchName}`)).toBe("more.txt");
  });

  test("work that was pushed after the merge, and has no pull request yet, is not given up", async () => {
    const { attempt, clones } = await squashed(false);
    await work(clones, "more.txt", "more\n");
    // It was killed before it opened the second pull request.
    await push(attempt, one, await exportWork(attempt, one, clones));
    const again = await world.again(attempt, "one");
    const kept = await prepareWorkspace(again, one);
    const joined = await joinBranches(again, one, kept.clones);
    expect(joined.takenIn).toEqual([]);
    expect(gitIn(joined.clones, "log", "--format=%s", "-1")).toBe("change more.txt");
  });
});
