import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runTurn, startHarness } from "../../src/agents/acp/acp.ts";
import type { TurnRequest } from "../../src/agents/harness.ts";
import { createProviders } from "../../src/agents/providers.ts";
import { createMask } from "../../src/domain/masking/mask.ts";
import type { NewEvent } from "../../src/domain/sessions/event.ts";
import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { startModelServer, type ModelServer, type Script } from "../model/server.ts";
import { commandLines, uniqueMark } from "../sandboxes/sandbox-folders.ts";
import { waitFor } from "../wait-for.ts";

let folder: string;
const models: ModelServer[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-turn-"));
});

afterAll(async () => {
  for (const model of models) await model.close();
  await rm(folder, { recursive: true, force: true });
});

/** A turn of the basic agent, whose model says what the script says. */
async function turn(script: Script, overrides: Partial<TurnRequest> = {}) {
  const model = await startModelServer({ script });
  models.push(model);
  const compatible = { baseUrl: `${model.url}/v1`, model: "scripted" };
  const provider = createProviders({ models: { compatible }, custom: [] }).find(({ id }) => id === "basic");
  if (provider === undefined) throw new Error("there is no basic agent");
  const events: NewEvent[] = [];
  const sandbox = createUnsandboxed();
  const request: TurnRequest = {
    provider,
    model: null,
    launch: provider.launch({ model: null, reasoning: null, home: folder, models: { compatible } }),
    start: ({ command, arguments: parameters, environment, readOnly }, signal) =>
      sandbox.start({
        command,
        arguments: parameters,
        environment: { HOME: folder, ...environment },
        workspace: folder,
        home: folder,
        readOnly,
        signal,
      }),
    workingDirectory: folder,
    resume: null,
    message: "go",
    transcript: null,
    emit: (event) => Promise.resolve(void events.push(event)),
    onSession: () => Promise.resolve(),
    stallMs: 60_000,
    limitMs: 60_000,
    permission: "allow",
    mask: createMask([]),
    signal: AbortSignal.timeout(hangTimeoutMs),
    ...overrides,
  };
  return { result: runTurn(request), events };
}

/** What a gateway reports of a harness that asks no model. */
const silence = {
  lastActivity: 0,
  lastAnswer: 0,
  answered: 0,
  lastError: null,
  lastErrorPasses: false,
  retryAfterMs: null,
  unanswered: 0,
};

const sleepers = (mark: string): string[] => commandLines().filter((line) => line.includes(`sleep ${mark}`));

describe("a turn", () => {
  it("tells what the agent did, said and used, in order", async () => {
    const { result, events } = await turn([{ shell: "echo hello" }, { say: "It says hello." }]);
    expect(await result).toEqual({ stopReason: "end_turn", finalMessage: "It says hello." });
    const types = events.map(({ type }) => type);
    expect(types[0]).toBe("agent.started");
    expect(types.at(-1)).toBe("agent.turn");
    expect(types.indexOf("agent.tool")).toBeLessThan(types.indexOf("agent.message"));
    expect(events).toContainEqual(
      expect.objectContaining({
        type: "agent.usage",
        data: expect.objectContaining({ totalTokens: expect.any(Number) as number }) as object,
      }),
    );
  });

  it("that takes all of its time ends, with the command that it runs", async () => {
    const mark = uniqueMark();
    const { result } = await turn([{ shell: `sleep ${mark}` }], { limitMs: 2_000 });
    await expect(result).rejects.toMatchObject({ code: "turn_too_long", retryable: true });
    expect(sleepers(mark)).toEqual([]);
  });

  it("without any sign of life ends as stalled", async () => {
    const { result } = await turn([{ hang: true }], { stallMs: 1_000 });
    await expect(result).rejects.toMatchObject({ code: "agent_stalled", passing: true });
  });

  it("is not stalled while a command runs", async () => {
    const [begun, go] = [join(folder, "begun"), join(folder, "go")];
    let looks = 0;
    const traffic = () => {
      looks += 1;
      return Promise.resolve(silence);
    };
    const shell = `: > ${begun}; until [ -e ${go} ]; do sleep 0.1; done`;
    const { result, events } = await turn([{ shell }, { say: "Slept." }], { traffic });
    const isTold = () => events.some(({ type, data }) => type === "agent.tool" && data.status === "in_progress");
    await waitFor(() => existsSync(begun) && isTold(), "the command runs, and the harness has told of it");
    // Nothing else was heard for longer than a harness may be silent.
    const { now } = performance;
    vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + 120_000);
    try {
      const before = looks;
      await waitFor(() => looks > before + 1, "it was looked whether the harness has stalled");
      writeFileSync(go, "");
      expect(await result).toMatchObject({ finalMessage: "Slept." });
    } finally {
      vi.restoreAllMocks();
    }
  });

  it("whose program is not there ends as crashed, not as a hang", async () => {
    const { result } = await turn([], {
      launch: { command: "no-such-program", arguments: [], environment: {}, readOnly: [], files: {}, model: null },
    });
    await expect(result).rejects.toMatchObject({ code: "agent_crashed" });
  });

  it("whose program says something else than the protocol ends as crashed", async () => {
    const { result } = await turn([], { launch: shellProgram("echo this is no protocol; sleep 1; exit 3") });
    await expect(result).rejects.toMatchObject({
      code: "agent_crashed",
      message: expect.stringContaining("exit 3") as string,
    });
  });

  it("whose program writes a line without end is ended before that fills the memory", async () => {
    const mark = uniqueMark();
    const { result } = await turn([], { launch: shellProgram(`head -c 50000000 /dev/zero; sleep ${mark}`) });
    await expect(result).rejects.toMatchObject({
      code: "agent_crashed",
      message: expect.stringContaining("a line of more than 4 MiB") as string,
    });
    expect(sleepers(mark)).toEqual([]);
  });

  it("whose sandbox is lost waits for it", async () => {
    const sandbox = createUnsandboxed();
    const { result } = await turn([], {
      launch: shellProgram("sleep 1; exit 127"),
      start: ({ command, arguments: parameters }, signal) => ({
        ...sandbox.start({
          command,
          arguments: parameters,
          environment: {},
          workspace: folder,
          home: folder,
          readOnly: [],
          signal,
        }),
        fault: () => ({ why: "the engine went away", passes: true }),
      }),
    });
    await expect(result).rejects.toMatchObject({ code: "sandbox_unavailable", passing: true });
  });

  it("that can't be stored fails with the store's error", async () => {
    const lost = new Error("the lease was lost");
    const { result } = await turn([{ say: "hello" }], { emit: () => Promise.reject(lost) });
    await expect(result).rejects.toBe(lost);
  });
});

/** A harness that opens the session `s`. @param asked what it does when it is asked something; `say` sends a message */
function harness(asked: string, cancelled = ""): TurnRequest["launch"] {
  const program = `
    const { writeSync, writeFileSync } = require("node:fs");
    const say = (message) => {
      const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
      for (let at = 0; at < bytes.length;) {
        try { at += writeSync(1, bytes, at); } catch (error) { if (error.code !== "EAGAIN") throw error; }
      }
    };
    let rest = "";
    process.stdin.on("data", (chunk) => {
      const lines = (rest + chunk).split("\\n");
      rest = lines.pop();
      for (const line of lines) {
        const { id, method, params } = JSON.parse(line);
        if (method === "initialize") say({ id, result: { protocolVersion: 1 } });
        if (method === "session/new") say({ id, result: { sessionId: "s" } });
        if (method === "session/prompt") { ${asked} }
        if (method === "session/cancel") { ${cancelled} }
      }
    });`;
  return {
    command: process.execPath,
    arguments: ["-e", program],
    environment: {},
    readOnly: [],
    files: {},
    model: null,
  };
}

it("a harness gets the cancel of the session that it opened in this very turn", async () => {
  const cancelledFile = join(folder, "cancelled");
  const ended = new AbortController();
  const cancelled = `writeFileSync(${JSON.stringify(cancelledFile)}, params.sessionId);`;
  const { result, events } = await turn([], { launch: harness("", cancelled), signal: ended.signal });
  await waitFor(() => events.length > 0, "the turn began");
  ended.abort(new Error("cancelled"));
  await expect(result).rejects.toThrow("cancelled");
  expect(readFileSync(cancelledFile, "utf8")).toBe("s");
});

it("a harness that prints faster than events can be stored is not read until they are", async () => {
  const count = 30_000;
  const progress = join(folder, "said");
  const program = harness(`
    for (let said = 1; said <= ${count}; said += 1) {
      const update = { sessionUpdate: "tool_call", toolCallId: String(said), title: "x".repeat(200) };
      say({ method: "session/update", params: { sessionId: "s", update } });
      if (said % 100 === 0) writeFileSync(${JSON.stringify(progress)}, String(said));
    }`);
  const ended = new AbortController();
  const { result } = await turn([], {
    launch: program,
    emit: () => pause(20),
    signal: ended.signal,
  });
  await waitFor(() => existsSync(progress), "the harness began to say something");
  await pause(2_000);
  const said = Number(readFileSync(progress, "utf8"));
  ended.abort(new Error("heard enough"));
  await expect(result).rejects.toThrow("heard enough");
  expect(said).toBeLessThan(count / 3);
});

it("ends a turn whose model answers nothing but errors, however busily it is asked again", async () => {
  const traffic = () =>
    Promise.resolve({
      lastActivity: performance.now(),
      lastAnswer: 0,
      answered: 1,
      lastError: "overloaded (HTTP 529)",
      lastErrorPasses: true,
      retryAfterMs: 7_000,
      unanswered: 0,
    });
  const { result } = await turn([{ hang: true }], { stallMs: 1_000, traffic });
  await expect(result).rejects.toMatchObject({
    code: "model_error",
    passing: true,
    retryAfterMs: 7_000,
    message: expect.stringContaining("overloaded") as string,
  });
});

it("ends a turn whose model has a request and says nothing, for a while", async () => {
  const traffic = () => Promise.resolve({ ...silence, unanswered: 1 });
  const { result } = await turn([{ hang: true }], { stallMs: 1_000, traffic });
  await expect(result).rejects.toMatchObject({ code: "model_error", passing: true });
});

/** What starts a shell script in the place of a harness. */
function shellProgram(script: string) {
  return { command: "sh", arguments: ["-c", script], environment: {}, readOnly: [], files: {}, model: null };
}

describe("a harness that is made ready before its session", () => {
  it.each([
    ["ends", "echo 'out of luck' >&2; exit 3", /exit 3|closed/u],
    ["is killed", "kill -9 $$", /SIGKILL|closed/u],
  ])("fails as crashed if it %s", async (_, program, reason) => {
    const sandbox = createUnsandboxed();
    const { command, arguments: parameters, environment } = shellProgram(program);
    const running = startHarness({
      launch: shellProgram(program),
      start: (_launch, signal) =>
        sandbox.start({
          command,
          arguments: parameters,
          environment: { HOME: folder, ...environment },
          workspace: folder,
          home: folder,
          readOnly: [],
          signal,
        }),
    });
    try {
      await expect(running.warmUp(folder)).rejects.toMatchObject({
        name: "SessionError",
        code: "agent_crashed",
        message: expect.stringMatching(reason) as string,
      });
    } finally {
      await running.stop();
    }
  });
});
