import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

/**
 * A hostile agent as a process of its own: floods a gateway with requests or connections for two seconds, and prints how many
 * it sent.
 * Arguments: socket, token, kind.
 */
const [, , path = "", token = "", kind = ""] = process.argv;
const floodMs = 2_000;
const head = "HTTP/1.1\r\nHost: x\r\n";

interface Flood {
  readonly connections: number;
  readonly unit: string;
  /** Of the unit, in one write. */
  readonly times: number;
  readonly before?: string;
}

const floods: Readonly<Record<string, Flood>> = {
  pipelined: { connections: 200, unit: `GET / ${head}\r\n`, times: 500 },
  hosts: { connections: 200, unit: `GET http://refused.test/ ${head}\r\n`, times: 500 },
  models: {
    connections: 200,
    unit: `POST /model/anthropic/v1/messages ${head}x-api-key: ${token}\r\nContent-Length: 2\r\n\r\n{}`,
    times: 500,
  },
  headers: { connections: 100, unit: `GET / ${head}${"a: b\r\n".repeat(1_000)}\r\n`, times: 10 },
  chunks: {
    connections: 100,
    unit: "1\r\na\r\n",
    times: 10_000,
    before: `POST / ${head}Transfer-Encoding: chunked\r\n\r\n`,
  },
  tunnels: { connections: 200, unit: `CONNECT refused.test:443 ${head}\r\n`, times: 1 },
};

let sent = 0;

function opened(before = ""): Socket {
  const socket = connect(path);
  socket.on("error", () => undefined);
  socket.write(before);
  return socket.resume();
}

async function floodWith({ connections, unit, times, before }: Flood): Promise<void> {
  const until = performance.now() + floodMs;
  const bytes = Buffer.from(unit.repeat(times));
  const sockets = Array.from({ length: connections }, () => opened(before));
  while (performance.now() < until) {
    for (const [index, socket] of sockets.entries()) {
      if (socket.destroyed || socket.readableEnded) sockets[index] = opened(before);
      else if (!socket.writableNeedDrain) {
        socket.write(bytes);
        sent += times;
      }
    }
    await pause(1);
  }
}

async function floodConnections(): Promise<void> {
  const until = performance.now() + floodMs;
  while (performance.now() < until) {
    const sockets = Array.from({ length: 900 }, () => opened());
    await Promise.all(sockets.map((socket) => new Promise((done) => socket.once("connect", done).once("close", done))));
    sent += sockets.length;
    const closed = sockets.map((socket) =>
      socket.closed ? Promise.resolve() : new Promise((done) => socket.once("close", done)),
    );
    for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
  }
}

const wanted = floods[kind];
await (wanted === undefined ? floodConnections() : floodWith(wanted));
process.stdout.write(String(sent), () => process.exit(0));
