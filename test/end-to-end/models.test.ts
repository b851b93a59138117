import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { replayRecordedSession } from "../../src/admin/attach.ts";
import type { Client } from "../../src/client.ts";
import { readConfig } from "../../src/config/config.ts";
import type { NewEvent, SessionEvent } from "../../src/domain/sessions/event.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, modelKey, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/**
 * Every request of the scripted model is about a thousand tokens, and can be some thousands as far as the gateway knows: ten
 * cents for each thousand make small sums.
 */
const overrides = {
  OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
  OFFSTAGE_MODELS: "scripted*",
  OFFSTAGE_PRICES: JSON.stringify({ scripted: { input: 100, output: 100 } }),
  OFFSTAGE_RECORD: "true",
};

let world: World;
let offstage: Offstage;
let client: Client;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, overrides));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

const eventsOf = async (id: string): Promise<readonly SessionEvent[]> =>
  (await client.session.events(id, { limit: 1_000 })).events;
const settings = (body: unknown) => callApi(offstage.url, "/organization/update", body);
const untilStatus = (id: string, status: string) =>
  waitFor(async () => (await client.session.get(id)).status === status, `session ${id} is ${status}`);

describe("a budget", () => {
  test("that is used up lets the session wait in the middle of its work, and a raise lets it go on to its end", async () => {
    const { url } = await world.forge.createRepository("acme", "budget", { "README.md": "# Before\n" });
    const prompt = "write a.txt: a, then write b.txt: b, then write c.txt: c";
    await settings({ sessionBudgetUsd: 0.6 });
    const { id } = await client.session.create({ prompt, repositories: [url] });
    await untilStatus(id, "waiting");
    const waiting = await client.session.get(id);
    expect(waiting).toMatchObject({ budgetUsd: 0.6, waiting: { reason: "budget" } });
    expect(waiting.waiting?.text).toContain("the session's budget is used up");
    expect(waiting.spentUsd).toBeGreaterThan(0);
    expect(waiting.spentUsd).toBeLessThanOrEqual(0.6);
    const moved = (await eventsOf(id)).flatMap((event) => (event.type === "session.status" ? [event.data] : []));
    expect(moved.at(-1)).toMatchObject({ from: "running", to: "waiting" });
    expect(await world.forge.pullRequests("acme", "budget")).toEqual([]);

    await client.session.setBudget(id, { budgetUsd: 1_000 });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null, waiting: null });
    const patch = (await client.session.diff(id)).repositories[0]?.patch ?? "";
    for (const file of ["a.txt", "b.txt", "c.txt"]) expect(patch).toContain(file);
    expect(await world.forge.pullRequests("acme", "budget")).toHaveLength(1);
    await settings({ sessionBudgetUsd: null });
  });

  test("of the month stops every session, and what was spent is counted and shown", async () => {
    const { spentUsd } = await callApi(offstage.url, "/organization");
    expect(spentUsd).toBeGreaterThan(0.1);
    await settings({ monthlyBudgetUsd: spentUsd });
    const { id } = await client.session.create({ prompt: "say hello" });
    await untilStatus(id, "waiting");
    expect((await client.session.get(id)).waiting?.text).toContain("this month");
    await settings({ monthlyBudgetUsd: null });
    expect((await untilOver(client, id)).status).toBe("completed");
    const costs = (await eventsOf(id)).flatMap((event) => (event.type === "model.usage" ? [event.data.costUsd] : []));
    const session = await client.session.get(id);
    expect(costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0)).toBeCloseTo(session.spentUsd, 5);
  });

  test("can be that of automations' runs alone", async () => {
    await settings({ runBudgetUsd: 0 });
    await client.automation.create({ name: "Nightly", macro: "nightly", instructions: "say by automation" });
    const job = await client.automation.trigger("nightly", {});
    let sessionId: string | null = null;
    await waitFor(
      async () => {
        ({ sessionId } = await client.job.get(job.id));
        return sessionId !== null && (await client.session.get(sessionId)).status === "waiting";
      },
      "the run waits for its budget",
      30_000,
    );
    const { id } = await client.session.create({ prompt: "say by hand" });
    expect((await untilOver(client, id)).status).toBe("completed");
    await settings({ runBudgetUsd: null });
    expect((await untilOver(client, sessionId ?? "")).status).toBe("completed");
    // An automation's own can only be less.
    const { budgetUsd } = await callApi(offstage.url, "/automation/nightly/update", { budgetUsd: 0.001 });
    expect(budgetUsd).toBe(0.001);
    await settings({ runBudgetUsd: 1_000 });
    const again = await client.automation.trigger("nightly", {});
    await waitFor(
      async () => {
        ({ sessionId } = await client.job.get(again.id));
        return sessionId !== null && (await client.session.get(sessionId)).budgetUsd === 0.001;
      },
      "the run has the automation's own budget",
      30_000,
    );
    // No request costs as little: it waits, until its own budget is raised.
    await untilStatus(sessionId ?? "", "waiting");
    await client.session.setBudget(sessionId ?? "", { budgetUsd: 1_000 });
    expect((await untilOver(client, sessionId ?? "")).status).toBe("completed");
    await settings({ runBudgetUsd: null });
  });
});

describe("a list of models", () => {
  test("keeps every other model from being asked, by the server's list and by the organization's", async () => {
    const before = world.model.requests.length;
    const outside = await client.session.create({ prompt: "say x", agent: "basic:other-model" });
    expect(await untilOver(client, outside.id)).toMatchObject({
      status: "failed",
      failure: { code: "model_error", reason: expect.stringContaining("other-model is not allowed") as string },
    });
    await settings({ models: ["scripted-large"] });
    const narrowed = await client.session.create({ prompt: "say x" });
    expect(await untilOver(client, narrowed.id)).toMatchObject({ status: "failed", failure: { code: "model_error" } });
    expect(world.model.requests.length).toBe(before);
    await settings({ models: null });
  });

  test("with a budget and without a price lets nothing be spent that can't be counted", async () => {
    await settings({ sessionBudgetUsd: 5 });
    const { id } = await client.session.create({ prompt: "say x", agent: "basic:scripted-unpriced" });
    expect(await untilOver(client, id)).toMatchObject({
      status: "failed",
      failure: { reason: expect.stringContaining("has no price") as string },
    });
    await settings({ sessionBudgetUsd: null });
  });
});

test("hosts that an organization allows are reached by all of its sandboxes", async () => {
  const port = new URL(world.forge.url).port;
  const fetchForge = `shell curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:${port}/ --noproxy ''`;
  const codeOf = async (): Promise<string> => {
    const { id } = await client.session.create({ prompt: fetchForge });
    await untilOver(client, id);
    return JSON.stringify((await eventsOf(id)).filter((event) => event.type === "agent.tool"));
  };
  expect(await codeOf()).toContain("403");
  await settings({ egress: [`127.0.0.1:${port}`] });
  expect(await codeOf()).toContain("404");
  await settings({ egress: [] });
});

describe("a recorded session", () => {
  async function recorded(agent: string): Promise<{ id: string; patch: string }> {
    const name = `recorded-${agent.split(":")[0]}`.toLowerCase();
    const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
    const { id } = await client.session.create({
      prompt: "write a.txt: alpha, then shell cat a.txt README.md > both.txt",
      repositories: [url],
      agent,
    });
    expect((await untilOver(client, id)).status).toBe("completed");
    await client.session.message(id, { message: "write b.txt: beta" });
    expect((await untilOver(client, id)).status).toBe("completed");
    return { id, patch: (await client.session.diff(id)).repositories[0]?.patch ?? "" };
  }

  const replay = async (id: string) => {
    const events: NewEvent[] = [];
    const config = readConfig({ ...world.variables, ...overrides });
    const signal = AbortSignal.timeout(hangTimeoutMs);
    const result = await replayRecordedSession(config, id, { onEvent: (event) => void events.push(event), signal });
    return { ...result, events };
  };

  test.each(["basic:scripted", "opencode:scripted"])(
    "of %s replays offline to the same changes",
    async (agent) => {
      const { id } = await recorded(agent);
      const [asked, pullRequests] = [world.model.requests.length, await countPullRequests()];
      const { different, unused, events } = await replay(id);
      expect(different).toEqual([]);
      expect(unused).toBe(0);
      expect(events.filter((event) => event.type === "agent.tool" && event.data.status === "completed")).not.toEqual(
        [],
      );
      // No model was asked, nothing was pushed, and the session is as it was.
      expect(world.model.requests.length).toBe(asked);
      expect(await countPullRequests()).toBe(pullRequests);
      expect((await client.session.get(id)).status).toBe("completed");
    },
    300_000,
  );

  const countPullRequests = async (): Promise<number> => {
    const all = await Promise.all(
      ["recorded-basic", "recorded-opencode"].map((name) => world.forge.pullRequests("acme", name)),
    );
    return all.flat().length;
  };

  test("holds no key, and one that was not recorded says how to have it so", async () => {
    const { id } = await client.session.create({ prompt: "say recorded" });
    await untilOver(client, id);
    const file = await readFile(join(world.data, "recordings", `${id}.jsonl`), "utf8");
    expect(file).not.toContain(modelKey);
    await expect(replay(crypto.randomUUID())).rejects.toThrow(/was not found/u);
    const draft = await client.session.create({ prompt: "say nothing", queueRightAway: false });
    await expect(replay(draft.id)).rejects.toThrow(/was not recorded: start the server with OFFSTAGE_RECORD=true/u);
  });
});
