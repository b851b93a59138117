import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withoutKey } from "../../src/api/http/auth.ts";
import { createTestApp, type TestApp } from "./app.ts";

let api: TestApp;
let port: number;

beforeAll(async () => {
  api = await createTestApp();
  port = await listen(api.app);
});

afterAll(() => api?.close());

async function listen(app: TestApp["app"]): Promise<number> {
  return Number(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
}

/** What comes back on a connection until the server closes it. */
async function exchange(text: string, to = port): Promise<string> {
  const socket = connect(to, "127.0.0.1");
  socket.write(text);
  return rest(socket);
}

async function rest(socket: Socket): Promise<string> {
  let received = "";
  socket.on("data", (data: Buffer) => (received += data.toString()));
  // Who sent more than is read is reset after the answer.
  socket.on("error", () => {});
  await once(socket, "close");
  return received;
}

const bodyOf = (answer: string): unknown => JSON.parse(answer.slice(answer.lastIndexOf("\r\n\r\n") + 4));
const justAnError = { error: expect.stringMatching(/^.{10,}$/u) };

describe("what can't be read as a request is answered as every error is", () => {
  const host = "Host: localhost\r\n";
  it.each([
    ["a method that is none", `FOO / HTTP/1.1\r\n${host}\r\n`, 400],
    ["headers that are too large", `GET / HTTP/1.1\r\n${host}X: ${"a".repeat(20_000)}\r\n\r\n`, 431],
    ["two lengths", `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx`, 400],
  ])("%s", async (_name, request, status) => {
    const answer = await exchange(request);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `, "u"));
    expect(answer).toContain("X-Request-Id: ");
    expect(bodyOf(answer)).toEqual(justAnError);
  });

  it.each([
    ["no Host", `GET /session/list HTTP/1.1\r\nConnection: close\r\n\r\n`, 400],
    ["no Host for a probe", `GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n`, 400],
    ["an expectation", `GET /session/list HTTP/1.1\r\n${host}Expect: 200-ok\r\n\r\n`, 417],
    ["no key by HTTP/1.0", `GET /session/list HTTP/1.0\r\n${host}\r\n`, 401],
    ["no Host by HTTP/1.0", "GET /session/list HTTP/1.0\r\n\r\n", 421],
  ])("%s", async (_name, request, status) => {
    const answer = await exchange(request);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `, "u"));
    expect(answer).toMatch(/^x-request-id: [0-9a-f-]{36}\r$/imu);
    expect(bodyOf(answer)).toEqual(justAnError);
  });

  it.each([
    ["a path with a broken escape", "/session/%zz?apiKey=hidden", 400],
    ["an id of any length", `/session/${"a".repeat(5_000)}`, 404],
  ])("%s", async (_name, url, status) => {
    const answer = await api.get(url);
    expect(answer).toMatchObject({ status, headers: { "x-request-id": expect.stringMatching(/^[0-9a-f-]{36}$/u) } });
    expect(answer.body).toEqual(justAnError);
    expect(answer.body.error.length).toBeLessThan(300);
    expect(answer.body.error).not.toContain("hidden");
  });

  it("a body that is no UTF-8, of which nothing is made", async () => {
    const headers = { authorization: `Bearer ${api.adminKey}`, "content-type": "application/json" };
    const body = Buffer.from('{"prompt":"caf\u00e9","queueRightAway":false}', "latin1");
    const answer = await fetch(`http://127.0.0.1:${port}/session/create`, { method: "POST", headers, body });
    expect([answer.status, await answer.json()]).toEqual([400, { error: "the body must be UTF-8" }]);
  });

  it("a body that is compressed, with what to do about it", async () => {
    const answer = await api.request("POST", "/session/create", {
      raw: "\u001f",
      headers: { "content-encoding": "gzip" },
    });
    expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining("Content-Encoding: gzip") } });
  });

  it("a Host that is longer than any name", async () => {
    const headers = { host: `${"A".repeat(100_000)}.test` };
    const answer = await api.get("/session/list", { headers });
    expect(answer).toMatchObject({ status: 421, body: { error: expect.stringContaining("OFFSTAGE_HOSTS") } });
  });

  it("a Content-Type that is none", async () => {
    const answer = await api.post("/session/create", { prompt: "x" }, { headers: { "content-type": "garbage" } });
    expect(answer).toMatchObject({ status: 415, body: { error: expect.stringContaining("application/json") } });
  });
});

describe("a method that a path does not have is 405, with those that it has", () => {
  it.each([
    ["PUT", "/session/create", "POST"],
    ["GET", "/session/create", "POST"],
    ["GET", "/session/create/?x=1", "POST"],
    ["DELETE", "/session/list", "GET, HEAD"],
    ["POST", "/session/list", "GET, HEAD"],
    ["OPTIONS", "/api/public-api/session/create", "POST"],
    ["GET", "/automation/any/trigger", "POST"],
    ["PATCH", "/agent/any/trigger", "POST"],
    ["PUT", "/session/3f1f5a2e-0000-4000-8000-000000000000", "GET, HEAD"],
    ["POST", "/me", "GET, HEAD"],
  ] as const)("%s %s", async (method, url, allow) => {
    const answer = await api.app.inject({ method, url, headers: { authorization: `Bearer ${api.adminKey}` } });
    expect([answer.statusCode, answer.headers["allow"]]).toEqual([405, allow]);
    expect(answer.json()).toEqual(justAnError);
  });

  it.each(["/none", "/session", "/session/x/nothing", "/automation//trigger/x"])("and %s is 404", async (url) => {
    expect(await api.post(url, {})).toMatchObject({ status: 404, body: justAnError });
  });
});

it("an unauthenticated caller gets the way to authenticate", async () => {
  for (const call of [{ key: null }, { key: "ofs_wrong" }]) {
    expect(await api.get("/session/list", call)).toMatchObject({
      status: 401,
      headers: { "www-authenticate": "Bearer" },
    });
  }
});

it("HEAD answers as GET does, without a body, and never as a stream", async () => {
  const { body } = await api.post("/session/create", { prompt: "x", queueRightAway: false });
  const headers = { authorization: `Bearer ${api.adminKey}`, accept: "text/event-stream" };
  for (const url of ["/session/list", `/session/${body.id}`, `/session/${body.id}/events`]) {
    const answer = await fetch(`http://127.0.0.1:${port}${url}`, { method: "HEAD", headers });
    expect([url, answer.status, await answer.text()]).toEqual([url, 200, ""]);
  }
});

it("a key in the query is in no log, however its name is encoded", async () => {
  const lines: string[] = [];
  const stream = new Writable({
    write(line: Buffer, _encoding, done) {
      lines.push(line.toString());
      done();
    },
  });
  const app = await api.another({ logger: pino(stream) });
  for (const name of ["apiKey", "%61piKey", "api%4bey", "APIKEY"]) {
    const answer = await app.inject({ url: `/none?x=1&${name}=hidden-value&y=2` });
    expect(answer.body).not.toContain("hidden-value");
  }
  // What the router takes for the same: a path whose letters are escaped, and a # for the query's beginning.
  await app.inject({ method: "POST", url: "/%68ook/hidden-value", payload: {} });
  await app.inject({ url: "/oauth/%72equest/hidden-value" });
  expect(lines.filter((line) => line.includes("/none?x=1"))).toHaveLength(4);
  expect(lines.filter((line) => line.includes("[redacted]"))).toHaveLength(6);
  expect(withoutKey("/none#apiKey=hidden-value&y=2")).toBe("/none#apiKey=[redacted]&y=2");
  expect(lines.join("")).not.toContain("hidden-value");
});

it("a request that comes while the server stops is asked to retry", async () => {
  const app = await api.another();
  const own = await listen(app);
  const socket = connect(own, "127.0.0.1");
  const body = JSON.stringify({ prompt: "under way", queueRightAway: false });
  const head = `Host: localhost\r\nAuthorization: Bearer ${api.adminKey}\r\n`;
  socket.write(
    `POST /session/create HTTP/1.1\r\n${head}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  const [interim] = (await once(socket, "data")) as [Buffer];
  expect(interim.toString()).toContain("100 Continue");
  const all = rest(socket);
  const closed = app.close();
  socket.write(`${body}GET /session/list HTTP/1.1\r\n${head}\r\n`);
  const answers = await all;
  await closed;
  expect(answers).toContain("HTTP/1.1 200 OK");
  expect(answers).toContain("HTTP/1.1 503 Service Unavailable");
  expect(answers).toMatch(/retry-after: 1\r\n/iu);
  expect(bodyOf(answers)).toEqual(justAnError);
});

it("the server stops although a client holds an idle connection", async () => {
  const app = await api.another();
  const own = await listen(app);
  // Without these bounds Node.js would wait for ever, instead of a minute.
  Object.assign(app.server, { headersTimeout: 0, requestTimeout: 0 });
  const accepted = once(app.server, "connection");
  const socket = connect(own, "127.0.0.1");
  await accepted;
  await Promise.all([rest(socket), app.close()]);
});
