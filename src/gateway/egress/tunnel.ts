import type { Duplex } from "node:stream";
import { asksForAnother, isTls, readClientHello, type ClientHello } from "./client-hello.ts";

/** Why a tunnel was ended. */
export interface TunnelRefusal {
  readonly reason: "other name" | "no name" | "other protocol";
  /** The host that the connection named instead. */
  readonly named?: string;
}

/** The tunnel of one CONNECT. */
export interface TunnelOptions {
  /** Bytes that the sandbox sent right after its CONNECT. */
  readonly head: Buffer;
  /** The tunnel's host, as `canonicalHost` returns it. */
  readonly host: string;
  /** Whether the host is an address: TLS sends no server name for one (RFC 6066, section 3). */
  readonly isAddress: boolean;
  /** Limit for the first message, in ms. */
  readonly limitMs: number;
  /** Takes over a connection of HTTP without TLS, with all bytes put back. */
  readonly onHttp: () => void;
}

/** Maximum buffered bytes of each side while the first messages are inspected; a ClientHello has at most 64 KiB. */
const mostHeld = 256 * 1024;
/** TLS alert unrecognized_name, fatal: the server does not serve the name (RFC 8446, section 6). */
const unrecognizedName = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

/**
 * Forwards a connection to an allowed host once it has proved to be for that host: TLS with the host's name in the
 * clear, also in a second ClientHello if the server asks for one. Until then nothing else passes in either direction.
 * Encrypted content is not inspected.
 * @returns null once bytes flow, or if a side disconnected; else why the connection was ended
 */
export async function passTunnel(
  client: Duplex,
  upstream: Duplex,
  options: TunnelOptions,
): Promise<TunnelRefusal | null> {
  const first = await gather(client, options.head, protocolOf, options.limitMs);
  if (first === null) return refuse(client, upstream, null);
  if (first.found === "other") return refuse(client, upstream, { reason: "other protocol" });
  if (first.found === "http") {
    upstream.destroy();
    client.unshift(first.bytes);
    options.onHttp();
    client.resume();
    return null;
  }
  const hello = await gather(client, first.bytes, helloIn(false), options.limitMs);
  const refused = hello === null ? null : misnamed(hello.found, options);
  if (hello === null || hello.found === "broken" || refused !== null) return refuse(client, upstream, refused);
  // Bytes sent behind it wait: they may be a second ClientHello, for another host, that the server would read
  // uninspected.
  const { length } = hello.found;
  upstream.write(hello.bytes.subarray(0, length));
  const behind = hello.bytes.subarray(length);
  const answer = await gather(upstream, Buffer.alloc(0), asksForAnother, options.limitMs);
  if (answer === null) return refuse(client, upstream, null);
  client.write(answer.bytes);
  if (!answer.found) {
    upstream.write(behind);
    return join(client, upstream);
  }
  const second = await gather(client, behind, helloIn(true), options.limitMs);
  const refusedAgain = second === null ? null : misnamed(second.found, options);
  if (second === null || refusedAgain !== null) return refuse(client, upstream, refusedAgain);
  upstream.write(second.bytes);
  return join(client, upstream);
}

const helloIn = (again: boolean) => (bytes: Buffer) => {
  const read = readClientHello(bytes, { again });
  return read === "incomplete" ? null : read;
};

/** HTTP/1 begins with a method in capitals and a space (RFC 9112, section 3). */
function protocolOf(bytes: Buffer): "tls" | "http" | "other" | null {
  const tls = isTls(bytes);
  if (tls !== false) return tls === null ? null : "tls";
  const beginning = bytes.toString("latin1", 0, 20);
  if (/^[A-Z]{3,16} /u.test(beginning)) return "http";
  return /^[A-Z]{1,16}$/u.test(beginning) ? null : "other";
}

function misnamed(hello: ClientHello | "broken", { host, isAddress }: TunnelOptions): TunnelRefusal | null {
  if (hello === "broken") return { reason: "other protocol" };
  const { serverName, hidesName } = hello;
  if (serverName !== null && serverName.replace(/\.$/u, "") !== host)
    return { reason: "other name", named: serverName };
  if (hidesName || (serverName === null && !isAddress)) return { reason: "no name" };
  return null;
}

function refuse(client: Duplex, upstream: Duplex, refusal: TunnelRefusal | null): TunnelRefusal | null {
  upstream.destroy();
  if (refusal === null || client.destroyed) client.destroy();
  else client.end(refusal.reason === "other protocol" ? undefined : unrecognizedName, () => client.destroy());
  return refusal;
}

/** Forwards bytes both ways until both sides have ended. */
export function join(client: Duplex, upstream: Duplex): null {
  client.pipe(upstream);
  upstream.pipe(client);
  return null;
}

/**
 * Reads until `find` recognises the bytes. Then the source is paused, and no byte is lost.
 * @param find returns null if it needs more
 * @returns null if the source ended, took too long or sent too much before
 */
function gather<T>(
  source: Duplex,
  already: Buffer,
  find: (bytes: Buffer) => T | null,
  limitMs: number,
): Promise<{ readonly found: T; readonly bytes: Buffer } | null> {
  return new Promise((resolve) => {
    let bytes = already;
    const timer = setTimeout(() => settle(null), limitMs);
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk]);
      check();
    };
    const onEnd = (): void => settle(null);
    function settle(found: T | null): void {
      clearTimeout(timer);
      source.off("data", onData).off("end", onEnd).off("close", onEnd).pause();
      resolve(found === null ? null : { found, bytes });
    }
    function check(): void {
      const found = find(bytes);
      if (found !== null || bytes.length > mostHeld) settle(found);
    }
    const found = find(bytes);
    if (found !== null || source.destroyed || source.readableEnded) settle(found);
    else source.on("data", onData).once("end", onEnd).once("close", onEnd).resume();
  });
}
