import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createHttpServer, request as httpRequest, type Server as HttpServer } from "node:http";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { parseEgressRule, type EgressRule } from "../../src/domain/environments/egress.ts";
import type { RefusedConnection } from "../../src/gateway/egress/egress.ts";
import { openGateway, type Gateway } from "../../src/gateway/gateway.ts";
import { waitFor } from "../wait-for.ts";

/** A machine that serves many hosts at one address, as those of registries do. */
let directory: string;
let shared: Server;
let plain: HttpServer;
let raw: Server;
const served: (string | false | null)[] = [];
const asked: string[] = [];
let received = Buffer.alloc(0);
let answerRaw: (socket: Socket, bytes: Buffer) => void = () => undefined;

/** Without a certificate, which a test would have to carry. */
const anonymous = { ciphers: "ADH-AES256-GCM-SHA384:@SECLEVEL=0", maxVersion: "TLSv1.2" } as const;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-tunnels-"));
  shared = createTlsServer({ ...anonymous, dhparam: "auto" }, (socket) => {
    served.push(socket.servername);
    socket.on("error", () => undefined).once("data", () => socket.end(`served ${String(socket.servername)}`));
  });
  shared.on("tlsClientError", () => undefined);
  plain = createHttpServer((request, response) => {
    asked.push(`${request.headers.host} ${request.url}`);
    response.end(`asked as ${request.headers.host}`);
  });
  raw = createServer((socket) => {
    socket
      .on("error", () => undefined)
      .on("data", (bytes) => {
        received = Buffer.concat([received, bytes]);
        answerRaw(socket, bytes);
      });
  });
  for (const server of [shared, plain, raw])
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

let gateway: Gateway;
const refused: RefusedConnection[] = [];

const portOf = (server: Server | HttpServer): number => (server.address() as AddressInfo).port;

async function open(...allowed: string[]): Promise<void> {
  await gateway?.close();
  gateway = await openGateway({
    directory,
    models: {},
    egress: { open: false, rules: allowed.map((rule) => parseEgressRule(rule) as EgressRule) },
    onRefused: (refusal) => refused.push(refusal),
    // Every name of the tests leads to this machine, as if it were a public address.
    resolve: () => Promise.resolve({ address: "127.0.0.1" }),
  });
}

beforeEach(() => {
  answerRaw = () => undefined;
  received = Buffer.alloc(0);
  for (const list of [refused, served, asked]) list.length = 0;
});

afterEach(async () => gateway?.close());

afterAll(async () => {
  for (const server of [shared, plain, raw]) server?.close();
  await rm(directory, { recursive: true, force: true });
});

/** A tunnel through the gateway, once it is established. */
function tunnel(target: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ socketPath: gateway.socket, method: "CONNECT", path: target, agent: false });
    sent.once("connect", (answer, socket) => {
      if (answer.statusCode === 200) resolve(socket);
      else reject(new Error(`CONNECT was answered ${answer.statusCode}`));
    });
    sent.once("error", reject).end();
  });
}

/** What an encrypted connection through the tunnel got, or why it came to nothing. */
async function overTls(target: string, servername: string): Promise<string> {
  const socket = await tunnel(target);
  return new Promise((resolve) => {
    let got = "";
    const client = connectTls({
      socket,
      servername,
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
      ...anonymous,
    });
    client.once("secureConnect", () => client.write("stolen data"));
    client.on("data", (chunk: Buffer) => (got += chunk.toString()));
    client.once("error", (error) => resolve(error.message));
    client.once("close", () => resolve(got));
  });
}

/** What comes back for raw bytes, until the other side ends. */
async function overRaw(target: string, ...parts: (string | Buffer)[]): Promise<string> {
  const socket = await tunnel(target);
  return new Promise((resolve) => {
    let got = "";
    socket.on("data", (chunk: Buffer) => (got += chunk.toString("latin1")));
    socket.on("error", () => undefined).once("close", () => resolve(got));
    for (const part of parts) socket.write(part);
  });
}

it("a tunnel serves the host that was allowed, and no other at the same address", async () => {
  const place = `registry.example:${portOf(shared)}`;
  await open(place);
  expect(await overTls(place, "registry.example")).toBe("served registry.example");
  expect(await overTls(place, "attacker-tenant.example")).toMatch(/unrecognized name/iu);
  expect(await overTls(place, "REGISTRY.example")).toBe("served REGISTRY.example");
  expect(served).toEqual(["registry.example", "REGISTRY.example"]);
  expect(refused).toEqual([
    { host: "registry.example", port: portOf(shared), reason: "other name", named: "attacker-tenant.example" },
  ]);
});

it("a tunnel whose connection names no host is refused, unless the operator lets any protocol through", async () => {
  const place = `registry.example:${portOf(shared)}`;
  await open(place);
  expect(await overTls(place, "")).toMatch(/unrecognized name/iu);
  expect(refused).toMatchObject([{ reason: "no name" }]);
  await open(`${place}/tcp`);
  expect(await overTls(place, "")).toBe("served false");
  // The control: this is what the refused connections were after.
  expect(await overTls(place, "attacker-tenant.example")).toBe("served attacker-tenant.example");
});

it("a tunnel to an address needs no name, and takes no other", async () => {
  const place = `127.0.0.1:${portOf(shared)}`;
  await open(place);
  expect(await overTls(place, "")).toBe("served false");
  expect(await overTls(place, "attacker-tenant.example")).toMatch(/unrecognized name/iu);
});

it("a tunnel under a wildcard serves the one host that it was opened to", async () => {
  const port = portOf(shared);
  await open(`*.registry.example:${port}`);
  expect(await overTls(`a.registry.example:${port}`, "a.registry.example")).toBe("served a.registry.example");
  expect(await overTls(`a.registry.example:${port}`, "b.registry.example")).toMatch(/unrecognized name/iu);
});

it("where every public host is open, a tunnel carries what it likes", async () => {
  await gateway?.close();
  gateway = await openGateway({
    directory,
    models: {},
    egress: { open: true, rules: [] },
    onRefused: (refusal) => refused.push(refusal),
    resolve: () => Promise.resolve({ address: "127.0.0.1" }),
  });
  expect(await overTls(`registry.example:${portOf(shared)}`, "other.example")).toBe("served other.example");
});

/** The first message of an OpenSSL client for a host, as bytes. */
async function helloFor(servername: string): Promise<Buffer> {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const hello = new Promise<Buffer>((resolve) => {
    listener.once("connection", (socket) => {
      socket
        .on("error", () => undefined)
        .once("data", (bytes) => {
          resolve(bytes);
          socket.destroy();
        });
    });
  });
  connectTls({ host: "127.0.0.1", port: portOf(listener), servername, rejectUnauthorized: false }).on(
    "error",
    () => undefined,
  );
  const bytes = await hello;
  listener.close();
  return bytes;
}

/** A ServerHello by which a server asks for a second ClientHello (RFC 8446, section 4.1.4). */
const retry = Buffer.concat([
  Buffer.from([22, 3, 3, 0, 44, 2, 0, 0, 40, 3, 3]),
  createHash("sha256").update("HelloRetryRequest").digest(),
  Buffer.from([0, 0x13, 1, 0, 0, 0]),
]);

it("a tunnel looks at the second ClientHello too, which a server may ask for", async () => {
  const place = `registry.example:${portOf(raw)}`;
  await open(place);
  const [allowed, other] = [await helloFor("registry.example"), await helloFor("attacker-tenant.example")];
  const changeCipherSpec = Buffer.from([20, 3, 3, 0, 1, 1]);
  for (const second of [other, allowed]) {
    received = Buffer.alloc(0);
    answerRaw = (socket, bytes) => {
      // To the first one, and to what comes after the second.
      if (bytes.equals(allowed) && received.equals(allowed)) socket.write(retry);
      else socket.end("seen");
    };
    const socket = await tunnel(place);
    let got = Buffer.alloc(0);
    const closed = new Promise<void>((resolve) => socket.on("error", () => undefined).once("close", () => resolve()));
    socket.on("data", (chunk: Buffer) => (got = Buffer.concat([got, chunk])));
    socket.write(allowed);
    await waitFor(() => got.includes(retry), "the server asked for another");
    socket.write(Buffer.concat([changeCipherSpec, second]));
    if (second === allowed) await waitFor(() => got.includes("seen"), "the server was reached");
    socket.end();
    await closed;
    expect(received.includes("attacker-tenant.example")).toBe(false);
    expect(received.length).toBe(second === allowed ? 2 * allowed.length + changeCipherSpec.length : allowed.length);
  }
  expect(refused).toMatchObject([{ reason: "other name", named: "attacker-tenant.example" }]);
});

it.each<[string, (bytes: Buffer) => Buffer]>([
  ["behind a warning", (bytes) => Buffer.concat([Buffer.from([21, 3, 3, 0, 2, 1, 112]), bytes])],
  [
    "over two records",
    (bytes) =>
      Buffer.concat([
        Buffer.from([22, 3, 3, 0, 3]),
        bytes.subarray(5, 8),
        Buffer.from([22, 3, 3, 0, 41]),
        bytes.subarray(8),
      ]),
  ],
])("a tunnel looks at the second ClientHello, also if the server asks for it %s", async (_, written) => {
  const place = `registry.example:${portOf(raw)}`;
  await open(place);
  const [allowed, other] = [await helloFor("registry.example"), await helloFor("attacker-tenant.example")];
  answerRaw = (socket) => void socket.write(written(retry));
  const socket = await tunnel(place);
  let got = Buffer.alloc(0);
  const closed = new Promise<void>((resolve) => socket.on("error", () => undefined).once("close", () => resolve()));
  socket.on("data", (chunk: Buffer) => (got = Buffer.concat([got, chunk])));
  socket.write(allowed);
  await waitFor(() => got.includes(written(retry)), "the server asked for another");
  socket.write(other);
  socket.end();
  await closed;
  expect(received.equals(allowed)).toBe(true);
  expect(refused).toMatchObject([{ reason: "other name", named: "attacker-tenant.example" }]);
});

it("a tunnel lets no second ClientHello through that came with the first, before the server asked for it", async () => {
  const place = `registry.example:${portOf(raw)}`;
  await open(place);
  const [allowed, other] = [await helloFor("registry.example"), await helloFor("attacker-tenant.example")];
  answerRaw = (socket) => void socket.write(retry);
  const applicationData = Buffer.from([23, 3, 3, 0, 1, 7]);
  await overRaw(place, Buffer.concat([allowed, other]), Buffer.concat([applicationData, allowed]));
  expect(received.equals(allowed)).toBe(true);
  expect(refused).toMatchObject([{ reason: "other name", named: "attacker-tenant.example" }]);
});

it("a tunnel keeps what a client sends with its first message until the server has answered", async () => {
  const place = `registry.example:${portOf(raw)}`;
  await open(place);
  const allowed = await helloFor("registry.example");
  const earlyData = Buffer.from([23, 3, 3, 0, 1, 7]);
  const serverHello = Buffer.concat([Buffer.from([22, 3, 3, 0, 44, 2, 0, 0, 40, 3, 3]), Buffer.alloc(38, 1)]);
  const fatal = Buffer.from([21, 3, 3, 0, 2, 2, 40]);
  for (const answer of [serverHello, fatal, Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")]) {
    received = Buffer.alloc(0);
    answerRaw = (socket) => {
      if (received.equals(allowed)) socket.write(answer);
      else socket.end("seen");
    };
    expect(await overRaw(place, Buffer.concat([allowed, earlyData]))).toBe(`${answer.toString("latin1")}seen`);
    expect(received.equals(Buffer.concat([allowed, earlyData]))).toBe(true);
  }
});

it("a tunnel brings nothing to a host before it has shown whom it is for, however its first message is cut", async () => {
  const place = `registry.example:${portOf(raw)}`;
  await open(place);
  const hello = await helloFor("registry.example");
  const socket = await tunnel(place);
  socket.setNoDelay(true);
  for (let at = 0; at < hello.length - 1; at += 7) socket.write(hello.subarray(at, Math.min(at + 7, hello.length - 1)));
  const other = await overRaw(place, "SSH-2.0-x\r\n");
  expect(received.length).toBe(0);
  expect(other).toBe("");
  socket.write(hello.subarray(hello.length - 1));
  await waitFor(() => received.equals(hello), "the host has it all");
  socket.destroy();
});

it.each([
  ["another protocol", "SSH-2.0-OpenSSH\r\n"],
  ["a broken ClientHello", Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0])],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
])("a tunnel with %s reaches no host, unless the operator lets any protocol through", async (_, bytes) => {
  const place = `registry.example:${portOf(raw)}`;
  await open(place);
  await overRaw(place, bytes);
  expect(received.length).toBe(0);
  await open(`${place}/tcp`);
  answerRaw = (socket) => socket.end("seen");
  expect(await overRaw(place, bytes)).toBe("seen");
});

it("HTTP in a tunnel is for the host that was allowed, in every request of the connection", async () => {
  const place = `registry.example:${portOf(plain)}`;
  await open(place);
  const get = (path: string, host: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const last = `GET /last HTTP/1.1\r\nHost: ${place}\r\nConnection: close\r\n\r\n`;
  const got = await overRaw(
    place,
    get("/one", place),
    get("/two", "attacker-tenant.example"),
    get("/three", place),
    last,
  );
  expect(got.match(/HTTP\/1\.1 \d+/gu)).toEqual(["HTTP/1.1 200", "HTTP/1.1 421", "HTTP/1.1 200", "HTTP/1.1 200"]);
  expect(asked).toEqual([`${place} /one`, `${place} /three`, `${place} /last`]);
  expect(refused).toMatchObject([{ reason: "other name", named: "attacker-tenant.example" }]);
});

it.each([
  [
    "a second host",
    (place: string) => `GET / HTTP/1.1\r\nHost: ${place}\r\nHost: attacker-tenant.example\r\nConnection: close\r\n\r\n`,
  ],
  [
    "a whole address",
    (place: string) => `GET http://attacker-tenant.example/ HTTP/1.1\r\nHost: ${place}\r\nConnection: close\r\n\r\n`,
  ],
  ["no host", () => "GET / HTTP/1.0\r\n\r\n"],
])("HTTP in a tunnel with %s never carries another host's name", async (_, request) => {
  const place = `registry.example:${portOf(plain)}`;
  await open(place);
  await overRaw(place, request(place));
  expect(asked.join()).not.toContain("attacker-tenant");
});

const inner = "GET /smuggled HTTP/1.1\r\nHost: attacker-tenant.example\r\n\r\n";

it.each(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"])(
  "the body of a %s never becomes a request of its own",
  async (method) => {
    const place = `registry.example:${portOf(plain)}`;
    await open(place);
    const chunked = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
    await overRaw(
      place,
      `${method} /first HTTP/1.1\r\nHost: ${place}\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
      `GET /last HTTP/1.1\r\nHost: ${place}\r\nConnection: close\r\n\r\n`,
    );
    expect(asked).toEqual([`${place} /first`, `${place} /last`]);
  },
);

it("a CONNECT to a host with a header for another is for the first one", async () => {
  const place = `registry.example:${portOf(plain)}`;
  await open(place);
  const client = connect(gateway.socket);
  let got = "";
  client.on("data", (chunk: Buffer) => (got += chunk.toString()));
  const closed = new Promise<void>((resolve) => client.on("error", () => undefined).once("close", () => resolve()));
  // Bytes behind the CONNECT in the same write are part of the tunnel.
  client.write(
    `CONNECT ${place} HTTP/1.1\r\nHost: attacker-tenant.example\r\n\r\nGET /early HTTP/1.1\r\nHost: ${place}\r\nConnection: close\r\n\r\n`,
  );
  await closed;
  expect(got).toContain("200 Connection established");
  expect(asked).toEqual([`${place} /early`]);
});
