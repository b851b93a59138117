import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openGateway, type Gateway } from "../../src/gateway/gateway.ts";

/** What reaches a model's provider, of what an agent sends: nothing that it would act on otherwise than by answering. */
let directory: string;
let upstream: Server;
let address: string;
const seen: { readonly url: string; readonly headers: IncomingMessage["headers"]; readonly body: string }[] = [];
const opened: Gateway[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-bodies-"));
  upstream = createServer((request, response) => {
    void text(request).then((body) => {
      seen.push({ url: request.url ?? "", headers: request.headers, body });
      response
        .writeHead(200, { "content-type": "application/json" })
        .end('{"usage":{"input_tokens":1,"output_tokens":1}}');
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
});

afterEach(() => void (seen.length = 0));

afterAll(async () => {
  for (const gateway of opened) await gateway.close();
  upstream?.closeAllConnections();
  upstream?.close();
  await rm(directory, { recursive: true, force: true });
});

const gateways = new Map<string, Promise<Gateway>>();
function gatewayFor(permits: readonly string[]): Promise<Gateway> {
  const key = permits.join();
  const known = gateways.get(key) ?? open(permits);
  gateways.set(key, known);
  return known;
}

async function open(permits: readonly string[]): Promise<Gateway> {
  const gateway = await openGateway({
    directory,
    models: {
      anthropic: { apiKey: "real", baseUrl: address },
      openai: { apiKey: "real", baseUrl: `${address}/v1` },
      google: { apiKey: "real", baseUrl: address },
      compatible: { apiKey: "real", baseUrl: `${address}/v1` },
    },
    egress: { open: false, rules: [] },
    onRefused: () => undefined,
    permits,
  });
  opened.push(gateway);
  return gateway;
}

const paths = {
  messages: "/model/anthropic/v1/messages",
  tokens: "/model/anthropic/v1/messages/count_tokens",
  responses: "/model/openai/v1/responses",
  chat: "/model/openai/v1/chat/completions",
  server: "/model/compatible/v1/chat/completions",
  completions: "/model/compatible/v1/completions",
  embeddings: "/model/compatible/v1/embeddings",
  gemini: "/model/google/v1beta/models/gemini-3-pro:generateContent",
  geminiTokens: "/model/google/v1beta/models/gemini-3-pro:countTokens",
  geminiEmbeddings: "/model/google/v1beta/models/gemini-embed:batchEmbedContents",
};
type PathName = keyof typeof paths;

interface Options {
  readonly headers?: Record<string, string>;
  readonly permits?: readonly string[];
}

async function send(path: string, body: string | Buffer, { headers = {}, permits = [] }: Options = {}) {
  const gateway = await gatewayFor(permits);
  const token = gateway.modelsAt("http://x").openai?.apiKey ?? "";
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const sent = httpRequest(
      { socketPath: gateway.socket, path, method: "POST", headers: { authorization: `Bearer ${token}`, ...headers } },
      (answer) => void text(answer).then((got) => resolve({ status: answer.statusCode ?? 0, body: got }), reject),
    );
    sent.once("error", reject);
    sent.end(body);
  });
}

const user = (content: unknown) => ({ role: "user", content });
/** A usual request of each operation, with these fields too. */
const bodies: Record<PathName, (more: object) => object> = {
  messages: (more) => ({ model: "claude", max_tokens: 9, messages: [user("hi")], ...more }),
  tokens: (more) => ({ model: "claude", messages: [user("hi")], ...more }),
  responses: (more) => ({ model: "gpt", input: "hi", ...more }),
  chat: (more) => ({ model: "gpt", messages: [user("hi")], ...more }),
  server: (more) => ({ model: "qwen", messages: [user("hi")], ...more }),
  completions: (more) => ({ model: "qwen", prompt: "hi", ...more }),
  embeddings: (more) => ({ model: "qwen", input: "hi", ...more }),
  gemini: (more) => ({ contents: [{ role: "user", parts: [{ text: "hi" }] }], ...more }),
  geminiTokens: (more) => ({ contents: [], ...more }),
  geminiEmbeddings: (more) => ({ requests: [], ...more }),
};
const sendTo = (path: PathName, more: object, options?: Options) =>
  send(paths[path], JSON.stringify(bodies[path](more)), options);

const far = "https://attacker.example/?d=STOLEN";
const tools = (...types: string[]) => ({ tools: types.map((type) => ({ type, name: "x" })) });
const block = (content: object) => ({ messages: [user([content])] });
const item = (content: object) => ({ input: [user([content])] });
const part = (content: object) => ({ contents: [{ role: "user", parts: [content] }] });

/** What a provider would do for an agent, by the name with which an operator can allow it. */
const acts: readonly (readonly [PathName, object, string])[] = [
  ...["web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "mcp_toolset", "advisor_20260301"].map(
    (type) => ["messages", tools(type), `tool:${type}`] as const,
  ),
  ["messages", { mcp_servers: [{ type: "url", url: far, name: "x" }] }, "field:mcp_servers"],
  ["messages", { container: "c1" }, "field:container"],
  ["messages", { container: { skills: [] } }, "field:container"],
  ["messages", block({ type: "container_upload", file_id: "f" }), "block:container_upload"],
  ["messages", block({ type: "image", source: { type: "url", url: far } }), "source:url"],
  ["messages", block({ type: "image", source: { url: far, type: "url" } }), "source:url"],
  ["messages", block({ type: "document", source: { type: "file", file_id: "f" } }), "source:file"],
  [
    "messages",
    block({ type: "tool_result", content: [{ type: "image", source: { type: "url", url: far } }] }),
    "source:url",
  ],
  [
    "messages",
    block({
      type: "document",
      source: { type: "content", content: [{ type: "image", source: { type: "url", url: far } }] },
    }),
    "source:url",
  ],
  [
    "messages",
    block({ type: "tool_addition", tool: { type: "tool_definition", definition: { type: "web_search_20250305" } } }),
    "tool:web_search_20250305",
  ],
  ["tokens", block({ type: "image", source: { type: "url", url: far } }), "source:url"],
  ["messages", { speed: "fast" }, "speed:fast"],
  ["messages", { inference_geo: "us" }, "inference_geo:us"],
  ["messages", { fallbacks: [{ model: "dearer" }] }, "field:fallbacks"],
  ["messages", { context_management: { edits: [{ type: "compact_20260112" }] } }, "edit:compact_20260112"],
  ...[
    "web_search",
    "web_search_preview",
    "file_search",
    "code_interpreter",
    "computer_use_preview",
    "image_generation",
    "mcp",
    "shell",
  ].map((type) => ["responses", tools(type), `tool:${type}`] as const),
  ["responses", { tools: [{ type: "namespace", name: "x", tools: [{ type: "mcp", server_url: far }] }] }, "tool:mcp"],
  ["responses", { input: [{ type: "additional_tools", tools: [{ type: "web_search" }] }] }, "tool:web_search"],
  ["responses", { input: [{ type: "tool_search_output", tools: [{ type: "mcp" }] }] }, "tool:mcp"],
  ["responses", item({ type: "input_file", file_url: far }), "source:url"],
  ["responses", item({ type: "input_file", file_id: "f" }), "source:file"],
  ["responses", item({ type: "input_image", file_id: "f" }), "source:file"],
  ["responses", { input: [{ type: "item_reference", id: "msg_1" }] }, "block:item_reference"],
  ["responses", { background: true }, "field:background"],
  ["responses", { store: true }, "field:store"],
  ["responses", { previous_response_id: "resp_1" }, "field:previous_response_id"],
  ["responses", { conversation: { id: "c" } }, "field:conversation"],
  ["responses", { prompt: { id: "p", variables: {} } }, "field:prompt"],
  ["responses", { service_tier: "priority" }, "tier:priority"],
  ["chat", { web_search_options: {} }, "tool:web_search"],
  ["chat", { store: true }, "field:store"],
  ["chat", { service_tier: "priority" }, "tier:priority"],
  ["chat", { modalities: ["text", "audio"] }, "modality:audio"],
  ["chat", { audio: { voice: "x" } }, "modality:audio"],
  ["chat", block({ type: "file", file: { file_id: "f" } }), "source:file"],
  ["chat", { model: "gpt-4o-search-preview" }, "model:gpt-4o-search-preview"],
  ["server", { model: "openai/gpt-5:online" }, "model:openai/gpt-5:online"],
  ["server", { plugins: [{ id: "web" }] }, "field:plugins"],
  ["server", { models: ["dearer"] }, "field:models"],
  ["server", { api_base: far }, "field:api_base"],
  ["server", { search_parameters: { mode: "on" } }, "field:search_parameters"],
  ["server", { tools: [{ type: "builtin_function", function: { name: "$web_search" } }] }, "tool:builtin_function"],
  ["server", { tools: [{ type: "web_search", web_search: { enable: true } }] }, "tool:web_search"],
  ["server", block({ type: "video_url", video_url: { url: far } }), "block:video_url"],
  ...[
    "googleSearch",
    "google_search",
    "googleSearchRetrieval",
    "url_context",
    "codeExecution",
    "file_search",
    "googleMaps",
    "computerUse",
  ].map(
    (name) =>
      [
        "gemini",
        { tools: [{ [name]: {} }] },
        `tool:${name.replaceAll(/_([a-z])/gu, (_, letter: string) => letter.toUpperCase())}`,
      ] as const,
  ),
  ["gemini", part({ fileData: { fileUri: far } }), "source:url"],
  ["gemini", part({ file_data: { file_uri: far } }), "source:url"],
  ["gemini", part({ functionResponse: { name: "x", parts: [{ fileData: { fileUri: far } }] } }), "source:url"],
  ["gemini", { systemInstruction: { parts: [{ file_data: { file_uri: far } }] } }, "source:url"],
  ["gemini", { cachedContent: "cachedContents/1" }, "field:cachedContent"],
  ["gemini", { generationConfig: { responseModalities: ["IMAGE"] } }, "modality:IMAGE"],
  ["gemini", { generation_config: { response_modalities: ["AUDIO"] } }, "modality:AUDIO"],
  ["geminiTokens", { generateContentRequest: { tools: [{ googleSearch: {} }] } }, "tool:googleSearch"],
  // An item without a type, or with nothing in it but its id, stands for what the provider has stored.
  ["responses", { input: [{ id: "msg_1" }] }, "block:item_reference"],
  ["responses", { input: [{ id: "msg_1", type: null }] }, "block:item_reference"],
  ["responses", { input: [{ id: "msg_1", role: "user" }] }, "block:item_reference"],
  ["responses", { input: [{ id: "msg_1", role: "user", content: null }] }, "block:item_reference"],
  ["responses", { input: [{ id: "msg_1", content: "x", role: null }] }, "block:item_reference"],
  ["responses", { input: [{ type: "reasoning", id: "rs_1", summary: [] }] }, "block:item_reference"],
  ["responses", { input: [{ type: "reasoning", id: "rs_1", content: [] }] }, "block:item_reference"],
  ["responses", { input: [{ encrypted_content: "", id: "rs_1", type: "reasoning" }] }, "block:item_reference"],
  ["responses", { input: [{ type: "compaction", id: "cmp_1" }] }, "block:item_reference"],
  ["responses", { input: [{ type: "message", id: "msg_1" }] }, "block:item_reference"],
  ["responses", { input: [{ type: "function_call", id: "fc_1" }] }, "block:item_reference"],
  ["messages", block({ type: "image", source: far }), "source:url"],
  ["messages", block({ source: far, type: "document" }), "source:url"],
  ["messages", block({ source: far }), "source:url"],
  ["gemini", { generationConfig: { responseMimeType: "audio/wav" } }, "modality:audio/wav"],
  // The provider searches, unless the harness says that it does.
  ["responses", { tools: [{ type: "tool_search" }] }, "tool:server"],
  ["responses", { tools: [{ type: "tool_search", execution: null }] }, "tool:server"],
  ["responses", tools("programmatic_tool_calling"), "tool:programmatic_tool_calling"],
  ["responses", { tools: [{ type: "function", name: "x", allowed_callers: ["programmatic"] }] }, "caller:programmatic"],
  [
    "messages",
    { tools: [{ name: "x", allowed_callers: ["direct", "code_execution_20260120"] }] },
    "caller:code_execution_20260120",
  ],
  ["responses", { reasoning: { effort: "high", mode: "pro" } }, "reasoning:pro"],
  ["server", { reasoning: { mode: "pro" } }, "reasoning:pro"],
  ["responses", { service_tier: "fast" }, "tier:fast"],
  ["responses", { service_tier: "ultrafast" }, "tier:ultrafast"],
  ["responses", { prompt_cache_options: { ttl: "24h" } }, "ttl:24h"],
  [
    "messages",
    block({ type: "document", citations: { enabled: true }, source: { type: "text", data: "a. b. c." } }),
    "field:citations",
  ],
  ["responses", { moderation: { model: "x" } }, "field:moderation"],
  ["responses", { multi_agent: {} }, "field:multi_agent"],
  ["chat", { prediction: { type: "content", content: "x" } }, "field:prediction"],
  ["chat", { messages: [{ role: "assistant", content: "x", annotations: [{ type: "file" }] }] }, "field:annotations"],
  [
    "server",
    { chat_template_kwargs: { chat_template: "{% for i in range(999999999) %}{% endfor %}" } },
    "field:chat_template",
  ],
  ["gemini", { generationConfig: { enableEnhancedCivicAnswers: true } }, "field:enableEnhancedCivicAnswers"],
  ["gemini", { generationConfig: { responseFormat: { audio: {} } } }, "field:audio"],
  ["gemini", part({ text: "x", mediaResolution: { numTokens: 900_000 } }), "field:numTokens"],
  ["gemini", part({ executableCode: { code: "1" } }), "tool:codeExecution"],
  ["gemini", part({ toolCall: { toolType: "GOOGLE_SEARCH_WEB" } }), "field:toolCall"],
];

describe("what a provider would do for an agent beside answering", () => {
  it.each(acts)("is refused by name: %s %j", async (path, more, permit) => {
    const answer = await sendTo(path, more);
    expect(answer.status).toBe(403);
    expect(answer.body).toContain(`OFFSTAGE_MODEL_ALLOW=${permit}`);
    expect(seen).toEqual([]);
    // Without it the same passes; and with it, if the operator allowed it by that name.
    expect((await sendTo(path, {})).status).toBe(200);
    expect((await sendTo(path, more, { permits: ["source:*", "block:*", "field:video_url", permit] })).status).toBe(
      200,
    );
  });

  it.each([
    ["responses", item({ type: "input_image", image_url: far })],
    ["responses", item({ type: "input_image", image_url: "\\u0064ata:image/png,x" })],
    ["responses", { input: [{ type: "function_call_output", output: [{ type: "input_image", image_url: far }] }] }],
    ["responses", item({ type: "input_file", file_data: far, filename: "x.pdf" })],
    ["chat", block({ type: "image_url", image_url: { url: far } })],
    ["chat", block({ type: "image_url", image_url: far })],
    ["chat", block({ type: "image_url", image_url: { url: "file:///etc/passwd" } })],
    ["server", block({ type: "file", file: { file_data: far, filename: "x.pdf" } })],
    ["server", block({ type: "input_audio", input_audio: { data: far, format: "mp3" } })],
  ] as const)("is not made of an address in the place of content: %s %j", async (path, more) => {
    const answer = await sendTo(path, more);
    expect([answer.status, answer.body]).toEqual([403, expect.stringContaining("would be fetched")]);
    expect(seen).toEqual([]);
  });

  it.each([
    ["responses", { instructions: [{ role: "user", content: [{ type: "input_image", image_url: far }] }] }],
    ["embeddings", { input: [{ image: far }] }],
    ["embeddings", { input: { url: far } }],
    ["completions", { prompt: [{ image_url: far }] }],
    ["gemini", part({ text: { fileData: { fileUri: far } } })],
    ["gemini", { generationConfig: { mediaResolution: { level: "HIGH" } } }],
  ] as const)("is not made of more than text, if the field is for text: %s %j", async (path, more) => {
    const answer = await sendTo(path, more);
    expect([answer.status, answer.body]).toEqual([400, expect.stringMatching(/must be no (?:object|list)/u)]);
    expect(seen).toEqual([]);
  });

  it.each(
    [
      ["sonar", "Sonar-Pro", "perplexity/sonar-deep-research", "PERPLEXITY/SONAR", "llama-3.1-sonar-small-128k-online"],
      ["pplx-7b-online", "pplx-api/pplx-70b-Online"],
      ["compound", "compound-beta", "groq/compound", "groq/compound-mini", "Groq/Compound-Beta-Mini"],
      ["gpt-4o-search-preview", "gpt-4o-mini-search-preview-2025-03-11", "openai/gpt-5-search-api", "searchgpt"],
      ["o3-deep-research", "o4-mini-deep-research-2025-06-26", "jina-deepsearch-v1", "qwen-deep-research"],
      ["openai/gpt-5:online", "openai/gpt-5:ONLINE", "qwen3:online:nitro", "qwen3:online/linkup-deep"],
      ["qwen3-4b:enable_web_search=on", "qwen3-4b:strip_thinking_response=true&enable_web_search=auto"],
      ["gemini-2.5-pro-search", "gemini-2.5-flash-grounding", "grok-3-deepsearch", "exa", "exa-research-pro"],
      [
        "glm-4-alltools",
        "glm-4-assistant",
        "bot-20250101",
        "x-browsing",
        "x_web_search",
        "@preset/mine",
        "gpt@preset/x",
      ],
    ].flat(),
  )("is refused as the model %s", async (model) => {
    const answer = await sendTo("server", { model });
    expect([answer.status, answer.body]).toEqual([403, expect.stringContaining(`OFFSTAGE_MODEL_ALLOW=model:${model}`)]);
    expect(seen).toEqual([]);
    expect((await sendTo("server", { model }, { permits: ["model:*"] })).status).toBe(200);
  });

  it.each(
    [
      ["claude-opus-4-8", "gpt-5.6-sol", "gemini-3.1-pro-preview", "qwen/qwen3-coder:free", "deepseek-r1:32b", "o3"],
      ["mistral-large-latest", "grok-4-fast", "kimi-k2-thinking", "meta-llama/llama-4-scout", "hexagon", "robot-1"],
    ].flat(),
  )("is not the model %s, which passes", async (model) => {
    expect((await sendTo("server", { model })).status).toBe(200);
  });

  it("is opened tool by tool: the fields of other tools, and of what is no tool, stay closed", async () => {
    const permits = ["tool:web_search", "tool:googleSearch"];
    const search = { type: "web_search", filters: { allowed_domains: ["a.example"] }, search_context_size: "low" };
    expect((await sendTo("responses", { tools: [search] }, { permits })).status).toBe(200);
    // Its type may come last.
    const turned = Object.fromEntries(Object.entries(search).toReversed());
    expect((await sendTo("responses", { tools: [turned] }, { permits })).status).toBe(200);
    seen.length = 0;
    const closed: readonly (readonly [PathName, object])[] = [
      ["responses", { tools: [{ type: "function", name: "x", server_url: far }] }],
      ["responses", { tools: [{ type: "function", execution: "client", container: "auto" }] }],
      ["responses", { tools: [search, { type: "custom", name: "x", connector_id: "c" }] }],
      ["responses", { tools: [{ type: "namespace", tools: [{ type: "function", headers: {} }] }] }],
      ["responses", { tools: [{ ...search, tools: [{ type: "function", name: "x", headers: {} }] }] }],
      ["responses", item({ type: "input_text", text: "x", remote: far })],
      ["responses", { input: [{ type: "message", role: "user", content: "x", remote: far }] }],
      ["messages", block({ type: "text", text: "x", remote: far })],
      ["messages", { tools: [{ name: "x", mcp_server_name: "y" }] }],
      ["chat", { tools: [{ type: "function", function: {}, remote: far }] }],
      ["gemini", part({ text: "x", toolResponse: {} })],
      ["gemini", { tools: [{ googleSearch: {}, remote: {} }] }],
    ];
    for (const [path, more] of closed) {
      const answer = await sendTo(path, more, { permits });
      expect([more, answer.status, answer.body]).toEqual([more, 403, expect.stringContaining("=field:")]);
    }
    const other = await sendTo("responses", tools("mcp"), { permits });
    expect([other.status, other.body]).toEqual([403, expect.stringContaining("=tool:mcp")]);
    expect(seen).toEqual([]);
  });

  it("is refused as a beta of OpenAI's that lets several agents answer", async () => {
    for (const beta of ["responses_multi_agent=v1", "responses_multiagent=v1"]) {
      const answer = await sendTo("responses", {}, { headers: { "openai-beta": beta } });
      expect([answer.status, answer.body]).toEqual([403, expect.stringContaining(`beta:${beta}`)]);
    }
    for (const known of ["responses=experimental", "responses_websockets=2026-02-04"])
      expect((await sendTo("responses", {}, { headers: { "openai-beta": known } })).status).toBe(200);
  });

  it.each([
    "web-fetch-2025-09-10",
    "mcp-client-2025-11-20",
    "files-api-2025-04-14",
    "fast-mode-2026-02-01",
    "server-side-fallback-2026-06-01",
  ])("is refused as the beta %s", async (beta) => {
    const headers = { "anthropic-beta": `claude-code-20250219, ${beta}` };
    const answer = await sendTo("messages", {}, { headers });
    expect([answer.status, answer.body]).toEqual([403, expect.stringContaining(`OFFSTAGE_MODEL_ALLOW=beta:${beta}`)]);
    expect((await sendTo("messages", {}, { headers, permits: [`beta:${beta}`] })).status).toBe(200);
  });
});

describe("what harnesses send", () => {
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk";
  it.each([
    ["messages", block({ type: "image", source: { type: "base64", media_type: "image/png", data: png } })],
    [
      "messages",
      block({ type: "document", source: { type: "text", media_type: "text/plain", data: "http://x is text" } }),
    ],
    ["messages", tools("bash_20250124", "text_editor_20250728", "computer_20251124", "memory_20250818", "custom")],
    [
      "messages",
      { tools: [{ name: "x", input_schema: { properties: { url: { type: "web_search" } } } }], stream: true },
    ],
    [
      "messages",
      block({
        type: "tool_use",
        id: "t",
        name: "x",
        input: { source: { type: "url", url: far }, model: 1, model_: {} },
      }),
    ],
    ["messages", { service_tier: null, container: null, mcp_servers: null, thinking: { type: "adaptive" } }],
    [
      "responses",
      {
        tools: [
          { type: "function", name: "x", parameters: {} },
          { type: "custom", name: "y" },
        ],
        store: false,
      },
    ],
    ["responses", item({ type: "input_image", image_url: `data:image/png;base64,${png}` })],
    ["responses", { background: false, previous_response_id: null, include: ["reasoning.encrypted_content"] }],
    ["chat", block({ type: "image_url", image_url: { url: `data:image/png;base64,${png}`, detail: "low" } })],
    ["chat", { tools: [{ type: "function", function: { name: "web_search", parameters: {} } }], store: false }],
    ["server", { chat_template_kwargs: { enable_thinking: false }, top_k: 20, stream: true }],
    ["gemini", part({ inlineData: { mimeType: "image/png", data: png } })],
    [
      "gemini",
      { tools: [{ function_declarations: [{ name: "google_search" }] }], generation_config: { max_output_tokens: 5 } },
    ],
    ["geminiEmbeddings", { requests: [{ model: "models/gemini-embed", content: { parts: [{ text: "x" }] } }] }],
    [
      "responses",
      {
        input: [
          { role: "user", content: "hi" },
          { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" },
          { type: "reasoning", summary: [] },
          { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "x" }] },
          { id: "msg_2", role: "assistant", content: [{ type: "output_text", text: "x", annotations: [] }] },
          { type: "function_call", id: "fc_1", call_id: "c", name: "x", arguments: "" },
          { type: "function_call_output", call_id: "c", output: "" },
        ],
        tools: [{ type: "tool_search", execution: "client", parameters: {} }],
        reasoning: { effort: "high", summary: "auto", context: "auto", mode: "standard" },
        prompt_cache_options: { mode: "explicit", ttl: "30m" },
      },
    ],
    ["chat", { messages: [{ role: "assistant", content: "x", annotations: [], refusal: null }] }],
    ["messages", block({ type: "text", text: "x", citations: [{ type: "char_location" }] })],
    ["messages", block({ type: "document", citations: { enabled: false }, source: { type: "text", data: "a" } })],
    ["messages", block({ type: "search_result", source: far, title: "x", content: [{ type: "text", text: "y" }] })],
    ["server", { thinking: { type: "enabled", clear_thinking: false }, reasoning: { effort: "low" } }],
    ["embeddings", { input: ["a", "b"], dimensions: 9 }],
    ["embeddings", { input: [[1, 2], [3]] }],
    ["completions", { prompt: ["a", "b"], suffix: "c" }],
    ["gemini", part({ text: "x", mediaResolution: { level: "MEDIA_RESOLUTION_HIGH" } })],
  ] as const)("passes: %s %j", async (path, more) => {
    const answer = await sendTo(path, more);
    expect([answer.status, answer.body]).toEqual([200, expect.anything()]);
    expect(seen).toHaveLength(1);
  });
});

describe("a body that two programs could read in two ways", () => {
  const chat = (body: string | Buffer, headers?: Record<string, string>) =>
    send(paths.server, body, headers === undefined ? {} : { headers });
  const good = '{"model":"qwen","messages":[{"role":"user","content":"hi"}]}';

  it.each([
    ["a model twice", '{"model":"cheap","model":"dear"}', 400],
    ["a model twice, once escaped", '{"model":"cheap","\\u006dodel":"dear"}', 400],
    ["a model in capitals too", '{"model":"cheap","Model":"dear"}', 403],
    ["a model in capitals alone", '{"MODEL":"dear"}', 403],
    ["a model with a long s, which Go reads as s", '{"model":"cheap","\\u017ftream":true}', 403],
    ["Kelvin's sign for a k", '{"model":"cheap","too\u212as":[]}', 403],
    ["a byte order mark", `\ufeff${good}`, 400],
    ["something behind it", `${good}{"model":"dear"}`, 400],
    ["a comment", `/**/${good}`, 400],
    ["a comma too many", '{"model":"qwen",}', 400],
    ["no number", '{"model":"qwen","temperature":NaN}', 400],
    ["a number with a zero before", '{"model":"qwen","temperature":01}', 400],
    ["an exponent for a count", '{"model":"qwen","max_tokens":1e9}', 400],
    ["a count that is negative", '{"model":"qwen","max_tokens":-1}', 400],
    ["text for a count", '{"model":"qwen","n":"8"}', 400],
    ["a list", `[${good}]`, 400],
    ["text", '"qwen"', 400],
    ["an object for the model", '{"model":{"name":"dear"}}', 400],
    ["a model that is null", '{"model":null}', 400],
    ["a model with a line feed", '{"model":"qwen\\n"}', 400],
    ["a model of 201 characters", `{"model":"${"x".repeat(201)}"}`, 400],
    ["an object for a list", '{"model":"qwen","messages":{"0":{}}}', 400],
    ["65 levels", `{"model":"qwen","metadata":${"[".repeat(64)}${"]".repeat(64)}}`, 400],
    ["half of it", good.slice(0, -1), 400],
    ["nothing", "", 400],
    ["UTF-16", Buffer.from(good, "utf16le"), 400],
    [
      "UTF-8 that is none",
      Buffer.concat([Buffer.from('{"model":"qwen","user":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]),
      400,
    ],
    [
      "a surrogate in UTF-8",
      Buffer.concat([Buffer.from('{"model":"qwen","user":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
      400,
    ],
    ["a control character", '{"model":"qwen","user":"\u0001"}', 400],
  ])("is refused: %s", async (_, body, status) => {
    const answer = await chat(body);
    expect([answer.status, answer.body]).toEqual([status, expect.stringContaining("Offstage: ")]);
    expect(seen).toEqual([]);
    expect((await chat(good)).status).toBe(200);
  });

  it.each([
    ["gzip", gzipSync(good), { "content-encoding": "gzip", "content-type": "application/json" }],
    ["a form", "model=dear", { "content-type": "application/x-www-form-urlencoded" }],
    ["parts", good, { "content-type": "multipart/form-data; boundary=x" }],
    ["another character set", good, { "content-type": "application/json; charset=utf-7" }],
  ])("is refused as %s", async (_, body, headers) => {
    expect((await chat(body, headers)).status).toBe(415);
    expect(seen).toEqual([]);
    expect((await chat(good, { "content-type": "application/json; charset=utf-8" })).status).toBe(200);
  });

  it("is refused if Gemini's path and body name two models", async () => {
    const other = { requests: [{ model: "models/dear", content: {} }] };
    expect((await sendTo("geminiEmbeddings", other)).status).toBe(400);
    const two = { generationConfig: { maxOutputTokens: 1 }, generation_config: { maxOutputTokens: 1_000 } };
    expect((await sendTo("gemini", two)).status).toBe(400);
    expect(seen).toEqual([]);
  });
});

describe("what is forwarded", () => {
  const bodyOf = async (path: PathName, more: object): Promise<unknown> => {
    expect((await sendTo(path, more)).status).toBe(200);
    return JSON.parse(seen.at(-1)?.body ?? "");
  };

  it("is the same to the byte, spaces and all", async () => {
    const body = ' { "model" :\t"claude" , "max_tokens":1,"messages":[ {"role":"user","content":"\\u00e9\\/"} ] }\r\n';
    expect((await send(paths.messages, body)).status).toBe(200);
    expect(seen[0]?.body).toBe(body);
  });

  it("asks Responses to keep nothing, if the agent did not say", async () => {
    expect(await bodyOf("responses", {})).toMatchObject({ store: false });
    expect(await bodyOf("responses", { store: null })).toMatchObject({ store: false });
    expect(seen[1]?.body.match(/"store"/gu)).toHaveLength(1);
  });

  it("asks streams for their usage, if the agent did not", async () => {
    for (const stream_options of [
      undefined,
      null,
      {},
      { include_usage: false },
      { include_usage: null },
      { include_usage: true },
    ]) {
      const body = await bodyOf("server", { stream: true, ...(stream_options !== undefined && { stream_options }) });
      expect(body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
      expect(seen.at(-1)?.body.match(/include_usage/gu)).toHaveLength(1);
    }
    expect(await bodyOf("server", { stream: false })).not.toHaveProperty("stream_options");
  });

  it("has no header but those that are known", async () => {
    const headers = {
      "x-stainless-lang": "js",
      "anthropic-version": "2023-06-01",
      cookie: "a=b",
      "openai-organization": "other",
      "openai-project": "other",
      "x-goog-user-project": "other",
      "x-http-method-override": "DELETE",
      "x-forwarded-for": "1.1.1.1",
      "accept-encoding": "gzip",
    };
    await sendTo("messages", {}, { headers });
    expect(Object.keys(seen[0]?.headers ?? {}).toSorted()).toEqual([
      "accept-encoding",
      "anthropic-version",
      "connection",
      "content-length",
      "content-type",
      "host",
      "x-api-key",
      "x-stainless-lang",
    ]);
    expect(seen[0]?.headers["accept-encoding"]).toBe("identity");
  });

  it("is read in pieces of any size, but not byte by byte for ever", async () => {
    const gateway = await gatewayFor([]);
    const token = gateway.modelsAt("http://x").openai?.apiKey ?? "";
    const head = `POST ${paths.messages} HTTP/1.1\r\nHost: x\r\nx-api-key: ${token}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const say = (pieces: string[], rest: string) =>
      new Promise<string>((resolve, reject) => {
        const client = connect(gateway.socket);
        let got = "";
        client.on("data", (chunk) => {
          got += chunk.toString();
          if (got.includes("\r\n\r\n")) client.destroy();
        });
        client.once("error", reject);
        client.once("close", () => resolve(got.split("\r\n")[0] ?? ""));
        client.write(
          head + pieces.map((piece) => `${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`).join("") + rest,
        );
      });
    const body = JSON.stringify(bodies.messages({}));
    expect(await say(body.split(""), "0\r\n\r\n")).toContain("200");
    expect(seen).toHaveLength(1);
    expect(
      await say(
        Array.from({ length: 5_000 }, () => " "),
        "",
      ),
    ).toContain("400");
    expect(seen).toHaveLength(1);
  });
});

describe("a path that would be another one after decoding or normalising", () => {
  async function raw(method: string, path: string): Promise<string> {
    const gateway = await gatewayFor([]);
    const token = gateway.modelsAt("http://x").openai?.apiKey ?? "";
    const body = method === "POST" ? JSON.stringify(bodies.chat({})) : "";
    return new Promise((resolve, reject) => {
      const client = connect(gateway.socket);
      let got = "";
      client.on("data", (chunk) => {
        got += chunk.toString("latin1");
        if (got.includes("\r\n\r\n")) client.destroy();
      });
      client.once("error", reject);
      client.once("close", () => resolve(got.split("\r\n")[0] ?? ""));
      const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`;
      client.write(Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, "latin1"));
    });
  }

  it.each([
    ["GET", "/model/openai/v1/models/.."],
    ["GET", "/model/openai/v1/models/."],
    ["GET", "/model/openai/v1/models/..."],
    ["GET", "/model/google/v1beta/models/.."],
    ["GET", "/model/openai/v1/models/%2e%2e"],
    ["GET", "/model/openai/v1/models/..%2ffiles"],
    ["GET", "/model/openai/v1/models/a%2f..%2f..%2ffiles"],
    ["GET", "/model/openai/v1/models/..;/files"],
    ["GET", "/model/openai/v1/models/gpt;x=1"],
    ["GET", "/model/openai/v1/models//gpt"],
    ["GET", "/model/openai/v1//models"],
    ["GET", "/model/openai//v1/models"],
    ["GET", "//model/openai/v1/models"],
    ["GET", "/model/openai/v1/models/"],
    ["GET", "/model/openai/v1\\models"],
    ["GET", "/model/openai/v1/models%00"],
    ["GET", "/model/openai/v1/models\u00ff"],
    ["GET", "/model/openai/./v1/models"],
    ["GET", "/model/openai/x/../v1/models"],
    ["GET", "/model/OPENAI/v1/models"],
    ["GET", "/model/openai/V1/models"],
    ["GET", "/model/openai/v1/responses/resp_1"],
    ["GET", "/model/openai/v1/responses/resp_1/input_items"],
    ["GET", "/model/openai/v1/conversations/c"],
    ["GET", "/model/openai/v1/files/f/content"],
    ["POST", "/model/openai/v1/responses/resp_1/cancel"],
    ["POST", "/model/openai/v1/chat/completions/"],
    ["POST", "/model/openai/v1/chat/completions%20"],
    ["POST", "/model/openai/v1/chat%2fcompletions"],
    ["POST", "/model/openai/v1/chat/completions/../../files"],
    ["POST", "/model/google/v1beta/models/gemini-3:generateContent:streamGenerateContent"],
    ["POST", "/model/google/v1beta/models/..:generateContent"],
    ["POST", "/model/google/v1beta/tunedModels/x:generateContent"],
    ["POST", "/model/google/v1beta/models/gemini-3:batchGenerateContent"],
    ["POST", "/model/anthropic/v1/messages/batches"],
    ["PUT", "/model/openai/v1/chat/completions"],
    ["HEAD", "/model/openai/v1/models"],
  ])("is refused: %s %s", async (method, path) => {
    expect(await raw(method, path)).toMatch(/ (?:400|404) /u);
    expect(seen).toEqual([]);
  });

  it.each([
    "?alt=sse&alt=json",
    "?alt=media",
    "?$alt=json",
    "?fields=x",
    "?api-version=1",
    "?limit=x",
    "?a%6ct=xx",
    "?limit=1&limit=2",
    "?__proto__=1",
  ])("is refused for its query: %s", async (query) => {
    expect(await raw("GET", `/model/openai/v1/models${query}`)).toContain(" 400 ");
    expect(seen).toEqual([]);
  });

  it("is no path that harnesses use", async () => {
    for (const path of [
      "openai/v1/models",
      "openai/v1/models/ft:gpt-5.1:acme",
      "google/v1beta/models?pageSize=50",
      "anthropic/v1/models?limit=5",
    ])
      expect(await raw("GET", `/model/${path}`)).toContain(" 200 ");
    expect(await raw("POST", "/model/openai/v1/chat/completions")).toContain(" 200 ");
    expect(seen).toHaveLength(5);
  });
});
