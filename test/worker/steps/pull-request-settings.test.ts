import { afterEach, beforeEach, expect, test } from "vitest";
import type { PullRequestSettings } from "../../../src/domain/repositories/pull-request-settings.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { applyPullRequestSettings } from "../../../src/worker/steps/pull-requests/settings.ts";
import { createStepWorld, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let attempt: Attempt;

beforeEach(async () => {
  world = await createStepWorld();
  attempt = await world.begin();
});

afterEach(() => world.close());

const wanted: PullRequestSettings = { draft: true, labels: ["bug"], reviewers: ["ada"], assignees: [] };

async function apply(opened: object): Promise<void> {
  const [repository] = attempt.session.repositories;
  if (repository === undefined) throw new Error("there is no repository");
  await applyPullRequestSettings(attempt, world.database, {
    opened: { number: 7, mark: null, created: true, ...opened },
    repository,
    settings: wanted,
  });
}
async function queued(): Promise<unknown[]> {
  const { rows } = await world.database.pool.query<{ action: { field: string; names: string[] } }>(
    "select action from answer order by number",
  );
  return rows.map(({ action: { field, names } }) => [field, names]);
}
const fields = [
  ["labels", ["bug"]],
  ["reviewers", ["ada"]],
];

test("what is asked for is queued once, however often it is asked", async () => {
  await apply({});
  await apply({});
  expect(await queued()).toEqual(fields);
});

test("one that an earlier attempt of the session opened gets it, another's does not", async () => {
  await apply({ created: false });
  expect(await queued()).toEqual([]);
  await apply({ created: false, mark: { sessionId: attempt.session.sessionId, sha: "abc" } });
  expect(await queued()).toEqual(fields);
});

test("a forge without drafts is reported, and only then", async () => {
  await apply({ draft: true });
  await apply({});
  expect(await world.events(attempt)).toEqual([]);
  await apply({ draft: false });
  expect(await world.events(attempt)).toEqual([
    "notice The pull request of acme/app is no draft: its forge has none for this repository.",
  ]);
});
