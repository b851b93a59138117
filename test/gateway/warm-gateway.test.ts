import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ModelUsage } from "../../src/gateway/costs/usage.ts";
import type { GatewayTask, RequestCount } from "../../src/gateway/process/messages.ts";
import {
  createGatewayProcesses,
  GatewayLostError,
  type GatewayServices,
  type WarmGateway,
} from "../../src/gateway/process/process.ts";
import { waitFor } from "../wait-for.ts";
import { gatewayPids } from "./gateway-pids.ts";

/** A gateway that waits for a session: what it answers before, and that it is the session's own afterwards. */
let directory: string;
let model: Server;
let asked: { path: string; authorization: string | undefined }[];
let gateway: WarmGateway;
let lost: GatewayLostError[];
let counts: RequestCount[];
let refused: string[];
let settled: (ModelUsage | null)[];

const answered = { id: "x", choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } };

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-warm-gateway-"));
  model = createServer((incoming, answer) => {
    asked.push({ path: incoming.url ?? "", authorization: incoming.headers.authorization });
    incoming.resume();
    incoming.once("end", () => answer.setHeader("content-type", "application/json").end(JSON.stringify(answered)));
  });
  await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
});

beforeEach(async () => {
  [asked, lost, counts, refused, settled] = [[], [], [], [], []];
  gateway = await createGatewayProcesses().openWarm(task, (error) => lost.push(error));
});

afterEach(async () => {
  connections.destroy();
  await gateway.close();
});

afterAll(async () => {
  model?.close();
  await rm(directory, { recursive: true, force: true });
});

const providers = ["openai", "anthropic", "google", "compatible"] as const;
const task: GatewayTask = {
  get directory() {
    return directory;
  },
  get models() {
    const { port } = model.address() as AddressInfo;
    return Object.fromEntries(
      providers.map((provider) => [provider, { apiKey: "the-key", baseUrl: `http://127.0.0.1:${port}` }]),
    );
  },
  egress: { open: false, rules: [] },
  registries: [],
  authorities: [],
  permits: [],
  labels: { prices: {}, models: [] },
  recording: null,
};

const services: GatewayServices = {
  admit: () => Promise.resolve({ outputLimit: null, settle: (usage) => void settled.push(usage) }),
  callTool: (name) => Promise.resolve({ text: `did ${name}`, isError: false }),
  onRequests: (more) => void counts.push(...more),
  onRefused: ({ host }) => void refused.push(host),
  onLost: (error) => void lost.push(error),
  onUnrecorded: () => undefined,
};

/** A program in the sandbox keeps its connection. */
const connections = new Agent({ keepAlive: true, maxSockets: 1 });

/** Asks as a program in the sandbox does. */
function ask(
  path: string,
  { body, token = gateway.token }: { readonly body?: object; readonly token?: string | undefined } = {},
): Promise<{ readonly status: number; readonly text: string; readonly type: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        agent: connections,
        socketPath: gateway.socket,
        path,
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.once("end", () =>
          resolve({ status: answer.statusCode ?? 0, text, type: answer.headers["content-type"] ?? "" }),
        );
      },
    );
    sent.once("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const messages = [{ role: "user", content: "hello" }];
const chat = { model: "m", messages };

describe("before there is a session", () => {
  test.each([
    ["Chat Completions", "/model/openai/v1/chat/completions", chat, /"content":"Ready\."/u],
    ["Chat Completions of a compatible server", "/model/compatible/v1/chat/completions", chat, /"content":"Ready\."/u],
    ["Responses", "/model/openai/v1/responses", { model: "m", input: "hello" }, /"text":"Ready\."/u],
    ["Messages", "/model/anthropic/v1/messages", { ...chat, max_tokens: 5 }, /"text":"Ready\."/u],
    ["Messages' tokens", "/model/anthropic/v1/messages/count_tokens", chat, /"input_tokens":1/u],
    [
      "Gemini",
      "/model/google/v1beta/models/m:generateContent",
      { contents: [{ role: "user", parts: [{ text: "hello" }] }] },
      /"text":"Ready\."/u,
    ],
  ])("it answers %s by itself, whole", async (_, path, body, expected) => {
    const { status, text, type } = await ask(path, { body });
    expect([status, type]).toEqual([200, "application/json"]);
    expect(text).toMatch(expected);
    expect(asked).toEqual([]);
  });

  test.each([
    [
      "Chat Completions",
      "/model/openai/v1/chat/completions",
      { ...chat, stream: true },
      /^data: .*Ready.*\n\n[^]*data: \[DONE\]\n\n$/u,
    ],
    [
      "Responses",
      "/model/openai/v1/responses",
      { model: "m", input: "hello", stream: true },
      /^event: response\.created\n[^]*event: response\.completed\ndata: .*Ready/u,
    ],
    [
      "Messages",
      "/model/anthropic/v1/messages",
      { ...chat, max_tokens: 5, stream: true },
      /^event: message_start\n[^]*event: message_stop\n/u,
    ],
    [
      "Gemini",
      "/model/google/v1beta/models/m:streamGenerateContent?alt=sse",
      { contents: [{ role: "user", parts: [{ text: "hello" }] }] },
      /^data: .*Ready.*STOP/u,
    ],
  ])("it answers %s by itself, as a stream", async (_, path, body, expected) => {
    const { status, text, type } = await ask(path, { body });
    expect([status, type]).toEqual([200, "text/event-stream"]);
    expect(text).toMatch(expected);
    expect(asked).toEqual([]);
  });

  test("it lets nothing through, whatever a session may reach, and answers no other token", async () => {
    const { port } = model.address() as AddressInfo;
    expect(await ask(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 403 });
    expect(await ask("/model/openai/v1/embeddings", { body: { model: "m", input: "x" } })).toMatchObject({
      status: 404,
    });
    expect(await ask("/tools/call", { body: { name: "write_state", arguments: {} } })).toMatchObject({
      text: expect.stringContaining("there is no such tool"),
    });
    expect(await ask("/model/openai/v1/chat/completions", { body: chat, token: "another" })).toMatchObject({
      status: 401,
    });
    expect(asked).toEqual([]);
  });

  test("it lists no models, and contacts no provider for them", async () => {
    expect(JSON.parse((await ask("/model/openai/v1/models")).text)).toMatchObject({ data: [] });
    expect(asked).toEqual([]);
  });
});

describe("once it is a session's", () => {
  test("it forwards, counts and bills, with the same socket and token, also on a connection from before", async () => {
    await ask("/model/openai/v1/chat/completions", { body: chat });
    const { socket, token } = gateway;
    const own = await gateway.adopt(task, services);
    expect([own.socket, own.token]).toEqual([socket, token]);
    const traffic = await own.traffic();
    expect([traffic.answered, traffic.failed]).toEqual([0, 0]);
    const { text } = await ask("/model/openai/v1/chat/completions", { body: chat });
    expect(JSON.parse(text)).toEqual(answered);
    expect(asked).toEqual([{ path: "/v1/chat/completions", authorization: "Bearer the-key" }]);
    await waitFor(() => counts.length > 0, "the request is counted");
    // The answers before cost nothing, and are not among the requests.
    expect(counts).toMatchObject([{ provider: "openai", outcome: "answered", count: 1 }]);
    expect(settled).toHaveLength(1);
    expect(settled[0]).toMatchObject({ inputTokens: 5, outputTokens: 7 });
    expect((await own.traffic()).answered).toBe(1);
  });

  test("it reaches what the session may, and reports what it may not", async () => {
    const { port } = model.address() as AddressInfo;
    const place = `http://127.0.0.1:${port}/`;
    await ask(place);
    expect(refused).toEqual([]);
    await gateway.adopt(
      { ...task, egress: { open: false, rules: [{ host: "127.0.0.1", below: false, port, anyProtocol: false }] } },
      services,
    );
    expect(await ask(place)).toMatchObject({ status: 200 });
    expect(await ask("http://elsewhere.example/")).toMatchObject({ status: 403 });
    await waitFor(() => refused.length > 0, "the refusal is reported");
    expect(refused).toEqual(["elsewhere.example"]);
  });

  test("it has the session's tools", async () => {
    const tool = { name: "write_state", description: "", inputSchema: { type: "object" } };
    await gateway.adopt({ ...task, tools: [tool] }, services);
    const { text } = await ask("/tools/call", { body: { name: "write_state", arguments: {} } });
    expect(JSON.parse(text)).toEqual({ text: "did write_state", isError: false });
  });

  test("its end is the session's to hear of", async () => {
    const ended: GatewayLostError[] = [];
    await gateway.adopt(task, { ...services, onLost: (error) => ended.push(error) });
    for (const pid of gatewayPids()) process.kill(pid, "SIGKILL");
    await waitFor(() => ended.length > 0, "the session hears of it");
    expect([ended.length, lost.length]).toEqual([1, 0]);
  });
});

test("its holder learns of its end before there is a session, which can't get it then", async () => {
  for (const pid of gatewayPids()) process.kill(pid, "SIGKILL");
  await waitFor(() => lost.length > 0, "its end is reported");
  expect(lost[0]).toBeInstanceOf(GatewayLostError);
  await expect(gateway.adopt(task, services)).rejects.toThrow(GatewayLostError);
});

test("it leaves no process and no socket if no session comes", async () => {
  const { socket } = gateway;
  expect(existsSync(socket)).toBe(true);
  await gateway.close();
  await waitFor(() => gatewayPids().length === 0, "its process has ended");
  expect(existsSync(socket)).toBe(false);
  expect(lost).toEqual([]);
});
