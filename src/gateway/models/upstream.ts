import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";

/** A model may think for long before its first word: the limit of silence. */
const silenceLimitMs = 15 * 60_000;

/** The provider did not answer. */
export class UnansweredError extends Error {
  override readonly name = "UnansweredError";
  /** Whether the server may have received the request, and may bill its lost answer. */
  readonly mayBeBilled: boolean;

  constructor(cause: Error, mayBeBilled: boolean) {
    super(cause.message, { cause });
    this.mayBeBilled = mayBeBilled;
  }
}

/** Sends a request to a model's server once. @param body its parts; null: no body @throws UnansweredError */
export function ask(options: {
  readonly url: URL;
  readonly method: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: readonly Buffer[] | null;
  readonly signal: AbortSignal;
}): Promise<IncomingMessage> {
  const { url, method, body, signal } = options;
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const length = body?.reduce((sum, part) => sum + part.length, 0);
  const headers = {
    ...options.headers,
    ...(length !== undefined && { "content-type": "application/json", "content-length": length }),
  };
  return new Promise((resolve, reject) => {
    let isSent = false;
    const upstream = send(url, { method, headers, timeout: silenceLimitMs, signal });
    upstream.once("socket", (socket) => {
      if (!socket.connecting) isSent = true;
      else socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => (isSent = true));
    });
    upstream.once("timeout", () => upstream.destroy(new Error("it did not answer")));
    upstream.once("error", (error) => reject(new UnansweredError(error, isSent)));
    upstream.once("response", (answer) => {
      // From here on, errors are the answer's: its reader handles them.
      upstream.on("error", (error) => answer.destroy(error));
      answer.on("error", () => undefined);
      resolve(answer);
    });
    for (const part of body ?? []) upstream.write(part);
    upstream.end();
  });
}

/** Statuses with which proxies, Cloudflare among them, report that they lost an answer, which may be billed. */
const lost = new Set([408, 500, 502, 504, 520, 521, 522, 523, 524]);

/** Whether an answer with this status may be billed: the vendors' own servers bill no errors. */
export function errorMayBeBilled(status: number, isMakers: boolean): boolean {
  return !isMakers && lost.has(status);
}
