import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runProgram, useFolder } from "./run.ts";

describe("serve-tools.cjs", () => {
  const folder = useFolder();
  let gateway: Server;
  /** Requests that the gateway got. */
  let asked: string[];

  beforeEach(async () => {
    asked = [];
    gateway = createServer((request, response) => {
      void (async () => {
        const body = await text(request);
        asked.push([request.method, request.url, request.headers.authorization, body].join(" ").trim());
        if (request.headers.authorization !== "Bearer the-token") return response.writeHead(401).end("no such token");
        const answer = request.url === "/tools" ? { tools: [{ name: "read" }] } : { text: "7", isError: false };
        return response.end(JSON.stringify(answer));
      })();
    });
    await new Promise<void>((resolve) => gateway.listen(join(folder.path, "gateway.sock"), resolve));
  });
  afterEach(() => void gateway.close());

  /** Sends messages, each on a line. @returns the answers, by their ids */
  async function say(messages: readonly (object | string)[], token = "the-token") {
    const lines = messages.map((message) => (typeof message === "string" ? message : JSON.stringify(message)));
    const environment = { OFFSTAGE_TOOLS_SOCKET: join(folder.path, "gateway.sock"), OFFSTAGE_TOOLS_TOKEN: token };
    const run = { cwd: folder.path, environment, input: lines.map((line) => `${line}\n`).join("") };
    const { code, stdout, stderr } = await runProgram("worker/tools/serve-tools.cjs", run);
    expect([code, stderr]).toEqual([0, ""]);
    const answers = stdout.toString().trimEnd().split("\n");
    return new Map(answers.map((line) => JSON.parse(line) as { id: unknown }).map((answer) => [answer.id, answer]));
  }

  test("lists and calls the gateway's tools with the session's token", async () => {
    const params = { name: "read", arguments: { key: "count" } };
    const answers = await say([
      { id: 1, method: "initialize", params: { protocolVersion: "2025-06-18" } },
      { method: "notifications/initialized" },
      { id: 2, method: "tools/list" },
      { id: 3, method: "tools/call", params },
    ]);
    expect(new Set(answers.keys())).toEqual(new Set([1, 2, 3]));
    expect(answers.get(1)).toMatchObject({ jsonrpc: "2.0", result: { protocolVersion: "2025-06-18" } });
    expect(answers.get(2)).toMatchObject({ result: { tools: [{ name: "read" }] } });
    expect(answers.get(3)).toMatchObject({ result: { content: [{ type: "text", text: "7" }], isError: false } });
    expect(asked.toSorted()).toEqual([
      "GET /tools Bearer the-token",
      `POST /tools/call Bearer the-token ${JSON.stringify(params)}`,
    ]);
  });

  test("answers what it can't do with an error, and goes on", async () => {
    const answers = await say(["{", "[]", { id: 1, method: "prompts/list" }, { id: 2, method: "ping" }]);
    expect(answers.get(1)).toMatchObject({ error: { code: -32601 } });
    expect(answers.get(2)).toMatchObject({ result: {} });
    expect(answers.get(null)).toMatchObject({ error: { code: -32600 } });
  });

  test("tells what the gateway refuses", async () => {
    const answers = await say([{ id: 1, method: "tools/list" }], "another");
    expect(answers.get(1)).toMatchObject({ error: { message: "the gateway answered 401: no such token" } });
  });
});
