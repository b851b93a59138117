import { afterEach, beforeEach, expect, test } from "vitest";
import { SessionError } from "../../../src/domain/errors/errors.ts";
import { createMask } from "../../../src/domain/masking/mask.ts";
import { beginAttempt } from "../../../src/worker/attempt/attempt.ts";
import { namedSteps } from "../../../src/worker/attempt/named-step.ts";
import { BudgetUsedUp, SessionCancelled } from "../../../src/worker/attempt/stop-reasons.ts";
import { createStepWorld, type StepWorld } from "./step-world.ts";

let world: StepWorld;

beforeEach(async () => {
  world = await createStepWorld();
});

afterEach(() => world.close());

const failed = new SessionError({
  code: "setup_failed",
  reason: "It ended with 1.",
  retryable: true,
  remedy: "Retry.",
});

test("a step says when it starts and completes, and hands its result on", async () => {
  const attempt = await world.begin();
  const step = namedSteps(() => attempt, world.worker("one"));
  expect(await step("commit", () => Promise.resolve("the result"))).toBe("the result");
  expect(await world.events(attempt)).toEqual(["step.started commit", "step.completed commit"]);
});

test("a step that fails says why, and throws its error", async () => {
  const attempt = await world.begin();
  const step = namedSteps(() => attempt, world.worker("one"));
  await expect(step("setup", () => Promise.reject(failed))).rejects.toBe(failed);
  expect(await world.events(attempt)).toEqual(["step.started setup", "step.failed setup setup_failed"]);
});

test("a step that ends because the session waits has not failed", async () => {
  const attempt = await world.begin();
  const step = namedSteps(() => attempt, world.worker("one"));
  const shortage = new BudgetUsedUp("the budget is used up", 1);
  await expect(step("agent", () => Promise.reject(shortage))).rejects.toBe(shortage);
  expect(await world.events(attempt)).toEqual(["step.started agent"]);
});

test("no step starts, completes or fails once the attempt is to end", async () => {
  const attempt = await world.begin();
  const ended = new AbortController();
  const step = namedSteps(() => ({ ...attempt, signal: ended.signal }), world.worker("one"));
  const reason = new SessionCancelled();
  const work = step("agent", () => {
    ended.abort(reason);
    return Promise.resolve();
  });
  await expect(work).rejects.toBe(reason);
  await expect(step("commit", () => Promise.resolve())).rejects.toBe(reason);
  expect(await world.events(attempt)).toEqual(["step.started agent"]);
});

test("a step that opened a secret does not show it if it fails", async () => {
  let attempt = await world.begin();
  const step = namedSteps(() => attempt, world.worker("one"));
  const outcome = step("prepare", () => {
    attempt = beginAttempt(attempt, { database: world.database, mask: createMask(["a-value-that-is-sealed"]) });
    return Promise.reject(new SessionError({ ...failed.failure, reason: "It said a-value-that-is-sealed." }));
  });
  await expect(outcome).rejects.toThrow("It said a-value-that-is-sealed.");
  const { rows } = await world.database.pool.query<{ reason: string }>(
    "select data -> 'failure' ->> 'reason' as reason from event where type = 'step.failed'",
  );
  expect(rows).toEqual([{ reason: "It said [secret]." }]);
});
