import { afterEach, beforeEach, expect, test } from "vitest";
import { LeaseLostError } from "../../../src/store/queue/lease.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { recordPullRequest } from "../../../src/worker/steps/pull-requests/record.ts";
import { createStepWorld, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let attempt: Attempt;
let clone: Clone;

beforeEach(async () => {
  world = await createStepWorld();
  attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, world.worker("one"));
  if (clones[0] === undefined) throw new Error("there is no clone");
  [clone] = [clones[0]];
});

afterEach(() => world.close());

const found = (more: object = {}) => ({
  clone,
  headSha: "abc",
  target: "main",
  number: 7,
  url: "https://git.example.com/acme/app/pull/7",
  state: "open" as const,
  ...more,
});
const rows = async (): Promise<unknown[]> =>
  (await world.database.pool.query("select number, head, target, head_sha, state from pull_request")).rows;
const opened = async (): Promise<number> =>
  (await world.events(attempt)).filter((line) => line.startsWith("pullRequest.opened")).length;

test("a pull request that was opened is the session's, and announced once", async () => {
  expect(await recordPullRequest(attempt, world, found({ created: true }))).toEqual({ openedBy: null });
  const row = { number: 7, head: attempt.session.branchName, target: "main", head_sha: "abc", state: "open" };
  expect([await rows(), await opened()]).toEqual([[row], 1]);
});

test("one that was found again is not announced again, and is for the newest commit", async () => {
  await recordPullRequest(attempt, world, found({ created: true }));
  await recordPullRequest(attempt, world, found({ headSha: "def" }));
  expect([await rows(), await opened()]).toEqual([[expect.objectContaining({ head_sha: "def" })], 1]);
});

test("one that ended meanwhile is recorded as ended", async () => {
  await recordPullRequest(attempt, world, found({ state: "merged" }));
  expect(await rows()).toEqual([expect.objectContaining({ state: "merged" })]);
});

test("a worker that lost its lease records nothing", async () => {
  await world.again(attempt, "two");
  await expect(recordPullRequest(attempt, world, found())).rejects.toThrow(LeaseLostError);
  expect(await rows()).toEqual([]);
});
