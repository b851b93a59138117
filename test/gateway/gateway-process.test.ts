import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ModelUsage } from "../../src/gateway/costs/usage.ts";
import type { Gateway } from "../../src/gateway/gateway.ts";
import type { Admit } from "../../src/gateway/models/admission.ts";
import type { GatewayTask, RequestCount } from "../../src/gateway/process/messages.ts";
import { createGatewayProcesses, type GatewayLostError } from "../../src/gateway/process/process.ts";
import { waitFor } from "../wait-for.ts";
import { gatewayPids } from "./gateway-pids.ts";

let directory: string;
let model: Server;
/** Answers of the model that are not given yet. */
const waiting: ServerResponse[] = [];
const opened: Gateway[] = [];
let lost: GatewayLostError[];
let counts: RequestCount[];
let refused: string[];
let settled: (ModelUsage | null)[];
let unrecorded: string[];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-gateway-"));
  model = createServer((asked, answer) => {
    asked.resume();
    waiting.push(answer);
  });
  await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
});

beforeEach(() => {
  [lost, counts, refused, settled, unrecorded] = [[], [], [], [], []];
});

afterEach(async () => {
  for (const answer of waiting.splice(0)) answer.destroy();
  await Promise.all(opened.splice(0).map((gateway) => gateway.close()));
});

afterAll(async () => {
  model?.closeAllConnections();
  model?.close();
  await rm(directory, { recursive: true, force: true });
});

const admitAndKeep: Admit = () =>
  Promise.resolve({ outputLimit: null, settle: (usage: ModelUsage | null) => void settled.push(usage) });

const taskWith = (changes: Partial<GatewayTask> = {}): GatewayTask => ({
  directory,
  models: { anthropic: { apiKey: "the-key", baseUrl: `http://127.0.0.1:${(model.address() as AddressInfo).port}` } },
  egress: { open: false, rules: [] },
  permits: [],
  registries: [],
  authorities: [],
  labels: { prices: {}, models: ["claude-haiku-4-5"] },
  recording: null,
  ...changes,
});

async function open(
  task: Partial<GatewayTask> = {},
  { admit = admitAndKeep, processes = createGatewayProcesses() } = {},
): Promise<Gateway> {
  const gateway = await processes.open(taskWith(task), {
    admit,
    onRequests: (reported) => void counts.push(...reported),
    onRefused: ({ host }) => void refused.push(host),
    onLost: (error) => void lost.push(error),
    onUnrecorded: (problem) => void unrecorded.push(problem),
  });
  opened.push(gateway);
  return gateway;
}

/** @returns the answer's status and text; status 0 if there was none */
function ask(gateway: Gateway, path: string, body: object | null = null): Promise<{ status: number; text: string }> {
  const token = gateway.modelsAt("http://x").anthropic?.apiKey ?? "";
  return new Promise((resolve) => {
    const sent = request({
      socketPath: gateway.socket,
      path,
      method: body === null ? "GET" : "POST",
      headers: { "x-api-key": token, ...(body !== null && { "content-type": "application/json" }) },
    });
    sent.once("error", () => resolve({ status: 0, text: "" }));
    sent.once("response", (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      answer.once("close", () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    sent.end(body === null ? undefined : JSON.stringify(body));
  });
}

const question = { model: "claude-haiku-4-5", max_tokens: 10, messages: [{ role: "user", content: "Say it." }] };
const askModel = (gateway: Gateway) => ask(gateway, "/model/anthropic/v1/messages", question);
const answered = { usage: { input_tokens: 3, output_tokens: 4 } };
const nextAnswer = async (): Promise<ServerResponse> => {
  await waitFor(() => waiting.length > 0, "the model is asked");
  return waiting.shift() as ServerResponse;
};
const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z");
const pidOfLast = (): number => gatewayPids().at(-1) ?? 0;

describe("a gateway's process", () => {
  it("asks models, has each request admitted and settled, and reports all of it", async () => {
    const gateway = await open();
    const asked = askModel(gateway);
    (await nextAnswer()).writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answered));
    expect(await asked).toEqual({ status: 200, text: JSON.stringify(answered) });
    expect(settled).toMatchObject([{ inputTokens: 3, outputTokens: 4 }]);
    expect(await gateway.traffic()).toMatchObject({ answered: 1, failed: 0, lastError: null });
    await waitFor(() => counts.length > 0, "metrics are reported");
    expect(counts).toEqual([{ provider: "anthropic", model: "claude-haiku-4-5", outcome: "answered", count: 1 }]);
    expect(lost).toEqual([]);
  });

  it("reports the traffic by the server's own clock", async () => {
    const gateway = await open();
    const asked = askModel(gateway);
    const before = performance.now();
    (await nextAnswer()).end(JSON.stringify(answered));
    await asked;
    const { lastAnswer, lastActivity } = await gateway.traffic();
    for (const time of [lastAnswer, lastActivity]) {
      expect(time).toBeGreaterThan(before - 50);
      expect(time).toBeLessThan(performance.now() + 50);
    }
  });

  it("answers what was refused with the reason", async () => {
    const gateway = await open({}, { admit: () => Promise.resolve({ status: 402, message: "nothing is left" }) });
    const { status, text } = await askModel(gateway);
    expect(status).toBe(402);
    expect(text).toContain("nothing is left");
    expect(await gateway.traffic()).toMatchObject({ failed: 1, lastError: "nothing is left", lastErrorPasses: false });
  });

  it("refuses for the moment if it is unknown whether a budget covers it", async () => {
    const gateway = await open({}, { admit: () => Promise.reject(new Error("no database")) });
    expect(await askModel(gateway)).toMatchObject({
      status: 503,
      text: expect.stringContaining("no database") as string,
    });
    // A database that starts again is no fault of the session's: what fails for that is tried again.
    expect(await gateway.traffic()).toMatchObject({ answered: 0, failed: 1, lastErrorPasses: true });
  });

  it("reports to the admission that the client has gone", async () => {
    const aborted = Promise.withResolvers<void>();
    const began = Promise.withResolvers<void>();
    const admit: Admit = async ({ signal }) => {
      signal.addEventListener("abort", () => aborted.resolve(), { once: true });
      began.resolve();
      await aborted.promise;
      return admitAndKeep({} as never);
    };
    const gateway = await open({}, { admit });
    const sent = request({
      socketPath: gateway.socket,
      path: "/model/anthropic/v1/messages",
      method: "POST",
      headers: { "x-api-key": gateway.modelsAt("http://x").anthropic?.apiKey ?? "" },
    });
    sent.on("error", () => undefined);
    sent.end(JSON.stringify(question));
    await began.promise;
    sent.destroy();
    await aborted.promise;
    // What was admitted too late was not asked, and costs nothing.
    await waitFor(() => settled.length === 1, "the request is settled");
    expect(settled).toEqual([null]);
    expect(waiting).toEqual([]);
  });

  it("reports a refused host once, and fifty at most", async () => {
    const gateway = await open();
    for (let index = 0; index < 60; index += 1) {
      expect((await ask(gateway, `http://host-${index}.test/`)).status).toBe(403);
      expect((await ask(gateway, `http://host-${index}.test/again`)).status).toBe(403);
    }
    await gateway.close();
    expect(refused).toEqual(Array.from({ length: 50 }, (_, index) => `host-${index}.test`));
  });

  it("names models in metrics by few names, whatever an agent asks for", async () => {
    const gateway = await open({}, { admit: () => Promise.resolve({ status: 403, message: "not allowed" }) });
    for (let index = 0; index < 5; index += 1)
      await ask(gateway, "/model/anthropic/v1/messages", { ...question, model: `odd-${index}` });
    await gateway.close();
    expect(new Set(counts.map(({ model: name, outcome }) => `${name} ${outcome}`))).toEqual(new Set(["other refused"]));
    expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(5);
  });

  it("records with secrets masked, and has written all of it when it is closed", async () => {
    const file = join(directory, "recordings", "one.jsonl");
    const gateway = await open({ recording: { file, secrets: ["hunter2-hunter2"] } });
    const asked = ask(gateway, "/model/anthropic/v1/messages", {
      ...question,
      messages: [{ role: "user", content: "It is hunter2-hunter2." }],
    });
    (await nextAnswer()).end(JSON.stringify(answered));
    await asked;
    await gateway.close();
    const line = await readFile(file, "utf8");
    expect(line).toContain("It is [secret].");
    expect(line).not.toContain("hunter2");
    expect(unrecorded).toEqual([]);
  });

  it("tells that a recording could not be written, and serves all the same", async () => {
    await writeFile(join(directory, "a-file"), "");
    const gateway = await open({ recording: { file: join(directory, "a-file", "one.jsonl"), secrets: [] } });
    const asked = askModel(gateway);
    (await nextAnswer()).end(JSON.stringify(answered));
    expect((await asked).status).toBe(200);
    await gateway.close();
    expect(unrecorded).toHaveLength(1);
  });

  it("has nothing of the server's environment but what names whom it trusts", async () => {
    process.env["OFFSTAGE_TEST_SECRET"] = "server's own";
    process.env["NODE_EXTRA_CA_CERTS"] = "/nowhere/ca.pem";
    try {
      await open();
      const environment = readFileSync(`/proc/${pidOfLast()}/environ`, "utf8");
      expect(environment).not.toContain("server's own");
      expect(environment).toContain("NODE_EXTRA_CA_CERTS=/nowhere/ca.pem");
    } finally {
      delete process.env["OFFSTAGE_TEST_SECRET"];
      delete process.env["NODE_EXTRA_CA_CERTS"];
    }
  });

  it("refuses a path that is too long for a socket, with the setting's name, and leaves no process", async () => {
    const before = gatewayPids();
    await expect(open({ directory: join(directory, "x".repeat(100)) })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining("OFFSTAGE_DATA") as string,
    });
    await waitFor(() => gatewayPids().every((pid) => before.includes(pid)), "no process is left");
    expect(lost).toEqual([]);
  });
});

describe("the end of a gateway's process", () => {
  it("by itself is reported, and open requests to models count as the most that they can cost", async () => {
    const gateway = await open();
    const pid = pidOfLast();
    const asked = askModel(gateway);
    await nextAnswer();
    process.kill(pid, "SIGKILL");
    await waitFor(() => lost.length === 1, "the loss is reported");
    expect(lost[0]?.message).toContain("SIGKILL");
    expect(settled).toMatchObject([{ outputTokens: 10 }]);
    expect((await asked).status).toBe(0);
    // It is safe to go on with what is left of it.
    expect(await gateway.traffic()).toMatchObject({ answered: 0 });
    await gateway.close();
    expect(existsSync(gateway.socket)).toBe(false);
  });

  it("comes when it is closed, and is not reported", async () => {
    const gateway = await open();
    const pid = pidOfLast();
    expect((await ask(gateway, "/")).status).toBe(404);
    await gateway.close();
    expect(existsSync(gateway.socket)).toBe(false);
    await waitFor(() => !isAlive(pid), "the process is gone");
    expect(lost).toEqual([]);
  });

  it("waits for answers that are on their way after it was closed, and counts them", async () => {
    const gateway = await open();
    const pid = pidOfLast();
    const asked = askModel(gateway);
    const answer = await nextAnswer();
    await gateway.close();
    expect((await asked).status).toBe(0);
    expect(settled).toEqual([]);
    expect(isAlive(pid)).toBe(true);
    answer.end(JSON.stringify(answered));
    await waitFor(() => settled.length === 1, "the request is settled");
    expect(settled).toMatchObject([{ inputTokens: 3, outputTokens: 4 }]);
    await waitFor(() => !isAlive(pid), "the process is gone");
  });

  it("is not waited for if it does not answer any more", async () => {
    const gateway = await open({}, { processes: createGatewayProcesses({ closeLimitMs: 200, answerLimitMs: 200 }) });
    const pid = pidOfLast();
    process.kill(pid, "SIGSTOP");
    expect(await gateway.traffic()).toMatchObject({ answered: 0, failed: 0 });
    await gateway.close();
    await waitFor(() => !isAlive(pid), "the process is gone");
    expect(existsSync(gateway.socket)).toBe(false);
  });

  it("does not wait for ever after it was closed, whatever keeps it", async () => {
    const gateway = await open({}, { processes: createGatewayProcesses({ lingerLimitMs: 200 }) });
    const pid = pidOfLast();
    const asked = askModel(gateway);
    await nextAnswer();
    await gateway.close();
    expect((await asked).status).toBe(0);
    process.kill(pid, "SIGSTOP");
    await waitFor(() => !isAlive(pid), "the process is gone");
    await waitFor(() => settled.length === 1, "its request is settled");
    expect(settled).toMatchObject([{ outputTokens: 10 }]);
    expect(lost).toEqual([]);
  });

  it("comes at once for the oldest if too many wait for answers", async () => {
    const processes = createGatewayProcesses({ mostLingering: 2 });
    const pids: number[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const before = gatewayPids();
      const gateway = await open({}, { processes });
      pids.push(gatewayPids().find((pid) => !before.includes(pid)) ?? 0);
      void askModel(gateway);
      await waitFor(() => waiting.length === turn + 1, "the model is asked");
      await gateway.close();
    }
    await waitFor(() => !isAlive(pids[0] ?? 0), "the oldest is gone");
    expect(pids.map(isAlive)).toEqual([false, true, true]);
    await waitFor(() => settled.length === 1, "its request is settled");
    expect(settled).toMatchObject([{ outputTokens: 10 }]);
    expect(lost).toEqual([]);
  });

  it("does not come by a signal that is meant for the server", async () => {
    const gateway = await open();
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(pidOfLast(), signal);
    expect((await ask(gateway, "/")).status).toBe(404);
    expect(lost).toEqual([]);
  });

  it("comes with the server's, however that ends", async () => {
    const program = `
      import { createGatewayProcesses } from ${JSON.stringify(join(import.meta.dirname, "../../src/gateway/process/process.ts"))};
      const processes = createGatewayProcesses();
      await processes.open(${JSON.stringify(taskWith())}, {});
      processes.prepare();
      console.log("open");
      setInterval(() => undefined, 1_000);`;
    const server = spawn(process.execPath, ["--input-type=module", "--eval", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(server.stdout, "data");
    const pids = gatewayPids(server.pid);
    expect(pids).toHaveLength(2);
    server.kill("SIGKILL");
    await once(server, "exit");
    await waitFor(() => !pids.some(isAlive), "both processes are gone");
  });
});

describe("a process that is started ahead", () => {
  it("is taken by the next gateway, and one alone is kept", async () => {
    const processes = createGatewayProcesses();
    processes.prepare();
    processes.prepare();
    await waitFor(() => gatewayPids().length === 1, "one process has started");
    const [pid] = gatewayPids();
    await open({}, { processes });
    expect(gatewayPids()).toEqual([pid]);
  });

  it("is ended before the server if memory runs out", async () => {
    await open();
    expect(Number(readFileSync(`/proc/${pidOfLast()}/oom_score_adj`, "utf8"))).toBe(500);
    expect(Number(readFileSync("/proc/self/oom_score_adj", "utf8"))).toBeLessThan(500);
  });

  it("is not missed if it ended while it waited", async () => {
    const processes = createGatewayProcesses();
    processes.prepare();
    await waitFor(() => gatewayPids().length === 1, "one process has started");
    process.kill(pidOfLast(), "SIGKILL");
    const gateway = await open({}, { processes });
    expect((await ask(gateway, "/")).status).toBe(404);
    expect(lost).toEqual([]);
  });

  it("is not missed if it does not open", async () => {
    const processes = createGatewayProcesses({ openLimitMs: 10_000 });
    processes.prepare();
    await waitFor(() => gatewayPids().length === 1, "one process has started");
    const pid = pidOfLast();
    process.kill(pid, "SIGSTOP");
    const gateway = await open({}, { processes });
    expect((await ask(gateway, "/")).status).toBe(404);
    await waitFor(() => !isAlive(pid), "the process is gone");
    expect(lost).toEqual([]);
  });
});

it("gateways and turns begin on a server that its operator put far behind, too", async () => {
  const at = (file: string): string => JSON.stringify(join(import.meta.dirname, "../../src", file));
  const program = `
    process.setgroups([]);
    process.setuid(65534);
    const { createGatewayProcesses } = await import(${at("gateway/process/process.ts")});
    createGatewayProcesses().prepare();
    const { Worker } = await import("node:worker_threads");
    // Its own code answers, once it has begun.
    const thread = new Worker(${at("agents/acp/turn-thread.ts")});
    thread.once("error", ({ code }) => console.log("failed", code));
    thread.once("exit", () => process.exit());
    thread.once("message", () => {
      console.log("begun");
      process.exit();
    });
    thread.postMessage({ kind: "ping" });`;
  const server = spawn("nice", ["-n", "15", process.execPath, "--eval", `(async () => {${program}})()`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  server.stdout.setEncoding("utf8").on("data", (piece: string) => (said += piece));
  await once(server, "close");
  expect(said).toContain("begun");
  expect(said).not.toContain("ERR_SYSTEM_ERROR");
});
