import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { parseEgressRule, type EgressRule } from "../../src/domain/environments/egress.ts";
import { openGateway, type Gateway } from "../../src/gateway/gateway.ts";
import { waitFor } from "../wait-for.ts";

/** What one connection to the host brought it. */
interface Seen {
  bytes: Buffer;
}

/** A machine that serves two allowed hosts, and others that are not, and keeps every connection open for more. */
let directory: string;
let machine: Server;
let port: number;
let gateway: Gateway;
const seen: Seen[] = [];
const open = new Set<Socket>();
const plainAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
let answer: (connection: Seen, index: number) => string = () => plainAnswer;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-forwarding-"));
  machine = createServer((socket) => {
    const connection: Seen = { bytes: Buffer.alloc(0) };
    const index = seen.push(connection) - 1;
    open.add(socket);
    socket.on("error", () => undefined).once("close", () => open.delete(socket));
    let answered = 0;
    socket.on("data", (bytes: Buffer) => {
      connection.bytes = Buffer.concat([connection.bytes, bytes]);
      const whole = requestsIn(connection.bytes);
      for (; answered < whole.length; answered += 1) socket.write(answer(connection, index), "latin1");
    });
  });
  await new Promise<void>((resolve) => machine.listen(0, "127.0.0.1", resolve));
  port = (machine.address() as AddressInfo).port;
  gateway = await openGateway({
    directory,
    models: {},
    egress: {
      open: false,
      rules: [`one.example:${port}`, `two.example:${port}`].map((rule) => parseEgressRule(rule) as EgressRule),
    },
    onRefused: () => undefined,
    resolve: () => Promise.resolve({ address: "127.0.0.1" }),
  });
});

beforeEach(() => {
  answer = () => plainAnswer;
  seen.length = 0;
});

afterAll(async () => {
  await gateway?.close();
  for (const socket of open) socket.destroy();
  machine?.close();
  await rm(directory, { recursive: true, force: true });
});

interface ReadRequest {
  readonly line: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** The requests that a server makes of these bytes, read by the letter of RFC 9112, section 6; what is not whole is left out. */
function requestsIn(bytes: Buffer): ReadRequest[] {
  let rest = bytes.toString("latin1");
  const found: ReadRequest[] = [];
  for (let end = rest.indexOf("\r\n\r\n"); end >= 0; end = rest.indexOf("\r\n\r\n")) {
    const [line = "", ...lines] = rest.slice(0, end).split("\r\n");
    const headers = new Map(
      lines.map((each): [string, string] => {
        const [name = "", value = ""] = each.split(/:\s*(.*)/su);
        return [name.toLowerCase(), value];
      }),
    );
    rest = rest.slice(end + 4);
    let body = "";
    if (headers.has("transfer-encoding")) {
      const chunks = /^(?:[1-9a-f][0-9a-f]*\r\n[\s\S]*?\r\n)*?0\r\n\r\n/iu.exec(rest);
      if (chunks === null) return found;
      body = chunks[0];
    } else if (headers.has("content-length")) {
      body = rest.slice(0, Number(headers.get("content-length")));
      if (body.length < Number(headers.get("content-length"))) return found;
    }
    rest = rest.slice(body.length);
    found.push({ line, headers, body });
  }
  return found;
}

/** Sends raw bytes to the gateway and hears it until nothing more comes: the last request asks for the end. */
async function send(bytes: string, isOver: (heard: string) => boolean): Promise<string> {
  const client = connect(gateway.socket);
  let heard = "";
  let isClosed = false;
  client.on("data", (chunk: Buffer) => (heard += chunk.toString("latin1")));
  client.on("error", () => undefined).once("close", () => (isClosed = true));
  client.write(bytes, "latin1");
  await waitFor(() => isClosed || isOver(heard), "the gateway answered");
  client.destroy();
  return heard;
}

const statuses = (heard: string): string[] => heard.match(/HTTP\/1\.1 \d{3}/gu) ?? [];
const heads = (count: number) => (heard: string) =>
  statuses(heard).filter((status) => !status.endsWith("100")).length >= count;

const get = (host: string, path: string, more = ""): string =>
  `GET http://${host}:${port}${path} HTTP/1.1\r\nHost: ${host}:${port}\r\n${more}\r\n`;

it("an unrequested answer is not taken for the next request's", async () => {
  const poisoned = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\npoisoned";
  answer = (_, index) => (index === 0 ? `${plainAnswer}${poisoned}` : plainAnswer);
  for (const host of ["one.example", "two.example", "one.example"]) {
    const heard = await send(get(host, "/"), heads(1));
    expect(heard).toContain("ok");
    expect(heard).not.toContain("poisoned");
  }
});

it("each request has its own connection, also of those that share the address", async () => {
  const hosts = ["one.example", "two.example", "one.example"];
  await send(hosts.map((host) => get(host, `/${host}`)).join(""), heads(3));
  const requests = seen.map(({ bytes }) => requestsIn(bytes));
  expect(requests.map((each) => each.length)).toEqual([1, 1, 1]);
  for (const request of requests.flat()) {
    expect(`GET /${request.headers.get("host")?.replace(`:${port}`, "")} HTTP/1.1`).toBe(request.line);
  }
});

const inner = "GET /smuggled HTTP/1.1\r\nHost: other.example\r\n\r\n";
const chunked = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
const lengthOf = (text: string): string => `Content-Length: ${text.length}\r\n`;

/** Requests that two readers may cut at different places: head lines and body. */
const ambiguous: [string, string, string][] = [
  ["a length and chunks", `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n`, chunked],
  ["chunks and a length", `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n`, chunked],
  ["two lengths", `${lengthOf(inner)}Content-Length: 0\r\n`, inner],
  ["a list of lengths", `Content-Length: ${inner.length}, ${inner.length}\r\n`, inner],
  ["a length with a sign", `Content-Length: +${inner.length}\r\n`, inner],
  ["a length that its Connection header takes away", `${lengthOf(inner)}Connection: close, Content-Length\r\n`, inner],
  [
    "chunks that its Connection header takes away",
    "Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding\r\n",
    chunked,
  ],
  ["chunks by another name", "Transfer-Encoding: xchunked\r\n", chunked],
  ["chunks twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked],
  ["chunks that are not last", "Transfer-Encoding: chunked, identity\r\n", chunked],
  ["chunks behind a compression", "Transfer-Encoding: gzip, chunked\r\n", chunked],
  ["chunks with a blank before the colon", "Transfer-Encoding : chunked\r\n", chunked],
  ["a folded line", "Transfer-Encoding:\r\n chunked\r\n", chunked],
  ["a folded line with a header in it", `X-Folded: a\r\n Content-Length: 3\r\n${lengthOf(inner)}`, inner],
  ["lines that end in a line feed", `X-A: b\nContent-Length: ${inner.length}\r\n`, inner],
  ["a carriage return in a value", `X-A: b\rContent-Length: 0\r\n${lengthOf(inner)}`, inner],
  ["a chunk's extension", "Transfer-Encoding: chunked\r\n", chunked.replace("\r\n", ";a=b\r\n")],
  ["a chunk's length with much before it", "Transfer-Encoding: chunked\r\n", `0x${chunked}`],
  ["a trailer", "Transfer-Encoding: chunked\r\nTrailer: Host\r\n", `5\r\nhello\r\n0\r\nHost: other.example\r\n\r\n`],
  ["a change of protocol", `Connection: Upgrade\r\nUpgrade: websocket\r\n`, inner],
  ["a change to HTTP/2", `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n`, inner],
  ["a wait for the server", `Expect: 100-continue\r\n${lengthOf(inner)}`, inner],
  ["no length at all", "", inner],
];

it.each(
  ["GET", "POST", "HEAD", "DELETE", "OPTIONS"].flatMap((method) => ambiguous.map((each) => [method, ...each] as const)),
)("a %s with %s is one request for the host that was allowed, or none", async (method, _, lines, body) => {
  const first = `${method} http://one.example:${port}/first HTTP/1.1\r\nHost: other.example\r\n${lines}\r\n${body}`;
  await send(`${first}${get("two.example", "/last", "Connection: close\r\n")}`, (heard) => heads(2)(heard));
  for (const { bytes } of seen) {
    const requests = requestsIn(bytes);
    expect(requests.length).toBeLessThanOrEqual(1);
    for (const { headers, line, body: carried } of requests) {
      expect(bytes.length).toBe(bytes.indexOf("\r\n\r\n") + 4 + carried.length);
      expect(headers.get("host")).toMatch(/^(?:one|two)\.example:\d+$/u);
      expect(line).not.toContain("smuggled");
      expect(headers.has("content-length") && headers.has("transfer-encoding")).toBe(false);
      for (const name of ["upgrade", "http2-settings", "trailer"]) expect([...headers.keys()]).not.toContain(name);
    }
  }
});

it("a whole address is for its own host, whatever the header for the host says", async () => {
  await send(`GET http://one.example:${port}/ HTTP/1.1\r\nHost: two.example\r\nConnection: close\r\n\r\n`, heads(1));
  const [request] = seen.map(({ bytes }) => requestsIn(bytes)[0]);
  expect(request?.headers.get("host")).toBe(`one.example:${port}`);
});

it("what a server says of its own connection is not said to the sandbox", async () => {
  answer = () =>
    "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=600\r\nUpgrade: h2c\r\nTrailer: X-End\r\n" +
    "Proxy-Authenticate: Basic\r\nX-Kept: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n" +
    "2\r\nok\r\n0\r\nX-End: 1\r\n\r\n";
  const heard = await send(
    `${get("one.example", "/")}${get("two.example", "/", "Connection: close\r\n")}`,
    (all) => all.split("0\r\n\r\n").length > 2,
  );
  expect(statuses(heard)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200"]);
  expect(heard).toMatch(/x-kept: 1/iu);
  expect(heard.match(/set-cookie/giu)).toHaveLength(4);
  expect(heard).not.toMatch(/x-hop|timeout=600|h2c|x-end|proxy-authenticate/iu);
});

it.each([
  [
    "two headers of which one is a length",
    "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
  ],
  ["a compression of the transfer", "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
  ["a line in a header's value", "X-A: b\rSet-Cookie: c\r\nContent-Length: 2\r\n\r\nok"],
])("an answer with %s is not handed on as something else", async (_, rest) => {
  answer = () => `HTTP/1.1 200 OK\r\n${rest}`;
  const heard = await send(get("one.example", "/", "Connection: close\r\n"), heads(1));
  expect(statuses(heard)).toEqual(["HTTP/1.1 502"]);
});

it("information before an answer is no answer", async () => {
  answer = () =>
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${plainAnswer}`;
  const heard = await send(get("one.example", "/", "Connection: close\r\n"), (all) => all.endsWith("ok"));
  expect(statuses(heard)).toEqual(["HTTP/1.1 200"]);
});

it.each(["\t", "\f", "\x80", "#", "\\", '"'])("a path in a tunnel with %j in it ends no process", async (odd) => {
  const heard = await send(
    `CONNECT one.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n` +
      `GET /a${odd}b HTTP/1.1\r\nHost: one.example:${port}\r\nConnection: close\r\n\r\n`,
    (all) => statuses(all).length > 1,
  );
  expect(statuses(heard)[1]).toMatch(/200|400/u);
  expect(await send(get("one.example", "/", "Connection: close\r\n"), heads(1))).toContain("ok");
});
