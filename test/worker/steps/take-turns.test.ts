import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProviders } from "../../../src/agents/providers.ts";
import { completeMessage, nextMessage } from "../../../src/store/queue/progress.ts";
import { saveRepository } from "../../../src/store/queue/recorded-work.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { createSafePoints } from "../../../src/worker/attempt/safe-points.ts";
import { WorkerDraining } from "../../../src/worker/attempt/stop-reasons.ts";
import { takeTurns, type AgentServices, type Turns } from "../../../src/worker/steps/take-turns.ts";
import { startModelServer, type ModelServer } from "../../model/server.ts";
import { breakingAt, prepareTurns, withoutAgents, type PreparedTurns } from "./step-actions.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let services: StepServices & AgentServices;

beforeEach(async () => {
  world = await createStepWorld();
  services = withoutAgents(world.worker("one"));
});

afterEach(() => world.close());

const turnsOf = async (attempt: Attempt, origin: Turns["origin"]): Promise<PreparedTurns> => ({
  ...(await prepareTurns(attempt, services)),
  origin,
});

/** An earlier attempt answered the first message; no checkpoint has what it changed, unless `isKept`. */
async function answered(isKept: boolean): Promise<Attempt> {
  const attempt = await world.begin();
  const { session } = attempt;
  const message = await nextMessage(world.database, session);
  await completeMessage(world.database, session, message?.id ?? "", { answer: "The answer.", isKept });
  await saveRepository(world.database, session, 1, { headSha: "1".repeat(40) });
  return world.again(attempt, "two");
}

async function firstStatus(): Promise<unknown> {
  return (await world.database.pool.query("select status from message")).rows[0];
}

test("if all messages are answered, the answer is that of the earlier attempt", async () => {
  const attempt = await answered(true);
  expect(await takeTurns(attempt, services, await turnsOf(attempt, "disk"))).toMatchObject({
    finalMessage: "The answer.",
  });
});

test("records that this worker's disk has the newest state", async () => {
  const attempt = await answered(true);
  await takeTurns(attempt, services, await turnsOf(attempt, "disk"));
  const { rows } = await world.database.pool.query("select workspace_worker from session");
  expect(rows).toEqual([{ workspace_worker: "one" }]);
});

test("a message is asked again if what was changed for it is lost", async () => {
  const attempt = await answered(false);
  // No agent can run here, which shows that one would have been asked.
  await expect(takeTurns(attempt, services, await turnsOf(attempt, "remote"))).rejects.toMatchObject({
    code: "agent_unavailable",
  });
  expect(await firstStatus()).toEqual({ status: "running" });
});

test("a message is not asked again if the checkpoint has what was changed for it", async () => {
  const attempt = await answered(true);
  expect(await takeTurns(attempt, services, await turnsOf(attempt, "checkpoint"))).toMatchObject({
    finalMessage: "The answer.",
  });
  expect(await firstStatus()).toEqual({ status: "done" });
});

test("nor if the remote has it", async () => {
  const attempt = await answered(false);
  const turns = await turnsOf(attempt, "remote");
  const clones = turns.clones.map((clone) => ({ ...clone, headSha: clone.repository.headSha ?? "" }));
  expect(await takeTurns(attempt, services, { ...turns, clones })).toMatchObject({ finalMessage: "The answer." });
});

test("a message that no agent saw is not marked as interrupted by a worker that shuts down", async () => {
  const begun = await world.begin();
  const ended = new AbortController();
  const draining = new AbortController();
  const attempt = { ...begun, signal: ended.signal };
  const turns = await turnsOf(attempt, "remote");
  const reason = new WorkerDraining();
  const safePoints = createSafePoints(draining.signal, () => ended.abort(reason));
  draining.abort();
  await expect(takeTurns(attempt, services, { ...turns, safePoints })).rejects.toBe(reason);
  expect(await firstStatus()).toEqual({ status: "pending" });
});

test("fails before a turn if the sandbox does not work", async () => {
  const attempt = await world.begin();
  const sandbox = { ...services.sandbox, check: () => Promise.resolve("bwrap is not installed") };
  await expect(takeTurns(attempt, { ...services, sandbox }, await turnsOf(attempt, "disk"))).rejects.toMatchObject({
    code: "sandbox_unavailable",
  });
});

describe("a database that restarts when a turn is over", () => {
  let sockets: string;
  let model: ModelServer;

  beforeEach(async () => {
    sockets = await mkdtemp(join(tmpdir(), "offstage-s-"));
    model = await startModelServer({ script: [{ say: "Done as asked." }, { say: "Done again." }] });
  });

  afterEach(async () => {
    await model.close();
    await rm(sockets, { recursive: true, force: true });
  });

  test.each([
    { what: "the answer", words: "update message set status = 'done'" },
    { what: "the checkpoint", words: "insert into checkpoint " },
  ])("while $what is stored costs no second turn, here or on another worker", async ({ words }) => {
    const { database, breaks } = breakingAt(world.database, words);
    const models = { compatible: { baseUrl: `${model.url}/v1`, model: "scripted" } };
    services = {
      ...services,
      database,
      models,
      providers: createProviders({ models, custom: [] }),
      defaultAgent: () => Promise.resolve("basic:scripted"),
      socketDirectory: sockets,
      stallMs: 60_000,
      turnLimitMs: 60_000,
    };
    const attempt = await world.begin();
    const turns = await turnsOf(attempt, "disk");
    turns.checkpointer.start(turns.clones);
    expect(await takeTurns(attempt, services, turns)).toMatchObject({ finalMessage: "Done as asked." });
    await turns.checkpointer.stop();
    expect(breaks()).toBe(1);
    const { rows } = await world.database.pool.query("select status, answer, kept from message");
    expect(rows).toEqual([{ status: "done", answer: "Done as asked.", kept: true }]);
    expect(model.requests).toHaveLength(1);
  });
});
