import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startOfferedTools } from "../../src/agents/basic/offered-tools.ts";
import { openGateway, type LocalGateway } from "../../src/gateway/gateway.ts";
import type { CallTool } from "../../src/gateway/tools.ts";
import { toolServer } from "../../src/worker/tools/session-tools.ts";

const inputSchema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const echo: CallTool = (name, input) => {
  const { text: said } = input as { text: string };
  return Promise.resolve({ text: `${name}: ${said}`, isError: said === "refuse this" });
};

let folder: string;
let gateway: LocalGateway;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "o-"));
  gateway = await openGateway({
    directory: folder,
    models: {},
    egress: { open: false, rules: [] },
    onRefused: () => undefined,
    tools: { list: [{ name: "echo", description: "Says the same", inputSchema }], call: echo },
  });
});

afterEach(async () => {
  await gateway.close();
  await rm(folder, { recursive: true, force: true });
});

function ask(
  path: string,
  body: string | null,
  token = gateway.token,
): Promise<{ readonly status: number | undefined; readonly body: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; body: unknown }>();
  const headers = { authorization: `Bearer ${token}` };
  const request = httpRequest({ socketPath: gateway.socket, path, method: body === null ? "GET" : "POST", headers });
  request.on("error", reject);
  request.on("response", (response) => {
    text(response).then((answer) => resolve({ status: response.statusCode, body: JSON.parse(answer) }), reject);
  });
  request.end(body ?? undefined);
  return promise;
}

test("a harness lists and calls the tools by the Model Context Protocol, and gets a tool's refusal", async () => {
  const server = toolServer(gateway);
  const { tools, close } = await startOfferedTools([{ ...server, args: [...server.args], env: [...server.env] }]);
  try {
    expect(Object.keys(tools)).toEqual(["echo"]);
    const options = { toolCallId: "1", messages: [], context: {} };
    const call = (input: object): unknown => tools["echo"]?.execute?.(input as never, options as never);
    expect(await call({ text: "a\nb" })).toEqual({ text: "echo: a\nb" });
    await expect(call({ text: "refuse this" })).rejects.toThrow("echo: refuse this");
  } finally {
    await close();
  }
});

test("a line that is no request is refused, and the tools stay", async () => {
  const { command, args, env } = toolServer(gateway);
  const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  const server = spawn(command, args, { env: { ...process.env, ...variables }, stdio: ["pipe", "pipe", "inherit"] });
  try {
    const lines = ["null", "5", "[]", '"x"', "{", '{"jsonrpc":"2.0","id":1,"method":"ping"}'];
    server.stdin.end(`${lines.join("\n")}\n`);
    const answers = (await text(server.stdout)).trim().split("\n");
    const refusal = { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "Invalid Request" } };
    expect(answers.map((answer) => JSON.parse(answer) as unknown)).toEqual([
      ...Array.from({ length: 4 }, () => refusal),
      { jsonrpc: "2.0", id: null, error: { code: -32_700, message: "Parse error" } },
      { jsonrpc: "2.0", id: 1, result: {} },
    ]);
  } finally {
    server.kill();
  }
});

test("a client without the session's token can list or call nothing", async () => {
  expect((await ask("/tools", null)).status).toBe(200);
  expect((await ask("/tools", null, "another")).status).toBe(401);
  expect((await ask("/tools/call", '{"name":"echo","arguments":{"text":"x"}}', "another")).status).toBe(401);
});

test("what is no call, too large, or of an unknown tool is refused with words", async () => {
  const call = async (body: string): Promise<unknown> => (await ask("/tools/call", body)).body;
  expect(await call('{"name":"echo","arguments":{"text":"x"}}')).toEqual({ text: "echo: x", isError: false });
  const large = JSON.stringify({ name: "echo", arguments: { text: "x".repeat(70_000) } });
  for (const body of ["[]", "null", "{", '{"name":1}', large])
    expect(await call(body)).toMatchObject({ isError: true, text: expect.stringContaining("64 KiB") as string });
  expect(await call('{"name":"other"}')).toEqual({ text: "there is no such tool", isError: true });
  expect((await ask("/tools/other", "{}")).status).toBe(404);
});
