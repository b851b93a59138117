import { createHash } from "node:crypto";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asksForAnother, isTls, readClientHello } from "./client-hello.ts";

/** The first message of Node's own TLS, which is OpenSSL's. */
let listener: Server;
const first: ((bytes: Buffer) => void)[] = [];

beforeAll(async () => {
  listener = createServer((socket: Socket) => {
    socket
      .on("error", () => undefined)
      .once("data", (bytes) => {
        first.shift()?.(bytes);
        socket.destroy();
      });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
});

afterAll(() => void listener?.close());

async function realHello(options: ConnectionOptions): Promise<Buffer> {
  const { port } = listener.address() as AddressInfo;
  const hello = new Promise<Buffer>((resolve) => first.push(resolve));
  connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options }).on("error", () => undefined);
  return hello;
}

const uint16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const vector16 = (content: Buffer): Buffer => Buffer.concat([uint16(content.length), content]);
const extension = (type: number, content: Buffer): Buffer => Buffer.concat([uint16(type), vector16(content)]);
const named = (...names: string[]): Buffer =>
  extension(
    0,
    vector16(Buffer.concat(names.map((name) => Buffer.concat([Buffer.from([0]), vector16(Buffer.from(name))])))),
  );
const record = (type: number, content: Buffer): Buffer => Buffer.concat([Buffer.from([type, 3, 1]), vector16(content)]);

function message(extensions: readonly Buffer[], { type = 1, behind = "" } = {}): Buffer {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7),
    Buffer.from([0, 0, 2, 0x13, 0x01, 1, 0]),
    vector16(Buffer.concat(extensions)),
    Buffer.from(behind),
  ]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  length[0] = type;
  return Buffer.concat([length, body]);
}

describe("a ClientHello", () => {
  it.each<[string, ConnectionOptions, string | null]>([
    ["TLS 1.3 with a name", { servername: "Registry.Allowed.test" }, "registry.allowed.test"],
    ["TLS 1.2 with a name", { servername: "a.example", maxVersion: "TLSv1.2" }, "a.example"],
    ["no name", { servername: "" }, null],
    [
      "a long name",
      { servername: `${"a".repeat(60)}.${"b".repeat(60)}.example` },
      `${"a".repeat(60)}.${"b".repeat(60)}.example`,
    ],
    ["protocols to choose from", { servername: "a.example", ALPNProtocols: ["h2", "http/1.1"] }, "a.example"],
  ])("of OpenSSL, %s, is read, and no beginning of it is taken for the whole", async (_, options, serverName) => {
    const bytes = await realHello(options);
    expect(isTls(bytes)).toBe(true);
    expect(readClientHello(bytes)).toEqual({ serverName, hidesName: false, length: bytes.length });
    for (let length = 0; length < bytes.length; length += 1) {
      expect(readClientHello(bytes.subarray(0, length))).toBe("incomplete");
    }
  });

  it("is read over any number of records", () => {
    const whole = message([named("a.example")]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 30 }), (sizes) => {
        const records: Buffer[] = [];
        for (let at = 0, index = 0; at < whole.length; index += 1) {
          const size = sizes[index % sizes.length] ?? 1;
          records.push(record(22, whole.subarray(at, at + size)));
          at += size;
        }
        const bytes = Buffer.concat(records);
        expect(readClientHello(bytes)).toEqual({ serverName: "a.example", hidesName: false, length: bytes.length });
      }),
    );
  });

  it("that may hide another name says so", () => {
    const bytes = record(22, message([named("a.example"), extension(0xfe_0d, Buffer.from([0, 1, 2]))]));
    expect(readClientHello(bytes)).toMatchObject({ serverName: "a.example", hidesName: true });
  });

  it.each<[string, Buffer]>([
    ["two names", record(22, message([named("a.example", "b.example")]))],
    ["the extension twice", record(22, message([named("a.example"), named("b.example")]))],
    ["an empty name", record(22, message([named("")]))],
    ["a name with a NUL", record(22, message([named("a.example\0b.example")]))],
    ["a name with a slash", record(22, message([named("a.example/b")]))],
    ["a name of another type", record(22, message([extension(0, vector16(Buffer.from("\u0001\0\u0001a")))]))],
    [
      "bytes behind the list of names",
      record(22, message([extension(0, Buffer.concat([vector16(Buffer.from("\0\0\u0001a")), Buffer.from("x")]))])),
    ],
    ["bytes behind the extensions", record(22, message([named("a.example")], { behind: "x" }))],
    [
      "another message behind it",
      record(22, Buffer.concat([message([named("a.example")]), message([named("b.example")])])),
    ],
    ["another message", record(22, message([named("a.example")], { type: 2 }))],
    ["no handshake", record(23, message([named("a.example")]))],
    [
      "records of another kind between",
      Buffer.concat([record(22, message([named("a.example")]).subarray(0, 9)), record(20, Buffer.from([1]))]),
    ],
    ["an empty record", record(22, Buffer.alloc(0))],
    ["a length of megabytes", Buffer.from([22, 3, 1, 0, 4, 1, 255, 255, 255])],
    ["SSLv2", Buffer.from([0x80, 0x2e, 1, 0, 2])],
    ["a name that is longer than any", record(22, message([named("x".repeat(256))]))],
  ])("with %s is broken", (_, bytes) => {
    expect(readClientHello(bytes)).toBe("broken");
  });

  it("is read behind other records only as the second one", () => {
    const bytes = Buffer.concat([
      record(20, Buffer.from([1])),
      record(23, Buffer.alloc(200)),
      record(22, message([named("b.example")])),
    ]);
    expect(readClientHello(bytes, { again: true })).toMatchObject({ serverName: "b.example", length: bytes.length });
    expect(readClientHello(bytes)).toBe("broken");
  });

  it("of any bytes throws nothing", () => {
    const real = record(22, message([named("a.example"), extension(43, Buffer.from([2, 3, 4]))]));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(real.length - 1), fc.nat(255)), { maxLength: 8 }),
        fc.boolean(),
        (changes, again) => {
          const bytes = Buffer.from(real);
          for (const [at, value] of changes) bytes[at] = value;
          expect(() => readClientHello(bytes, { again })).not.toThrow();
        },
      ),
      { numRuns: 2_000 },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void readClientHello(Buffer.from(bytes))));
  });
});

describe("a server's first bytes", () => {
  const serverHello = (random: Buffer): Buffer =>
    record(22, Buffer.concat([Buffer.from([2, 0, 0, 40, 3, 3]), random, Buffer.from([0, 0x13, 1, 0])]));
  const retry = createHash("sha256").update("HelloRetryRequest").digest();

  it("that ask for another ClientHello are distinguished from those that do not, and from too few", () => {
    expect(asksForAnother(serverHello(retry))).toBe(true);
    expect(asksForAnother(serverHello(Buffer.alloc(32, 1)))).toBe(false);
    expect(asksForAnother(serverHello(retry).subarray(0, 42))).toBeNull();
    expect(asksForAnother(Buffer.from([21, 3, 3, 0, 2, 2, 40]))).toBe(false);
    expect(asksForAnother(Buffer.alloc(0))).toBeNull();
  });

  it("are read behind what a client passes over, and over any number of records", () => {
    const whole = (random: Buffer) => serverHello(random).subarray(5);
    const cut = (bytes: Buffer, size: number): Buffer[] =>
      Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        record(22, bytes.subarray(index * size, (index + 1) * size)),
      );
    const warning = record(21, Buffer.from([1, 112]));
    const changeCipherSpec = record(20, Buffer.from([1]));
    const helloRequest = Buffer.alloc(4);
    for (const random of [retry, Buffer.alloc(32, 1)]) {
      for (const size of [1, 3, 40, 100]) {
        const bytes = Buffer.concat([
          warning,
          changeCipherSpec,
          ...cut(Buffer.concat([helloRequest, whole(random)]), size),
        ]);
        expect(asksForAnother(bytes)).toBe(random === retry);
        expect(asksForAnother(bytes.subarray(0, 40))).toBeNull();
      }
    }
  });

  it("that end the connection ask for nothing", () => {
    for (const alert of [[2, 40], [1, 0], [1]]) {
      expect(asksForAnother(Buffer.concat([record(21, Buffer.from(alert)), serverHello(retry)]))).toBe(false);
    }
    expect(asksForAnother(Buffer.from("H"))).toBe(false);
    expect(asksForAnother(record(22, message([named("a.example")])))).toBe(false);
  });
});
