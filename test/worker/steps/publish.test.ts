import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import type { RunStep } from "../../../src/worker/attempt/named-step.ts";
import { publish } from "../../../src/worker/run-steps.ts";
import type { PublishServices } from "../../../src/worker/steps/publish.ts";
import type { TurnsTaken } from "../../../src/worker/steps/take-turns.ts";
import { folderOf, gitIn, prepareTurns, withoutAgents, type PreparedTurns } from "./step-actions.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let services: StepServices & PublishServices;
let begun: string[];

beforeEach(async () => {
  world = await createStepWorld();
  services = withoutAgents(world.worker("one"));
  begun = [];
});

afterEach(() => world.close());

const step: RunStep = (name, work) => {
  begun.push(name);
  return work();
};

/** Commits each file, as the agent. @returns what its turn left */
async function commit({ clones }: PreparedTurns, files: Record<string, string>): Promise<TurnsTaken> {
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folderOf(clones), name), content);
    gitIn(clones, "add", "--all");
    gitIn(clones, "commit", "--quiet", "--message", name);
  }
  return { clones, conflicts: [], harness: null };
}

const branchOf = ({ session }: Attempt): string => world.git("rev-parse", session.branchName);
const checkpoints = async (): Promise<unknown> =>
  (await world.database.pool.query("select count(*)::int as count from checkpoint")).rows[0];

test("work that changed nothing is exported, and not pushed", async () => {
  const attempt = await world.begin();
  const turns = await prepareTurns(attempt, services);
  const { works, pushed } = await publish({ attempt, services, step }, turns, await commit(turns, {}));
  expect([works.length, pushed, begun]).toEqual([1, null, ["commit"]]);
});

test("work is in a checkpoint and on the branch", async () => {
  const attempt = await world.begin();
  const turns = await prepareTurns(attempt, services);
  const { pushed } = await publish({ attempt, services, step }, turns, await commit(turns, { "a.txt": "a\n" }));
  await turns.checkpointer.stop();
  expect(begun).toEqual(["commit", "push"]);
  expect(pushed?.map(({ pushedSha }) => pushedSha)).toEqual([branchOf(attempt)]);
  expect(await checkpoints()).toEqual({ count: 1 });
});

test("a merge that is still under way is the agent's before anything is exported", async () => {
  const attempt = await world.begin();
  const turns = await prepareTurns(attempt, services);
  const taken = await commit(turns, { "a.txt": "a\n" });
  const conflict = { directory: "app", branch: "x", isTarget: false, theirs: "1", onto: null, paths: ["a.txt"] };
  const publishing = publish({ attempt, services, step }, turns, { ...taken, conflicts: [conflict] });
  await expect(publishing).rejects.toMatchObject({ code: "agent_unavailable" });
  expect(begun).toEqual(["agent"]);
  expect(await world.events(attempt)).toContain(
    "notice What others committed to x of app collides with the session's work in a.txt: the agent resolves that first.",
  );
});

test("work that collides with others' is not pushed: the agent gets the merge, in the clone", async () => {
  const first = await world.begin();
  const turns = await prepareTurns(first, services);
  await publish({ attempt: first, services, step }, turns, await commit(turns, { "a.txt": "a\n" }));
  await turns.checkpointer.stop();
  await world.database.pool.query("update session set workspace_worker = 'one'");
  await world.forge.commit("acme", "app", first.session.branchName, { "a.txt": "theirs\n" });
  const theirs = branchOf(first);
  const attempt = await world.again(first, "one");
  const next = await prepareTurns(attempt, services);
  begun = [];
  const publishing = publish({ attempt, services, step }, next, await commit(next, { "a.txt": "mine\n" }));
  await expect(publishing).rejects.toMatchObject({ code: "agent_unavailable" });
  await next.checkpointer.stop();
  expect(begun).toEqual(["commit", "push", "agent"]);
  expect(branchOf(attempt)).toBe(theirs);
  expect(gitIn(next.clones, "rev-parse", "MERGE_HEAD")).toBe(theirs);
});

test("markers of a conflict that are left in a commit are not pushed", async () => {
  const attempt = await world.begin();
  const turns = await prepareTurns(attempt, services);
  const theirs = gitIn(turns.clones, "rev-parse", "HEAD");
  const taken = await commit(turns, { "b.txt": `<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> ${theirs}\n` });
  const clones = taken.clones.map((clone) => ({ ...clone, theirs: [theirs] }));
  const publishing = publish({ attempt, services, step }, turns, { ...taken, clones });
  await expect(publishing).rejects.toMatchObject({ code: "agent_unavailable" });
  await turns.checkpointer.stop();
  expect(begun).toEqual(["commit", "agent"]);
});
