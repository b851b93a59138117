import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { parseEgressRule, type EgressRule } from "../../src/domain/environments/egress.ts";
import { openGateway, type Gateway } from "../../src/gateway/gateway.ts";
import { waitFor } from "../wait-for.ts";

/** A host that is allowed and does not behave, and a sandbox that does not either. */
let directory: string;
let host: Server;
let address: string;
let behave: (socket: Socket) => void = () => undefined;
const open = new Set<Socket>();
let gateway: Gateway;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-odd-"));
  host = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => undefined).once("close", () => open.delete(socket));
    behave(socket);
  });
  await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
  address = `127.0.0.1:${(host.address() as AddressInfo).port}`;
  gateway = await openGateway({
    directory,
    models: {},
    egress: { open: false, rules: [parseEgressRule(`${address}/tcp`) as EgressRule] },
    onRefused: () => undefined,
  });
});

afterEach(() => {
  for (const socket of open) socket.destroy();
});

afterAll(async () => {
  await gateway?.close();
  host?.close();
  await rm(directory, { recursive: true, force: true });
});

function get(): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ socketPath: gateway.socket, path: `http://${address}/`, agent: false }, (answer) => {
      text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, body }), reject);
    });
    sent.once("error", reject).end();
  });
}

const answering = (bytes: string) => (socket: Socket) =>
  void socket.once("data", () => socket.write(Buffer.from(bytes, "latin1")));

it.each([
  ["a status that there is none of", "HTTP/1.1 099 None\r\nContent-Length: 0\r\n\r\n"],
  ["a change to another protocol", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"],
  ["no HTTP at all", "220 mail.example ESMTP\r\n"],
])("%s is a bad gateway, and no more than that", async (_, bytes) => {
  behave = answering(bytes);
  expect(await get()).toMatchObject({ status: 502 });
});

it("an answer that is cut off is cut off for who asked", async () => {
  behave = (socket) => {
    answering("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")(socket);
    socket.once("data", () => setTimeout(() => socket.destroy(), 50));
  };
  await expect(get()).rejects.toMatchObject({ code: "ECONNRESET" });
});

it("an answer without a reader is dropped", async () => {
  behave = (socket) => {
    answering("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")(socket);
    const more = setInterval(() => socket.write(Buffer.alloc(65_536)), 1);
    socket.once("close", () => clearInterval(more));
  };
  await Promise.all(
    Array.from({ length: 5 }, () => {
      const sent = httpRequest({ socketPath: gateway.socket, path: `http://${address}/` }, (answer) => {
        answer.on("error", () => undefined).once("data", () => answer.destroy());
      });
      return new Promise<void>((resolve) =>
        sent
          .on("error", () => undefined)
          .once("close", resolve)
          .end(),
      );
    }),
  );
  await pause(300);
  await waitFor(() => open.size === 0, "the host was let go", 5_000);
});

it("a tunnel brings all that was sent, however slowly it is read", async () => {
  const size = 3_000_000;
  behave = (socket) => {
    socket.allowHalfOpen = true;
    socket.resume().once("end", () => socket.end(Buffer.alloc(size, "a")));
  };
  const received = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const client = connect({ path: gateway.socket, allowHalfOpen: true });
      client.write(`CONNECT ${address} HTTP/1.1\r\nHost: x\r\n\r\n`);
      const established = await new Promise<Buffer>((resolve) => client.once("data", resolve));
      client.pause();
      client.end("go");
      await pause(200);
      let length = established.length - "HTTP/1.1 200 Connection established\r\n\r\n".length;
      for await (const chunk of client as AsyncIterable<Buffer>) {
        length += chunk.length;
        await pause(1);
      }
      return length;
    }),
  );
  expect(new Set(received)).toEqual(new Set([size]));
});
