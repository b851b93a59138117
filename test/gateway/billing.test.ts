import { mkdtemp, rm } from "node:fs/promises";
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
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { openGateway, type Gateway } from "../../src/gateway/gateway.ts";
import type { Admit } from "../../src/gateway/models/admission.ts";
import { createLogger } from "../../src/observability.ts";
import { updateOrganization } from "../../src/store/people/organizations.ts";
import type { ClaimedSession } from "../../src/store/queue/claims.ts";
import { getSession } from "../../src/store/sessions/sessions.ts";
import { createModelBudget, type ModelBudget } from "../../src/worker/attempt/model-budget.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, requireClaim } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";

/**
 * A provider that keeps its own bill, and agents that try to pay less: what Offstage counts is never below 95 % of the bill,
 * and budgets hold.
 */
const price = { input: 10, output: 100 };
/** What is heard has a price of its own. */
const soundPrice = { ...price, sound: 50 };
/** And what is cached for an hour. */
const hourPrice = { ...price, cacheWrite: 12.5, cacheHour: 20 };
const prices = { "m*": price, "heard*": soundPrice, "kept*": hourPrice };

interface Work {
  readonly inputTokens: number;
  readonly outputTokens: number;
}
/** What the provider does with a request after it has billed it. */
type Conduct = (response: ServerResponse, work: Work, body: { readonly stream?: boolean }) => void;

let directory: string;
let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;
let provider: Server;
let address: string;
let conduct: Conduct;
/** How the provider reckons what a request takes, if not by its bytes and what the body says. */
let reckon: ((body: Record<string, unknown>) => Partial<Work>) | null = null;
let inputPrice = price.input;
/** Tokens that each answer takes, hidden reasoning included; never more than was allowed. */
let output = 2_000;
let bill = 0;
let billed = 0;
let underWay = 0;
let mostUnderWay = 0;
const gateways: Gateway[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-billing-"));
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  provider = createServer((request, response) => {
    void text(request).then((sent) => take(JSON.parse(sent) as Record<string, unknown>, sent.length, response));
  });
  await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
});

beforeEach(async () => {
  await database.pool.query("update session set status = 'cancelled' where status in ('queued', 'running', 'waiting')");
  organizationId = await addOrganization(database);
  [bill, billed, underWay, mostUnderWay, output] = [0, 0, 0, 0, 2_000];
  conduct = tell;
  reckon = null;
  inputPrice = price.input;
});

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});

afterAll(async () => {
  provider?.closeAllConnections();
  provider?.close();
  await testDatabase?.close();
  await rm(directory, { recursive: true, force: true });
});

/** Bills by the rules of a provider, even if no client reads the answer. */
function take(body: Record<string, unknown>, bytes: number, response: ServerResponse): void {
  const config = (body["generationConfig"] ?? {}) as Record<string, unknown>;
  const number = (...values: unknown[]): number | undefined => values.find((value) => typeof value === "number");
  const limit = number(
    body["max_tokens"],
    body["max_completion_tokens"],
    body["max_output_tokens"],
    config["maxOutputTokens"],
  );
  const answers = number(body["n"], body["best_of"], config["candidateCount"]) ?? 1;
  const work = {
    inputTokens: Math.ceil(bytes / 3),
    outputTokens: Math.min(output, limit ?? 128_000) * answers,
    ...reckon?.(body),
  };
  bill += (work.inputTokens * inputPrice + work.outputTokens * price.output) / 1e6;
  billed += 1;
  underWay += 1;
  mostUnderWay = Math.max(mostUnderWay, underWay);
  response.once("close", () => (underWay -= 1));
  conduct(response, work, body);
}

const usageOf = ({ inputTokens, outputTokens }: Work) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
});
const word = `data: ${JSON.stringify({ model: "m", choices: [{ delta: { content: "42" } }] })}\n\n`;

const tell: Conduct = (response, work, { stream }) => {
  if (stream === true)
    response.end(
      `${word}data: ${JSON.stringify({ model: "m", choices: [], usage: usageOf(work) })}\n\ndata: [DONE]\n\n`,
    );
  else response.end(JSON.stringify({ model: "m", usage: usageOf(work) }));
};

interface Opened {
  readonly gateway: Gateway;
  readonly session: ClaimedSession;
  readonly problems: string[];
  readonly budget: ModelBudget;
}

/** A session at work, with a gateway of its own, as a worker opens it. */
async function open(settings: Parameters<typeof updateOrganization>[2] = {}, lingerMs = 5_000): Promise<Opened> {
  await updateOrganization(database, organizationId, settings);
  await addSession(database, organizationId);
  const session = await requireClaim(database);
  const problems: string[] = [];
  const budget = createModelBudget(
    { session, logger: createLogger("error") },
    { allowedModels: ["*"], database, prices, models: {} },
    ({ message }) => problems.push(message),
    () => undefined,
  );
  const gateway = await openGateway({
    directory,
    models: {
      compatible: { baseUrl: `${address}/v1` },
      openai: { apiKey: "k", baseUrl: `${address}/v1` },
      google: { apiKey: "k", baseUrl: address },
    },
    egress: { open: false, rules: [] },
    onRefused: () => undefined,
    admit: budget.admit satisfies Admit,
    lingerMs,
  });
  gateways.push(gateway);
  return { gateway, session, problems, budget };
}

const chat = "/model/compatible/v1/chat/completions";
const messages = [{ role: "user", content: "think hard" }];

function send({ gateway }: Opened, body: object, path = chat) {
  const token = gateway.modelsAt("http://x").compatible?.apiKey ?? "";
  const sent = httpRequest({
    socketPath: gateway.socket,
    path,
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
  });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve);
    sent.once("error", reject);
  });
  answer.catch(() => undefined);
  sent.end(JSON.stringify(body));
  return { sent, answer };
}

async function ask(opened: Opened, body: object, path = chat): Promise<{ status: number; body: string }> {
  const answer = await send(opened, body, path).answer;
  const got = await text(answer).catch(() => "");
  return { status: answer.statusCode ?? 0, body: got };
}

async function spentBy({ session, budget }: Opened): Promise<number> {
  await budget.stored();
  return (await getSession(database, organizationId, session.sessionId))?.spentUsd ?? 0;
}

const held = async (): Promise<number> =>
  Number(
    (await database.pool.query("select count(*) as held from model_hold where organization_id = $1", [organizationId]))
      .rows[0]?.held,
  );

/** Waits until all is settled; then at least 95 % of the bill is counted. */
async function expectCounted(...all: Opened[]): Promise<void> {
  await waitFor(async () => (await held()) === 0, "every request is settled");
  let spent = 0;
  for (const opened of all) spent += await spentBy(opened);
  expect(bill).toBeGreaterThan(0);
  expect(spent).toBeGreaterThanOrEqual(bill * 0.95);
}

const budgets = { sessionBudgetUsd: 1_000, monthlyBudgetUsd: 1_000 };

describe("what is counted is never below 95 % of what the provider bills", () => {
  it("for answers that tell their usage, which are counted as they tell", async () => {
    const opened = await open(budgets);
    for (const stream of [true, false]) await ask(opened, { model: "m", stream, messages });
    await expectCounted(opened);
    expect(await spentBy(opened)).toBeCloseTo(bill, 5);
  });

  it("for hidden reasoning in streams that were not asked for their usage", async () => {
    const opened = await open(budgets);
    conduct = (response, work, body) => {
      const asked = (body as { stream_options?: { include_usage?: boolean } }).stream_options?.include_usage === true;
      if (asked) tell(response, work, body);
      else response.end(`${word}data: [DONE]\n\n`);
    };
    output = 100_000;
    for (let count = 0; count < 5; count += 1) await ask(opened, { model: "m", stream: true, messages });
    await expectCounted(opened);
    expect(await spentBy(opened)).toBeCloseTo(bill, 5);
  });

  it.each([
    ["leave it out of a stream", (response: ServerResponse) => void response.end(`${word}data: [DONE]\n\n`)],
    ["leave it out of a document", (response: ServerResponse) => void response.end('{"choices":[]}')],
    ["answer nothing", (response: ServerResponse) => void response.end()],
    [
      "tell counts that are none",
      (response: ServerResponse) => void response.end('{"usage":{"prompt_tokens":-1,"completion_tokens":"0"}}'),
    ],
    ["compress it", (response: ServerResponse) => void response.end(Buffer.from([0x1f, 0x8b, 8, 0]))],
    [
      "report only the question",
      (response: ServerResponse) =>
        void response.end('data: {"message":{"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'),
    ],
    ["break off in the middle", (response: ServerResponse) => response.write(word, () => void response.destroy())],
  ])("of servers that %s", async (_, answer) => {
    const opened = await open(budgets);
    conduct = (response) => void answer(response);
    output = 20_000;
    await ask(opened, { model: "m", stream: true, messages, max_tokens: 20_000 });
    await ask(opened, { model: "m", messages });
    await expectCounted(opened);
  });

  it("for 30 requests of 200 kB whose agent hangs up before the head of the answer", async () => {
    const opened = await open(budgets);
    conduct = (...asked) => void setTimeout(() => tell(...asked), 300);
    const large = [{ role: "user", content: "x".repeat(200_000) }];
    for (let count = 0; count < 30; count += 1) {
      const { sent } = send(opened, { model: "m", messages: large });
      const before = billed;
      await waitFor(() => billed > before, "the provider has the request");
      sent.destroy();
    }
    expect(billed).toBe(30);
    await expectCounted(opened);
  });

  it("for agents that hang up in the middle, and for answers that go on for ever after that", async () => {
    const opened = await open(budgets, 200);
    output = 50_000;
    conduct = (response) => void response.write(word);
    for (let count = 0; count < 3; count += 1) {
      const { sent, answer } = send(opened, { model: "m", stream: true, messages, max_tokens: 50_000 });
      await answer;
      sent.destroy();
    }
    await expectCounted(opened);
  });

  it("for a turn that ends while requests are under way", async () => {
    const opened = await open(budgets);
    conduct = (...asked) => void setTimeout(() => tell(...asked), 500);
    const sent = Array.from({ length: 4 }, () => send(opened, { model: "m", messages }));
    await waitFor(() => billed === 4, "the provider has the requests");
    await opened.gateway.close();
    await Promise.all(sent.map(({ answer }) => answer.catch(() => undefined)));
    await expectCounted(opened);
    expect(await spentBy(opened)).toBeCloseTo(bill, 5);
  });

  it.each([
    ["n", { n: 8, max_tokens: 3_000 }, chat],
    ["n without a limit", { n: 8 }, chat],
    ["best_of", { best_of: 8, prompt: "x", messages: undefined }, "/model/compatible/v1/completions"],
    [
      "candidateCount",
      {
        contents: [],
        generation_config: { candidate_count: 8, max_output_tokens: 3_000 },
        messages: undefined,
        model: "m",
      },
      "/model/google/v1beta/models/m:generateContent",
    ],
  ])("for several answers at once by %s, whose usage is hidden", async (_, more, path) => {
    const opened = await open(budgets);
    conduct = (response) => void response.end("{}");
    output = 3_000;
    expect((await ask(opened, { model: "m", messages, ...more }, path)).status).toBe(200);
    await expectCounted(opened);
  });

  it.each([
    ["a connection that is cut", (response: ServerResponse) => void response.destroy()],
    ["an error of what stands between", (response: ServerResponse) => void response.writeHead(502).end("bad gateway")],
    ["an error of its own", (response: ServerResponse) => void response.writeHead(500).end("oh")],
  ])("for attempts that were billed and are tried again after %s", async (_, fail) => {
    const opened = await open(budgets);
    conduct = (...asked) => (billed < 3 ? fail(asked[0]) : tell(...asked));
    expect((await ask(opened, { model: "m", messages, max_tokens: 2_000 })).status).toBe(200);
    expect(billed).toBe(3);
    await expectCounted(opened);
  });

  it("for text that has a token in every byte or two", async () => {
    const opened = await open(budgets);
    conduct = (response) => void response.end("{}");
    for (const content of ["x9Kq".repeat(20_000), "\u{1f600}\u0416".repeat(5_000), "{}<>|".repeat(10_000)])
      await ask(opened, { model: "m", messages: [{ role: "user", content }], max_tokens: 1 });
    await expectCounted(opened);
  });

  const encoded = (bytes: string): string => Buffer.from(bytes, "latin1").toString("base64");
  /** A token in each byte. */
  const dense = "{}<>|~^".repeat(8_000);
  const pdf = encoded(`%PDF-1.7\n${"\0\x01\x02".repeat(100)}`);
  const gemini = "/model/google/v1beta/models/m:generateContent";
  const inGemini = (mimeType: string | undefined, data: string) =>
    [
      gemini,
      { contents: [{ parts: [{ inlineData: { mimeType, data } }] }], generationConfig: { maxOutputTokens: 1 } },
    ] as const;
  const inChat = (content: object) =>
    [chat, { model: "m", max_tokens: 1, messages: [{ role: "user", content: [content] }] }] as const;
  const context = 2_000_000;

  it.each([
    ["text that begins like an image", dense.length, ...inGemini("text/plain", encoded(`\x89PNG${dense}`))],
    [
      "text that begins like a JPEG, in a type of capitals",
      dense.length,
      ...inGemini("TEXT/CSV; x=y", encoded(`\xff\xd8\xff${dense}`)),
    ],
    ["text that is called an image", dense.length, ...inGemini("image/png", encoded(dense))],
    ["text in base64", dense.length, ...inGemini("application/json", encoded(dense))],
    [
      "text in a data URL",
      dense.length,
      ...inChat({ type: "file", file: { file_data: `data:text/plain;base64,${encoded(dense)}` } }),
    ],
    [
      "text in the place of an image",
      dense.length,
      ...inChat({ type: "image_url", image_url: { url: `data:image/svg+xml;utf8,${dense}` } }),
    ],
    ["an image that is called text", 16_384, ...inGemini("text/plain", encoded("\x89PNG"))],
    ["a small image", 16_384, ...inGemini("image/png", encoded("\x89PNG\r\n\x1a\n\0\0"))],
    ["a document", context, ...inGemini("application/pdf", pdf)],
    ["a document that is called text", context, ...inGemini("text/plain", pdf)],
    ["a document that is called an image", context, ...inGemini("image/png", pdf)],
    [
      "a document behind something else",
      context,
      ...inGemini("application/pdf", encoded(`hello\n${"x".repeat(900)}%PDF-1.7`)),
    ],
    ["a document of no type", context, ...inGemini(undefined, pdf)],
    [
      "what is packed",
      context,
      ...inChat({ type: "file", file: { file_data: encoded("PK\x03\x04\0\0"), filename: "x.docx" } }),
    ],
    [
      "what is of no type",
      context,
      ...inChat({ type: "file", file: { file_data: encoded("hello"), filename: "x.pdf" } }),
    ],
    ["a video", context, ...inGemini("video/mp4", encoded("\0\0\0\x18ftypmp42"))],
    ["a video that is called an image", context, ...inGemini("image/heic", encoded("\0\0\0\x18ftypmp42"))],
    ["sound", context, ...inGemini("audio/ogg", encoded("OggS\0"))],
    [
      "sound in a field of its own",
      context,
      ...inChat({ type: "input_audio", input_audio: { data: encoded("hello"), format: "mp3" } }),
    ],
  ] as const)("for %s, whose usage is hidden", async (_, inputTokens, path, body) => {
    const opened = await open(budgets);
    conduct = (response) => void response.end("{}");
    reckon = () => ({ inputTokens, outputTokens: 0 });
    expect((await ask(opened, body, path)).status).toBe(200);
    await expectCounted(opened);
  });

  it.each([
    [
      "tells its usage",
      ((response, work) => void response.end(JSON.stringify({ usage: usageOf(work) }))) satisfies Conduct,
    ],
    ["does not", ((response) => void response.end("{}")) satisfies Conduct],
  ] as const)("for what is heard, at the price of sound, if its server %s", async (_, answer) => {
    const opened = await open(budgets);
    conduct = answer;
    inputPrice = soundPrice.sound;
    reckon = () => ({ inputTokens: 50_000 });
    const [, body] = inChat({ type: "input_audio", input_audio: { data: encoded("ID3\0"), format: "mp3" } });
    expect((await ask(opened, { ...body, model: "heard" })).status).toBe(200);
    await expectCounted(opened);
  });

  it.each([
    ["of a message", { messages: [{ role: "user", content: "x", cache_control: { type: "ephemeral", ttl: "1h" } }] }],
    [
      "of a tool",
      {
        messages,
        tools: [{ type: "function", function: { name: "x", cache_control: { type: "ephemeral", ttl: "1h" } } }],
      },
    ],
  ])("for what is cached for an hour %s, of a server that does not tell how long", async (_, more) => {
    const opened = await open(budgets);
    inputPrice = hourPrice.cacheHour;
    reckon = () => ({ inputTokens: 50_000, outputTokens: 0 });
    conduct = (response, { inputTokens }) => {
      const prompt_tokens_details = { cache_write_tokens: inputTokens };
      const usage = { prompt_tokens: inputTokens, completion_tokens: 0, prompt_tokens_details };
      response.end(JSON.stringify({ usage }));
    };
    expect((await ask(opened, { model: "kept", max_tokens: 1, ...more })).status).toBe(200);
    await expectCounted(opened);
  });

  it.each([
    ["texts", { prompt: ["a", "b", "c", "d"] }, 4],
    ["tokens", { prompt: [[1, 2], [3], [4], [5]] }, 4],
    ["texts with several answers", { prompt: ["a", "b"], n: 2, best_of: 4 }, 8],
    ["tokens of one question", { prompt: [1, 2, 3, 4] }, 1],
  ])("for several questions at once by %s, whose usage is hidden", async (_, more, answers) => {
    const opened = await open(budgets);
    conduct = (response) => void response.end("{}");
    reckon = () => ({ outputTokens: 3_000 * answers });
    expect(
      (await ask(opened, { model: "m", max_tokens: 3_000, ...more }, "/model/compatible/v1/completions")).status,
    ).toBe(200);
    await expectCounted(opened);
    // And not much more.
    expect(await spentBy(opened)).toBeLessThan(bill * 1.2);
  });

  it.each([
    ["a limit that servers need not know", chat, { messages, max_completion_tokens: 1 }],
    ["the same beside another that says nothing", chat, { messages, max_completion_tokens: 1, max_tokens: null }],
    ["a limit beside which it thinks", chat, { messages, max_tokens: 1, thinking_budget: 120_000 }],
    [
      "the same in other words",
      chat,
      { messages, max_tokens: 1, thinking: { type: "enabled", budget_tokens: 120_000 } },
    ],
    ["the same in still others", chat, { messages, max_tokens: 1, reasoning: { max_tokens: 120_000 } }],
    ["a limit of what can't be limited", "/model/openai/v1/responses/compact", { input: "x", max_output_tokens: 1 }],
    [
      "a summary instead of an answer",
      "/model/openai/v1/responses",
      { input: [{ role: "user", content: "x" }, { type: "compaction_trigger" }], max_output_tokens: 1 },
    ],
  ])("for answers that go past %s, whose usage is hidden", async (_, path, more) => {
    const opened = await open(budgets);
    conduct = (response) => void response.end("{}");
    reckon = () => ({ outputTokens: 120_000 });
    expect((await ask(opened, { model: "m", ...more }, path)).status).toBe(200);
    await expectCounted(opened);
  });

  it("for a conversation that is summarised beside its answer, whose usage is hidden", async () => {
    const opened = await open(budgets);
    conduct = (response) => void response.end("{}");
    reckon = () => ({ inputTokens: 2 * 40_000, outputTokens: 100 + 100_000 });
    const context_management = [{ type: "compaction", compact_threshold: 1_000 }];
    const input = [{ role: "user", content: dense.slice(0, 40_000) }];
    const body = { model: "m", input, context_management, max_output_tokens: 100 };
    expect((await ask(opened, body, "/model/openai/v1/responses")).status).toBe(200);
    await expectCounted(opened);
  });

  it("but nothing for what costs nothing", async () => {
    const opened = await open(budgets);
    conduct = (response) => void response.writeHead(429, { "retry-after": "0" }).end("slow down");
    expect((await ask(opened, { model: "m", messages })).status).toBe(429);
    expect((await ask(opened, { model: "m", messages, background: true }, "/model/openai/v1/responses")).status).toBe(
      403,
    );
    await waitFor(async () => (await held()) === 0, "nothing is held");
    expect(await spentBy(opened)).toBe(0);
  });
});

describe("a budget holds", () => {
  it("for 16 requests at once at its end, of which none is left out that it covers", async () => {
    const opened = await open({ sessionBudgetUsd: 2 });
    conduct = (...asked) => void setTimeout(() => tell(...asked), 50);
    const got = await Promise.all(
      Array.from({ length: 16 }, () => ask(opened, { model: "m", messages, max_tokens: 2_000 })),
    );
    await expectCounted(opened);
    expect(bill).toBeLessThanOrEqual(2);
    // Each costs 0.2 dollars and holds a little more.
    expect(got.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(8);
    const refused = got.filter(({ status }) => status !== 200);
    expect(refused.length).toBeGreaterThan(0);
    for (const { status, body } of refused)
      expect([status, body]).toEqual([402, expect.stringContaining("the session's budget is used up")]);
    expect(opened.problems).toHaveLength(1);
    expect(mostUnderWay).toBeLessThanOrEqual(8);
  });

  it.each([
    ["usage is hidden", (response: ServerResponse) => void response.end("{}")],
    ["connections are cut", (response: ServerResponse) => void response.destroy()],
    ["all is reported", null],
  ])("until it is used up, where %s", async (_, answer) => {
    const opened = await open({ sessionBudgetUsd: 3 });
    if (answer !== null) conduct = (response) => answer(response);
    for (let count = 0; count < 40 && opened.problems.length === 0; count += 1)
      await ask(opened, { model: "m", messages, n: 2, ...(count % 2 === 0 && { max_tokens: 3_000 }) });
    expect(opened.problems).toHaveLength(1);
    await expectCounted(opened);
    expect(bill).toBeLessThanOrEqual(3);
    expect(await spentBy(opened)).toBeLessThanOrEqual(3.000_001);
  });

  it("of the month, for sessions of several workers at once with no budget of their own", async () => {
    const all = [await open({ monthlyBudgetUsd: 3 }), await open(), await open()];
    conduct = (...asked) => void setTimeout(() => tell(...asked), 50);
    await Promise.all(
      all.flatMap((opened) =>
        Array.from({ length: 12 }, () => ask(opened, { model: "m", messages, max_tokens: 2_000 })),
      ),
    );
    await expectCounted(...all);
    expect(bill).toBeLessThanOrEqual(3);
    expect(bill).toBeGreaterThan(1.5);
    expect(all.flatMap(({ problems }) => problems).join()).toContain("the organization's budget for this month");
  });

  it("by a limit that is put into a request that has none", async () => {
    const opened = await open({ sessionBudgetUsd: 1 });
    output = 1_000_000;
    expect((await ask(opened, { model: "m", messages })).status).toBe(200);
    await expectCounted(opened);
    expect(bill).toBeGreaterThan(0.5);
    expect(bill).toBeLessThanOrEqual(1);
  });

  it("for a document, of which a model can read as much as fits into it, but not against an image of its size", async () => {
    const opened = await open({ sessionBudgetUsd: 2 });
    const ofKind = (type: string, head: string) => {
      const url = `data:${type};base64,${Buffer.from(head + "\0".repeat(300_000), "latin1").toString("base64")}`;
      const content = type.startsWith("image")
        ? { type: "image_url", image_url: { url } }
        : { type: "file", file: { file_data: url } };
      return ask(opened, { model: "m", messages: [{ role: "user", content: [content] }], max_tokens: 10 });
    };
    reckon = () => ({ inputTokens: 16_384 });
    expect((await ofKind("image/png", "\x89PNG")).status).toBe(200);
    expect(billed).toBe(1);
    expect((await ofKind("application/pdf", "%PDF")).status).toBe(402);
    expect(billed).toBe(1);
  });

  it("and a limit that a server need not know is said again by the name that it knows", async () => {
    const opened = await open({ sessionBudgetUsd: 2 });
    let sent: Record<string, unknown> = {};
    reckon = (body) => {
      sent = body;
      return {};
    };
    expect((await ask(opened, { model: "m", messages, max_completion_tokens: 500 })).status).toBe(200);
    expect(sent).toMatchObject({ max_tokens: 500, max_completion_tokens: 500 });
  });

  it("and says what a request can cost that it does not cover", async () => {
    const opened = await open({ sessionBudgetUsd: 1 });
    const { status, body } = await ask(opened, { model: "m", messages, max_tokens: 100_000 });
    expect([status, body]).toEqual([
      402,
      expect.stringMatching(/used up: \$1\.00 is left, and the next request can cost \$10\.\d\d/u),
    ]);
    expect(billed).toBe(0);
  });

  it("when a worker dies with requests under way: what they held counts as spent", async () => {
    const opened = await open({ sessionBudgetUsd: 2 });
    const { sessionId } = opened.session;
    await database.pool.query(
      "insert into model_hold (session_id, organization_id, held_usd, expires_at) values ($1, $2, 1.5, now() - interval '1 second')",
      [sessionId, organizationId],
    );
    expect((await ask(opened, { model: "m", messages, max_tokens: 20_000 })).status).toBe(402);
    expect(await spentBy(opened)).toBe(1.5);
    expect(await held()).toBe(0);
  });
});
