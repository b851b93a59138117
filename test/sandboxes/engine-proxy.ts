import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";

type Json = Record<string, unknown>;

/** What stands between a sandbox and its engine may do; each is asked of each request by its method and address. */
export interface Meddling {
  /** `before`: the engine never hears of it. `after`: it does it, and its answer is kept back. */
  hold?: (call: string) => "before" | "after" | null;
  /** Another answer than the engine's, which does not hear of it. */
  refuse?: (call: string) => number | null;
  /** Called for each request with all that are open then, it among them. */
  began?: (open: readonly string[]) => void;
  /** The address that is asked for instead. */
  redirect?: (address: string) => string;
  /** What the engine is asked instead. */
  ask?: (call: string, body: Json) => Json;
  /** What it is made to have said. */
  answer?: (call: string, body: Json) => Json;
}

export interface EngineProxy {
  readonly socket: string;
  /** May be changed at any time. */
  readonly meddling: Meddling;
  /** Each request's method and whole address, as it came. */
  readonly calls: readonly string[];
  /** Bytes of output that were handed on. */
  passed(): number;
  /** Lets everything through again; what was held before stays unanswered. */
  repair(): void;
  /** Breaks off every request that is unanswered. */
  drop(): void;
  close(): Promise<void>;
}

/** Forwards connections to its socket to the real engine. */
export async function startEngineProxy(engine: string): Promise<EngineProxy> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-proxy-"));
  const socket = join(folder, "engine.sock");
  const meddling: Meddling = {};
  const calls: string[] = [];
  const open = new Set<Duplex>();
  const unanswered = new Map<ServerResponse, string>();
  let passed = 0;
  const nameOf = ({ method, url }: IncomingMessage): string =>
    `${method} ${(url ?? "").replace(/^\/v[\d.]+/u, "").replace(/\?.*/u, "")}`;

  async function carry(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const call = nameOf(asked);
    calls.push(`${asked.method} ${asked.url}`);
    unanswered.set(answer, call);
    answer.once("close", () => unanswered.delete(answer));
    meddling.began?.([...unanswered.values()]);
    const path = meddling.redirect?.(asked.url ?? "") ?? asked.url;
    let body = await buffer(asked);
    const refused = meddling.refuse?.(call) ?? null;
    if (refused !== null) {
      answer.writeHead(refused, { "Content-Type": "application/json" }).end('{"message":"refused by the test"}');
      return;
    }
    const held = meddling.hold?.(call) ?? null;
    if (held === "before") return;
    if (meddling.ask !== undefined && body.length > 0) {
      body = Buffer.from(JSON.stringify(meddling.ask(call, JSON.parse(body.toString()) as Json)));
    }
    const headers = { ...asked.headers, ...(body.length > 0 && { "content-length": String(body.length) }) };
    const sent = request({ socketPath: engine, method: asked.method, path, headers }, (said) => {
      said.on("error", () => answer.destroy());
      if (held === "after") return void said.resume();
      // As it is now: it may be mended while the engine's answer comes.
      const { answer: meddle } = meddling;
      if (meddle === undefined) {
        answer.writeHead(said.statusCode ?? 500, said.headers);
        said.pipe(answer);
        return;
      }
      const change = (all: Buffer): void => {
        const isJson = all.length > 0 && said.headers["content-type"]?.includes("json") === true;
        const parsed: unknown = isJson ? JSON.parse(all.toString()) : null;
        const isObject = parsed !== null && typeof parsed === "object" && !Array.isArray(parsed);
        const changed = isObject ? Buffer.from(JSON.stringify(meddle(call, parsed as Json))) : all;
        const { "content-length": _length, "transfer-encoding": _encoding, ...rest } = said.headers;
        answer.writeHead(said.statusCode ?? 500, { ...rest, "content-length": String(changed.length) }).end(changed);
      };
      buffer(said).then(change, () => answer.destroy());
    });
    sent.on("error", () => answer.destroy());
    answer.on("close", () => {
      if (held === null) sent.destroy();
    });
    sent.end(body);
  }

  const server = createServer((asked, answer) => {
    carry(asked, answer).catch(() => answer.destroy());
  });
  // A command's input and output, which is no HTTP any more once it was agreed on.
  server.on("upgrade", (asked: IncomingMessage, client: Duplex, head: Buffer) => {
    calls.push(`${asked.method} ${asked.url}`);
    open.add(client);
    client.on("error", () => undefined);
    if ((meddling.hold?.(nameOf(asked)) ?? null) !== null) return;
    const sent = request({ socketPath: engine, method: asked.method, path: asked.url, headers: asked.headers });
    sent.on("upgrade", (said: IncomingMessage, inner: Duplex, first: Buffer) => {
      open.add(inner);
      inner.on("error", () => client.destroy());
      client.write(`HTTP/1.1 101 UPGRADED\r\n${rawHeaders(said)}\r\n`);
      if (first.length > 0) inner.unshift(first);
      if (head.length > 0) inner.write(head);
      inner.on("data", (chunk: Buffer) => (passed += chunk.length));
      inner.pipe(client);
      client.pipe(inner);
      client.on("close", () => inner.destroy());
    });
    sent.on("response", (said) => {
      client.write(`HTTP/1.1 ${said.statusCode} ${said.statusMessage}\r\n${rawHeaders(said)}\r\n`);
      said.pipe(client);
    });
    sent.on("error", () => client.destroy());
    sent.end();
  });
  server.on("connection", (one: Duplex) => {
    open.add(one);
    one.on("close", () => open.delete(one));
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return {
    socket,
    meddling,
    calls,
    passed: () => passed,
    repair() {
      for (const key of Object.keys(meddling)) delete meddling[key as keyof Meddling];
    },
    drop() {
      for (const answer of unanswered.keys()) answer.destroy();
    },
    async close() {
      for (const one of open) one.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function rawHeaders({ headers }: IncomingMessage): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${String(value)}\r\n`)
    .join("");
}
