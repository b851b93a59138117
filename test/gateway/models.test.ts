import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { matchesModel } from "../../src/domain/agents/model.ts";
import { costOf, priceOf, priceOfAny } from "../../src/gateway/costs/prices.ts";
import { openGateway, type Gateway } from "../../src/gateway/gateway.ts";
import { admitAll, type Admit } from "../../src/gateway/models/admission.ts";
import { createRecorder, readRecording } from "../../src/gateway/models/recording.ts";
import { createReplay } from "../../src/gateway/models/replay.ts";
import { retryDelayMs } from "../../src/gateway/models/retry.ts";
import { waitFor } from "../wait-for.ts";

type Answer = (response: ServerResponse, body: string) => void;

let directory: string;
let upstream: Server;
let baseUrl: string;
/** What the model's server answers, in turn; the last again and again. */
let answers: Answer[] = [];
const seen: string[] = [];
const gateways: Gateway[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-models-"));
  upstream = createServer((request, response) => {
    void text(request).then((body) => {
      seen.push(body);
      const [answer] = answers.length > 1 ? answers.splice(0, 1) : answers;
      answer?.(response, body);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
});

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  seen.length = 0;
});

afterAll(async () => {
  upstream?.closeAllConnections();
  upstream?.close();
  await rm(directory, { recursive: true, force: true });
});

const models = () => ({ compatible: { baseUrl, apiKey: "real-key" } });

async function open(options: Partial<Parameters<typeof openGateway>[0]> = {}) {
  const gateway = await openGateway({
    directory,
    models: models(),
    egress: { open: false, rules: [] },
    onRefused: () => undefined,
    ...options,
  });
  gateways.push(gateway);
  return gateway;
}

interface Got {
  readonly status: number;
  readonly body: string;
  readonly headers: IncomingMessage["headers"];
}

function ask(gateway: Gateway, body: unknown, path = "chat/completions"): Promise<Got> {
  const token = gateway.modelsAt("http://x").compatible?.apiKey ?? "";
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        socketPath: gateway.socket,
        path: `/model/compatible/v1/${path}`,
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
      },
      (answer) => {
        text(answer).then(
          (got) => resolve({ status: answer.statusCode ?? 0, body: got, headers: answer.headers }),
          reject,
        );
      },
    );
    sent.once("error", reject);
    sent.end(typeof body === "string" ? body : JSON.stringify(body));
  });
}

const say =
  (status: number, body: string, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);

describe("what a provider calls worth trying again", () => {
  it.each([
    ["a rate limit with its time", say(429, "slow down", { "retry-after": "0.01" })],
    ["the same in milliseconds", say(429, "slow down", { "retry-after-ms": "5" })],
    ["overload", say(529, "overloaded")],
    ["a gateway's error", say(502, "bad gateway")],
    ["a status of a proxy's own", say(522, "connection timed out")],
    ["a connection that is cut", (response: ServerResponse) => void response.destroy()],
  ])("is tried again: %s", async (_, trouble) => {
    answers = [trouble, say(200, '{"ok":true}')];
    const gateway = await open();
    expect(await ask(gateway, { model: "m", messages: [] })).toMatchObject({ status: 200, body: '{"ok":true}' });
    expect(seen).toHaveLength(2);
    expect(seen[0]).toBe(seen[1]);
    expect(await gateway.traffic()).toMatchObject({ answered: 1, failed: 1, lastError: null });
  });

  it("is passed on after the third time", async () => {
    answers = [say(503, '{"error":{"message":"down"}}')];
    const gateway = await open();
    expect(await ask(gateway, { model: "m" })).toMatchObject({ status: 503, body: '{"error":{"message":"down"}}' });
    expect(seen).toHaveLength(3);
    expect(await gateway.traffic()).toMatchObject({ answered: 0, lastError: "down (HTTP 503)" });
  });

  it.each([
    ["what the request itself is to blame for", say(400, "bad")],
    ["a key that is wrong", say(401, "bad key")],
    ["what the server can't do", say(501, "not implemented")],
    ["what says that it should not be", say(500, "no", { "x-should-retry": "false" })],
    ["what asks for more patience than a harness has", say(429, "tomorrow", { "retry-after": "86400" })],
  ])("is not tried again: %s", async (_, trouble) => {
    answers = [trouble];
    await ask(await open(), { model: "m" });
    expect(seen).toHaveLength(1);
  });

  it("waits as long as it is asked to, as seconds or as a date, and else a little longer each time", () => {
    const headers = (name: string, value: string) => ({ statusCode: 429, headers: { [name]: value } });
    expect(retryDelayMs(headers("retry-after", "2"), 1)).toBe(2_000);
    const date = new Date(Date.now() + 5_000).toUTCString();
    expect(retryDelayMs(headers("retry-after", date), 1)).toBeGreaterThan(3_000);
    const [first, second] = [1, 2].map((attempt) => retryDelayMs({ statusCode: 500, headers: {} }, attempt) ?? 0);
    expect(second).toBeGreaterThan(first ?? 0);
  });

  it("is given up when the harness hangs up", async () => {
    answers = [say(429, "wait", { "retry-after": "30" })];
    const gateway = await open();
    const token = gateway.modelsAt("http://x").compatible?.apiKey ?? "";
    const sent = httpRequest({
      socketPath: gateway.socket,
      path: "/model/compatible/v1/chat/completions",
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
    });
    sent.on("error", () => undefined);
    sent.end('{"model":"m"}');
    await waitFor(() => seen.length === 1, "the request arrived");
    sent.destroy();
    await gateway.close();
    expect(seen).toHaveLength(1);
  });
});

const events = (...data: unknown[]): string => data.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("");

describe("an answer that began well", () => {
  const chunk = { choices: [{ delta: { content: "half of it" } }] };

  it.each([
    [
      "Anthropic's overload",
      events(
        { type: "message_start", message: { model: "m" } },
        { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
      ),
      "Overloaded (overloaded_error)",
      true,
    ],
    [
      "Anthropic's of a request",
      events({ type: "error", error: { type: "invalid_request_error", message: "too long" } }),
      "too long (invalid_request_error)",
      false,
    ],
    [
      "OpenAI's of its server",
      events(chunk, { error: { message: "The server had an error", type: "server_error", param: null, code: null } }),
      "The server had an error (server_error)",
      true,
    ],
    [
      "OpenAI's of the quota",
      events(chunk, { error: { message: "no money", type: "insufficient_quota", code: "insufficient_quota" } }),
      "no money (insufficient_quota, insufficient_quota)",
      false,
    ],
    [
      "a response that failed",
      events({ type: "response.failed", response: { model: "m", error: { code: "server_error", message: "broke" } } }),
      "broke (server_error)",
      true,
    ],
    [
      "an error event of responses",
      events({ type: "error", code: "rate_limit_exceeded", message: "slower", param: null, sequence_number: 3 }),
      "slower (rate_limit_exceeded)",
      true,
    ],
    [
      "Gemini's overload",
      events({ candidates: [] }, { error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } }),
      "The model is overloaded. (503, UNAVAILABLE)",
      true,
    ],
    [
      "Gemini's in a list",
      '[{"candidates":[]},{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]',
      "no (400, INVALID_ARGUMENT)",
      false,
    ],
  ])("and ends with an error is a failure: %s", async (_, body, lastError, lastErrorPasses) => {
    answers = [say(200, body)];
    const reported: unknown[] = [];
    const gateway = await open({ onRequest: (...request) => reported.push(request[2]) });
    expect(await ask(gateway, { model: "m" })).toMatchObject({ status: 200, body });
    expect(await gateway.traffic()).toMatchObject({ answered: 0, failed: 1, lastError, lastErrorPasses });
    expect(reported).toEqual(["failed"]);
  });

  it("and only speaks of errors is none", async () => {
    const said = {
      choices: [{ delta: { content: '{"error":{"type":"server_error"}}', error: { code: 500 } } }],
      error: null,
    };
    answers = [say(200, events(said, { type: "response.completed", response: { error: null } }))];
    const gateway = await open();
    await ask(gateway, { model: "m" });
    expect(await gateway.traffic()).toMatchObject({ answered: 1, failed: 0, lastError: null });
  });

  it("and breaks off is a failure that passes", async () => {
    answers = [
      (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(events(chunk), () => response.destroy());
      },
    ];
    const gateway = await open();
    await expect(ask(gateway, { model: "m" })).rejects.toThrow("aborted");
    expect(await gateway.traffic()).toMatchObject({
      answered: 0,
      failed: 1,
      unanswered: 0,
      lastError: expect.stringContaining("broke off") as string,
      lastErrorPasses: true,
    });
  });

  it("and whose client hangs up is no failure", async () => {
    const unended: ServerResponse[] = [];
    answers = [
      (response) => {
        unended.push(response);
        response.writeHead(200).write(events(chunk));
      },
    ];
    const gateway = await open();
    const token = gateway.modelsAt("http://x").compatible?.apiKey ?? "";
    const sent = httpRequest({
      socketPath: gateway.socket,
      path: "/model/compatible/v1/chat/completions",
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
    });
    sent.on("error", () => undefined);
    const begun = new Promise<void>((resolve) => {
      sent.once("response", (answer) => answer.on("error", () => undefined).once("data", () => resolve()));
    });
    sent.end('{"model":"m"}');
    await begun;
    expect(await gateway.traffic()).toMatchObject({ unanswered: 1 });
    sent.destroy();
    await waitFor(async () => (await gateway.traffic()).unanswered === 0, "no client waits for the answer any more");
    for (const response of unended) response.destroy();
    await gateway.close();
    expect(await gateway.traffic()).toMatchObject({ answered: 1, failed: 0, lastError: null });
  });
});

describe("a model", () => {
  it("that is not let in is not asked", async () => {
    answers = [say(200, "{}")];
    const asked: string[] = [];
    const admit: Admit = (request) => {
      asked.push(request.model);
      return request.model === "good"
        ? admitAll(request)
        : Promise.resolve({ status: 403, message: "not on the list" });
    };
    const gateway = await open({ admit });
    expect(await ask(gateway, { model: "good" })).toMatchObject({ status: 200 });
    const refused = await ask(gateway, { model: "evil" });
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([
      403,
      { error: { message: "Offstage: not on the list" } },
    ]);
    // A body that hides its model, or has none.
    for (const body of ["not json", '{"model":["good"]}', "{}", '{"model":"good","model":"evil"}', '{"Model":"good"}'])
      expect((await ask(gateway, body)).status).toBeGreaterThanOrEqual(400);
    expect(seen).toHaveLength(1);
    expect(asked).toEqual(["good", "evil"]);
  });

  it("is asked eight times at once by a session, and further requests wait for their turn", async () => {
    const waiting: ServerResponse[] = [];
    answers = [(response) => void waiting.push(response)];
    const gateway = await open();
    const got = Array.from({ length: 12 }, () => ask(gateway, { model: "m", messages: [] }));
    await waitFor(() => waiting.length === 8, "eight requests arrived");
    await pause(200);
    expect(seen).toHaveLength(8);
    for (let count = 0; count < 12; count += 1) {
      await waitFor(() => waiting[count] !== undefined, "another request arrived");
      waiting[count]?.end("{}");
    }
    expect((await Promise.all(got)).map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 200));
  });

  it("is asked for no more at once than the worker can hold", async () => {
    const enough = Promise.withResolvers<void>();
    answers = [(response) => void enough.promise.then(() => response.end("{}"))];
    const gateway = await open();
    const large = JSON.stringify({ model: "m", messages: [{ role: "user", content: "a".repeat(30 * 1024 * 1024) }] });
    const statuses: number[] = [];
    const got = Array.from({ length: 6 }, async () => void statuses.push((await ask(gateway, large)).status));
    // None is answered before, so that all that are taken are held at once.
    await waitFor(() => statuses.filter((status) => status === 429).length >= 2, "two are refused");
    enough.resolve();
    await Promise.all(got);
    expect(statuses).toContain(200);
    expect(await ask(gateway, large)).toMatchObject({ status: 200 });
  });

  it("that is asked is reported with its outcome, each attempt once", async () => {
    const reported: unknown[] = [];
    const gateway = await open({
      admit: (request) =>
        request.model === "evil" ? Promise.resolve({ status: 403, message: "no" }) : admitAll(request),
      onRequest: (...request) => reported.push(request),
    });
    answers = [say(529, "overloaded"), say(200, "{}")];
    await ask(gateway, { model: "good" });
    await ask(gateway, { model: "evil" });
    await ask(gateway, { model: "good", plugins: [] });
    answers = [say(400, "bad")];
    await ask(gateway, { model: "good" });
    expect(reported).toEqual([
      ["compatible", "good", "retried"],
      ["compatible", "good", "answered"],
      ["compatible", "evil", "refused"],
      ["compatible", null, "refused"],
      ["compatible", "good", "failed"],
    ]);
  });

  it.each([
    ["claude-*", "claude-sonnet-5-5", true],
    ["claude-*", "xclaude-a", false],
    ["gpt-5.6-sol", "gpt-5x6-sol", false],
    ["GPT-*", "gpt-5", true],
    ["*", "anything/at:all", true],
    ["a*c", "abbbc", true],
  ])("%s fits %s: %s", (pattern, model, fits) => {
    expect(matchesModel([pattern], model)).toBe(fits);
  });

  it.each([
    ["claude-sonnet-5-5", 2],
    ["claude-opus-5-5-20260901", 4],
    ["claude-opus-5-20260601", 5],
    ["anthropic/claude-haiku-4-5", 1],
    ["models/gemini-3.1-pro-preview", 2],
    ["gpt-5.6-sol", 5],
    ["gpt-5-mini", 0.25],
  ])("%s has its maker's price", (model, input) => {
    expect(priceOf(model, {})?.input).toBe(input);
  });

  it("has the operator's price first, and none if it is unknown", () => {
    expect(priceOf("claude-sonnet-5-5", { "claude-*": { input: 9, output: 9 } })).toEqual({ input: 9, output: 9 });
    expect(priceOf("scripted", {})).toBeNull();
  });

  it("is counted by what it was asked as, if its server calls it by a name without a price", () => {
    const own = { fast: { input: 1, output: 1 } };
    expect(priceOfAny(["vendor/some-model", "fast"], own)).toEqual(own.fast);
    expect(priceOfAny([null, "unknown"], own)).toBeNull();
  });

  it("costs what its tokens cost, each kind at its own price", () => {
    const usage = {
      model: "m",
      inputTokens: 1_000_000,
      outputTokens: 100_000,
      cacheReadTokens: 2_000_000,
      cacheWriteTokens: 10_000,
      reasoningTokens: 50_000,
    };
    expect(costOf(usage, { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 })).toBeCloseTo(3.425, 9);
    expect(costOf(usage, { input: 1, output: 0 })).toBeCloseTo(3.01, 9);
  });
});

describe("a recording", () => {
  const user = (content: string) => ({ role: "user", content });
  const record = async (file: string, requests: readonly unknown[]) => {
    const recorder = createRecorder(file, (value) => value.replaceAll("secret-in-prompt", "[secret]"));
    const gateway = await open({ recorder });
    const got: string[] = [];
    for (const request of requests) got.push((await ask(gateway, request)).body);
    await gateway.close();
    await recorder.settled();
    return got;
  };
  const replay = async (file: string) => {
    const recording = await readRecording(file);
    return open({ answers: createReplay(recording).gateway });
  };

  it("holds each request and its answer, without a key, for its owner alone", async () => {
    const file = join(directory, "held.jsonl");
    answers = [say(200, '{"n":1}')];
    await record(file, [{ model: "m", messages: [{ content: "secret-in-prompt" }] }]);
    const written = await readFile(file, "utf8");
    expect(written).not.toMatch(/real-key|offstage-session|secret-in-prompt/u);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readRecording(file)).toMatchObject([
      { provider: "compatible", method: "POST", path: "/v1/chat/completions", model: "m", status: 200 },
    ]);
  });

  it("gives the same answers again, to the byte and each once, and contacts no provider", async () => {
    const file = join(directory, "again.jsonl");
    answers = [say(200, "first"), say(500, "worse", { "x-should-retry": "false" }), say(200, "third\n\n\u00e9")];
    const requests = [1, 2, 3].map((count) => ({
      model: "m",
      messages: Array.from({ length: count }, () => user("x")),
    }));
    const before = await record(file, requests);
    seen.length = 0;
    const gateway = await replay(file);
    const after: string[] = [];
    for (const request of requests) after.push((await ask(gateway, request)).body);
    expect(after).toEqual(before);
    expect(seen).toEqual([]);
    const more = await ask(gateway, requests[0]);
    expect([more.status, more.body]).toEqual([404, expect.stringContaining("no further answer")]);
  });

  it("finds the answer by how far the conversation was, whatever order requests come in", async () => {
    const file = join(directory, "order.jsonl");
    answers = [say(200, "title"), say(200, "work")];
    const title = { model: "m", messages: [user("Make a title"), user("at 10:00")] };
    const work = {
      model: "m",
      messages: [user("Work"), user("at 10:00")],
      tools: [{ type: "function", function: { name: "shell" } }],
    };
    await record(file, [title, work]);
    const gateway = await replay(file);
    expect((await ask(gateway, { ...work, messages: [user("Work"), user("at 11:00")] })).body).toBe("work");
    expect((await ask(gateway, { ...title, messages: [user("Make a title"), user("at 11:00")] })).body).toBe("title");
  });
});
