import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ModelProviders } from "../../src/domain/agents/model.ts";
import { parseEgressRule, type EgressRule } from "../../src/domain/environments/egress.ts";
import type { RefusedConnection } from "../../src/gateway/egress/egress.ts";
import { openGateway, type Gateway } from "../../src/gateway/gateway.ts";
import { waitFor } from "../wait-for.ts";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

let directory: string;
let upstream: Server;
let address: string;
const seen: Seen[] = [];
const gateways: Gateway[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-gateway-"));
  // Stands for a model's server and for any other host.
  upstream = createServer((request, response) => {
    void text(request).then((body) => {
      seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body });
      if (request.url?.includes("slow") === true) {
        response.write("data: one\n\n");
        setTimeout(() => response.end("data: two\n\n"), 300);
      } else if (request.url?.includes("fail") === true) {
        response.writeHead(529, { "content-type": "application/json", "retry-after": "700" });
        response.end('{"error":{"message":"Overloaded"}}');
      } else if (request.url?.includes("usage") === true) {
        response.end('{"model":"m","usage":{"prompt_tokens":7,"completion_tokens":3}}');
      } else if (request.url?.includes("away") === true) {
        response.writeHead(302, { location: "http://169.254.169.254/latest" }).end();
      } else response.writeHead(200, { "content-type": "application/json", "x-upstream": "yes" }).end('{"ok":true}');
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  address = `127.0.0.1:${(upstream.address() as AddressInfo).port}`;
});

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  seen.length = 0;
});

afterAll(async () => {
  upstream?.close();
  await rm(directory, { recursive: true, force: true });
});

async function open(options: { models?: ModelProviders; allow?: readonly string[]; open?: boolean } = {}) {
  const refused: RefusedConnection[] = [];
  const used: object[] = [];
  const gateway = await openGateway({
    directory,
    models: options.models ?? {},
    egress: {
      open: options.open ?? false,
      rules: (options.allow ?? []).map((rule) => parseEgressRule(rule) as EgressRule),
    },
    onRefused: (refusal) => refused.push(refusal),
    admit: ({ provider }) =>
      Promise.resolve({ outputLimit: null, settle: (usage) => void used.push({ provider, ...usage }) }),
  });
  gateways.push(gateway);
  const token = Object.values(gateway.modelsAt("http://x"))[0]?.apiKey ?? "";
  return { gateway, refused, used, token };
}

interface Asked {
  readonly path: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

function ask(gateway: Gateway, { path, method = "POST", headers = {}, body = '{"model":"m"}' }: Asked) {
  return new Promise<{ status: number; headers: IncomingMessage["headers"]; body: string }>((resolve, reject) => {
    const sent = httpRequest({ socketPath: gateway.socket, path, method, headers }, (answer) => {
      text(answer).then(
        (got) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: got }),
        reject,
      );
    });
    sent.once("error", reject);
    sent.end(method === "GET" ? undefined : body);
  });
}

/** What a raw connection gets back for these bytes. */
function raw(gateway: Gateway, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const client = connect(gateway.socket);
    let got = "";
    client.on("data", (chunk) => {
      got += chunk.toString();
      if (got.includes("\r\n\r\n")) client.end();
    });
    client.once("close", () => resolve(got));
    client.once("error", reject);
    client.write(bytes);
  });
}

const models = (): ModelProviders => ({
  anthropic: { apiKey: "real-anthropic-key", baseUrl: `http://${address}` },
  openai: { apiKey: "real-openai-key", baseUrl: `http://${address}/v1` },
  google: { apiKey: "real-google-key", baseUrl: `http://${address}` },
  compatible: { apiKey: "real-other-key", baseUrl: `http://${address}/api/v1` },
});

describe("a request of a model", () => {
  it.each([
    [
      "anthropic",
      "/model/anthropic/v1/messages?beta=true",
      "x-api-key",
      "/v1/messages?beta=true",
      "real-anthropic-key",
    ],
    ["openai", "/model/openai/v1/responses", "authorization", "/v1/responses", "Bearer real-openai-key"],
    [
      "google",
      "/model/google/v1beta/models/gemini-3:streamGenerateContent?alt=sse",
      "x-goog-api-key",
      "/v1beta/models/gemini-3:streamGenerateContent?alt=sse",
      "real-google-key",
    ],
    [
      "compatible",
      "/model/compatible/v1/chat/completions",
      "authorization",
      "/api/v1/chat/completions",
      "Bearer real-other-key",
    ],
  ])("goes to %s with the real key in the token's place", async (provider, path, header, arrives, key) => {
    const { gateway, token } = await open({ models: models() });
    const shown = header === "authorization" ? `Bearer ${token}` : token;
    const bodies: Record<string, string> = { google: '{"contents":[]}', openai: '{"model":"m","store":false}' };
    const body = bodies[provider] ?? '{"model":"m"}';
    const answer = await ask(gateway, { path, headers: { [header]: shown, "x-stainless-lang": "js" }, body });
    expect(answer).toMatchObject({ status: 200, body: '{"ok":true}', headers: { "x-upstream": "yes" } });
    expect(seen).toMatchObject([
      { method: "POST", url: arrives, body, headers: { [header]: key, "x-stainless-lang": "js" } },
    ]);
    expect(JSON.stringify(seen)).not.toContain(token);
  });

  it("with Gemini's key in the query has it taken out", async () => {
    const { gateway, token } = await open({ models: models() });
    await ask(gateway, { path: `/model/google/v1beta/models/g:generateContent?key=${token}`, body: "{}" });
    expect(seen).toMatchObject([
      { url: "/v1beta/models/g:generateContent", headers: { "x-goog-api-key": "real-google-key" } },
    ]);
  });

  it.each([
    ["no token", {}],
    ["a forged one", { authorization: "Bearer offstage-session-forged" }],
    ["a real key", { "x-api-key": "real-anthropic-key" }],
  ])("with %s is refused and goes nowhere", async (_, headers) => {
    const { gateway } = await open({ models: models() });
    expect(await ask(gateway, { path: "/model/anthropic/v1/messages", headers })).toMatchObject({ status: 401 });
    expect(seen).toEqual([]);
  });

  it("with another session's token is refused", async () => {
    const [mine, theirs] = [await open({ models: models() }), await open({ models: models() })];
    const headers = { "x-api-key": theirs.token };
    expect((await ask(mine.gateway, { path: "/model/anthropic/v1/messages", headers })).status).toBe(401);
    expect(seen).toEqual([]);
  });

  it.each([
    "/model/anthropic/v1/organizations/users",
    "/model/anthropic/v1/files",
    "/model/openai/v1/files",
    "/model/openai/v1/fine_tuning/jobs",
    "/model/openai/v1/../admin",
    "/model/anthropic/v1/messages/../../admin",
    "/model/google/v1beta/corpora",
    "/model/nobody/v1/messages",
    "/model/anthropic//evil.example/v1/messages",
    "/model/",
  ])("for %s is refused: a key opens more than models", async (path) => {
    const { gateway, token } = await open({ models: models() });
    expect((await ask(gateway, { path, headers: { "x-api-key": token } })).status).toBe(404);
    expect(seen).toEqual([]);
  });

  it.each([
    ["GET", "/model/openai/v1/chat/completions"],
    ["DELETE", "/model/openai/v1/models/ft:gpt-5:acme"],
    ["POST", "/model/openai/v1/models/gpt-5"],
    ["PATCH", "/model/google/v1beta/models/tuned"],
    ["DELETE", "/model/anthropic/v1/messages"],
  ])("by %s %s is refused: what was stored with the key is not the session's", async (method, path) => {
    const { gateway, token } = await open({ models: models() });
    expect((await ask(gateway, { path, method, headers: { "x-api-key": token } })).status).toBe(404);
    expect(seen).toEqual([]);
  });

  it("for the models that there are is let through", async () => {
    const { gateway, token } = await open({ models: models() });
    for (const path of ["/model/openai/v1/models", "/model/google/v1beta/models/g", "/model/anthropic/v1/models/c"])
      expect((await ask(gateway, { path, method: "GET", headers: { "x-api-key": token } })).status).toBe(200);
  });

  it("is passed on as it streams, not when it is over", async () => {
    const { gateway, token } = await open({ models: { compatible: { baseUrl: `http://${address}/slow/v1` } } });
    const first = await new Promise<string>((resolve) => {
      const sent = httpRequest(
        {
          socketPath: gateway.socket,
          path: "/model/compatible/v1/responses",
          method: "POST",
          headers: { authorization: `Bearer ${token}` },
        },
        (answer) => answer.once("data", (chunk: Buffer) => resolve(chunk.toString())),
      );
      sent.end('{"model":"m"}');
    });
    expect(first).toBe("data: one\n\n");
  });

  it("is metered by the provider's own count, while the answer passes unchanged", async () => {
    const { gateway, token, used } = await open({ models: { compatible: { baseUrl: `http://${address}/usage/v1` } } });
    const answer = await ask(gateway, {
      path: "/model/compatible/v1/responses",
      headers: { authorization: `Bearer ${token}`, "accept-encoding": "gzip, br" },
    });
    expect(JSON.parse(answer.body)).toEqual({ model: "m", usage: { prompt_tokens: 7, completion_tokens: 3 } });
    expect(seen.at(-1)?.headers).toMatchObject({ "accept-encoding": "identity" });
    expect(used).toMatchObject([{ provider: "compatible", model: "m", inputTokens: 7, outputTokens: 3 }]);
  });

  it("that fails is passed on whole, and counted with its words", async () => {
    const { gateway, token } = await open({ models: { compatible: { baseUrl: `http://${address}/fail/v1` } } });
    const answer = await ask(gateway, {
      path: "/model/compatible/v1/responses",
      headers: { authorization: `Bearer ${token}` },
    });
    expect(answer).toMatchObject({ status: 529, headers: { "retry-after": "700" } });
    expect(await gateway.traffic()).toMatchObject({ answered: 0, failed: 1, lastError: "Overloaded (HTTP 529)" });
  });

  it("to a server that is down is reported as such", async () => {
    const { gateway, token } = await open({ models: { compatible: { baseUrl: "http://127.0.0.1:1/v1" } } });
    const answer = await ask(gateway, {
      path: "/model/compatible/v1/responses",
      headers: { authorization: `Bearer ${token}` },
    });
    expect(answer.status).toBe(502);
    expect((await gateway.traffic()).lastError).toContain("could not be reached");
  });

  it("shows the sandbox addresses as each maker's programs expect them, and no real key", async () => {
    const { gateway, token } = await open({ models: models() });
    const reached = gateway.modelsAt("http://127.0.0.1:7");
    expect(reached).toEqual({
      anthropic: { apiKey: token, baseUrl: "http://127.0.0.1:7/model/anthropic" },
      openai: { apiKey: token, baseUrl: "http://127.0.0.1:7/model/openai/v1" },
      google: { apiKey: token, baseUrl: "http://127.0.0.1:7/model/google" },
      compatible: { apiKey: token, baseUrl: "http://127.0.0.1:7/model/compatible/v1" },
    });
  });
});

describe("the way out", () => {
  const get = (host: string) => ({ path: `http://${host}/`, method: "GET" });

  it("leads only to addresses of the list, and reports what it refused", async () => {
    const { gateway, refused } = await open();
    expect((await ask(gateway, get("example.com"))).status).toBe(403);
    expect(await raw(gateway, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")).toContain("403");
    expect(refused).toEqual([
      { host: "example.com", port: 80, reason: "not allowed" },
      { host: "example.com", port: 443, reason: "not allowed" },
    ]);
  });

  it("leads to an address that an operator wrote down, private or not", async () => {
    const { gateway, refused } = await open({ allow: [address] });
    expect(await ask(gateway, get(address))).toMatchObject({ status: 200, headers: { "x-upstream": "yes" } });
    const tunnelled = await raw(gateway, `CONNECT ${address} HTTP/1.1\r\nHost: ${address}\r\n\r\n`);
    expect(tunnelled).toContain("200 Connection established");
    expect(refused).toEqual([]);
  });

  it.each([
    "127.0.0.1",
    "localhost",
    "LOCALHOST.",
    "0.0.0.0",
    "0x7f.1",
    "2130706433",
    "0177.0.0.1",
    "127.1",
    "169.254.169.254",
    "metadata.google.internal",
    "10.0.0.1",
    "192.168.0.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::7f00:1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
  ])("never leads to %s, even where every public host is open", async (host) => {
    const { gateway } = await open({ open: true });
    const answers = [
      await raw(gateway, `CONNECT ${host}:80 HTTP/1.1\r\nHost: x\r\n\r\n`),
      String((await ask(gateway, get(host))).status),
    ];
    for (const answer of answers) expect(answer).toMatch(/40[03]|502/u);
    expect(seen).toEqual([]);
  });

  it("does not follow a name that is allowed to an address that is private", async () => {
    const { gateway, refused } = await open({ allow: [`localhost:${address.split(":")[1]}`] });
    expect((await ask(gateway, get(`localhost:${address.split(":")[1]}`))).status).toBe(403);
    expect(refused).toMatchObject([{ host: "localhost", reason: "private address" }]);
    expect(seen).toEqual([]);
  });

  it("passes a redirect on instead of following it", async () => {
    const { gateway } = await open({ allow: [address] });
    const answer = await ask(gateway, { path: `http://${address}/away`, method: "GET" });
    expect(answer).toMatchObject({ status: 302, headers: { location: "http://169.254.169.254/latest" } });
  });

  it.each([
    "example.com",
    "example.com:",
    "example.com:0",
    "example.com:99999",
    "user@example.com:443",
    "example.com:443/path",
    "http://example.com:443",
    "exa mple.com:443",
    ":443",
    "[::1:443",
  ])("takes no CONNECT to %j", async (target) => {
    const { gateway } = await open({ open: true });
    expect(await raw(gateway, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(/^HTTP\/1\.1 40[03]/u);
  });

  it.each(["ftp://example.com/", "file:///etc/passwd", "unix:/var/run/docker.sock", "https://example.com/"])(
    "forwards no %s",
    async (path) => {
      const { gateway } = await open({ open: true });
      expect((await ask(gateway, { path, method: "GET" })).status).toBe(400);
    },
  );

  it("checks the host of the address, whatever the Host header says", async () => {
    const { gateway } = await open({ allow: [address] });
    const answer = await raw(gateway, `GET http://example.com/ HTTP/1.1\r\nHost: ${address}\r\n\r\n`);
    expect(answer).toContain("403");
    await ask(gateway, { path: `http://${address}/`, method: "GET", headers: { host: "example.com" } });
    expect(seen.at(-1)?.headers.host).toBe(address);
  });

  it("forwards no headers of a proxy's own", async () => {
    const { gateway } = await open({ allow: [address] });
    await ask(gateway, { path: `http://${address}/`, method: "GET", headers: { "proxy-authorization": "Basic eA==" } });
    expect(seen.at(-1)?.headers).not.toHaveProperty("proxy-authorization");
  });
});

it("is closed with its connections, and leaves no socket", async () => {
  const { gateway } = await open();
  const client = connect(gateway.socket);
  await new Promise<void>((resolve) => client.once("connect", () => resolve()));
  const gone = new Promise<void>((resolve) => client.once("close", () => resolve()));
  await gateway.close();
  await gone;
  await expect(ask(gateway, { path: "/" })).rejects.toMatchObject({ code: "ENOENT" });
});

it("has no more connections of one sandbox than leave descriptors to others", async () => {
  const { gateway } = await open();
  const clients: Socket[] = [];
  for (let count = 0; count < 1_200; count += 1) {
    const client = connect(gateway.socket).on("error", () => undefined);
    clients.push(client);
    await new Promise<void>((resolve) => client.once("connect", resolve).once("close", () => resolve()));
  }
  const opened = () => clients.filter((client) => client.readyState === "open").length;
  await waitFor(() => opened() <= 1_000, "those that are too many are closed");
  await pause(300);
  expect(opened()).toBe(1_000);
  clients[0]?.destroy();
  // Once the gateway has heard of that.
  const answered = () =>
    ask(gateway, { path: "/" })
      .then(({ status }) => status)
      .catch(() => null);
  expect(await waitFor(answered, "another is taken in its place")).toBe(404);
  for (const client of clients) client.destroy();
});

it("names the folder that is too long for a socket", async () => {
  const options = {
    directory: join(directory, "x".repeat(120)),
    models: {},
    egress: { open: false, rules: [] },
    onRefused: () => undefined,
  };
  await expect(openGateway(options)).rejects.toMatchObject({
    code: "invalid_input",
    message: expect.stringContaining("OFFSTAGE_DATA") as string,
  });
});
