import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { attacks, type Harm } from "./stall-attacks.ts";

/**
 * A hostile harness: speaks the Agent Client Protocol just so far that its turn begins, and then does what the message
 * says, `attack <name>`. Runs inside the sandbox, as the program of a provider.
 */
function write(bytes: Buffer | string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(bytes, (error) => (error == null ? resolve() : reject(error)));
  });
}

const { hostname, port } = new URL(process.env["MODEL_URL"] ?? "http://localhost");
const floodMs = 1_000;

/** A connection to the gateway, of which nothing is read for long. */
function connection(): Socket {
  const socket = connect(Number(port), hostname);
  socket.on("error", () => undefined);
  return socket.resume();
}

async function untilClosed(sockets: readonly Socket[]): Promise<void> {
  const closed = sockets.map((socket) =>
    socket.closed ? Promise.resolve() : new Promise((done) => socket.once("close", done)),
  );
  for (const socket of sockets) socket.destroy();
  await Promise.all(closed);
}

const harm: Harm = {
  async flood(connections, bytes) {
    const until = performance.now() + floodMs;
    const sockets = Array.from({ length: connections }, connection);
    while (performance.now() < until) {
      for (const [index, socket] of sockets.entries()) {
        if (socket.destroyed) sockets[index] = connection();
        else if (!socket.writableNeedDrain) socket.write(bytes);
      }
      await pause(1);
    }
    await untilClosed(sockets);
  },
  async open(connections) {
    const until = performance.now() + floodMs;
    while (performance.now() < until) {
      const sockets = Array.from({ length: connections }, connection);
      await Promise.all(
        sockets.map((socket) => new Promise((done) => socket.once("connect", done).once("close", done))),
      );
      await untilClosed(sockets);
    }
  },
  write,
  log: (bytes) =>
    new Promise((resolve, reject) => {
      process.stderr.write(bytes, (error) => (error == null ? resolve() : reject(error)));
    }),
  update: (update) =>
    write(`${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "s", update } })}\n`),
  model: (body) =>
    new Promise((resolve) => {
      const sent = request(`${process.env["MODEL_URL"] ?? ""}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${process.env["TOKEN"] ?? ""}`, "content-length": Buffer.byteLength(body) },
      });
      sent.on("response", (response) => response.resume().on("close", resolve));
      sent.on("error", () => resolve());
      sent.end(body);
    }),
};

let steps = 0;

async function meanWell(): Promise<void> {
  await pause(1_000);
  steps += 1;
  await harm.update({ sessionUpdate: "tool_call", toolCallId: String(steps), title: "step", status: "completed" });
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line) as {
    id?: number;
    method: string;
    params: { prompt?: { text: string }[] };
  };
  const answer = (result: unknown): Promise<void> => write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  if (method === "initialize") await answer({ protocolVersion: 1 });
  else if (method === "session/new") await answer({ sessionId: "s" });
  else if (method === "session/prompt") {
    const name = /attack (\S+)/u.exec(params.prompt?.map(({ text }) => text).join("\n") ?? "")?.[1] ?? "";
    await harm.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "begins" } });
    const seconds = name === "nothing" ? 86_400 : Number(process.env["SECONDS"]);
    const until = performance.now() + seconds * 1_000;
    do await (attacks[name]?.act(harm) ?? meanWell());
    while (performance.now() < until);
    await answer({ stopReason: "end_turn" });
  }
}
