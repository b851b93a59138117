import { request, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import type { Duplex } from "node:stream";
import { OffstageError } from "../../domain/errors.ts";

/**
 * The engine answered, but not with what was asked for: it refused, or its answer can't be used. An engine that does not
 * answer at all is the system's own error of the connection.
 */
export class EngineError extends OffstageError {
  readonly code = "container_engine_error";
  /** HTTP status of the answer. */
  readonly status: number;

  constructor(message: string, status: number, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** One request of an engine's API. */
export interface EngineRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Absolute path, whose variable parts are escaped. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** Aborting it ends the connection. */
  readonly signal: AbortSignal;
}

/** The longest answer that is read: the list of a few thousand containers. */
export const longestAnswerBytes = 8 * 1024 * 1024;
/** Of an engine's own words, this much goes into an error. */
const longestMessage = 2_000;

/**
 * Asks once, over a connection of its own.
 * @param socketPath of the engine's unix socket
 * @returns the body of the answer, whose status is a good one
 * @throws EngineError if the status is no good one, or the body is longer than `longestAnswerBytes`; the system's error if
 *   there is no connection or it breaks off
 */
export async function askEngineSocket(socketPath: string, asked: EngineRequest): Promise<string> {
  const body = asked.body === undefined ? "" : JSON.stringify(asked.body);
  const sent = request({
    ...optionsFor(socketPath, asked),
    headers: { ...(body !== "" && { "Content-Type": "application/json" }), "Content-Length": Buffer.byteLength(body) },
  });
  const answered = answerTo(sent);
  sent.end(body);
  return readAnswer(await answered);
}

/**
 * Turns the connection of a request into the stream that the engine makes of it: a container's input and output
 * (https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach, "hijacking").
 * @returns the stream, not yet flowing; whoever takes it destroys it
 * @throws as `askEngineSocket`, and EngineError if the engine does not switch to a stream
 */
export function openEngineStream(socketPath: string, asked: EngineRequest): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...optionsFor(socketPath, asked),
      headers: { Connection: "Upgrade", Upgrade: "tcp", "Content-Length": 0 },
    });
    sent.once("upgrade", (_answer, stream: Duplex, head: Buffer) => {
      // Whoever asked has given up, and will not take it.
      if (asked.signal.aborted) return void stream.destroy();
      if (head.length > 0) stream.unshift(head);
      resolve(stream);
    });
    answerTo(sent)
      .then(readAnswer)
      .then(
        () => reject(new EngineError("the container engine answered a request for a stream without one", 200)),
        reject,
      );
    sent.end();
  });
}

function optionsFor(socketPath: string, { method, path, query = {}, signal }: EngineRequest): RequestOptions {
  const search = new URLSearchParams(query).toString();
  // A connection for each request: one that was given up leaves nothing behind that another could read.
  return { socketPath, method, path: search === "" ? path : `${path}?${search}`, signal, agent: false };
}

function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once("response", resolve).once("error", reject);
  });
}

async function readAnswer(answer: IncomingMessage): Promise<string> {
  const status = answer.statusCode ?? 0;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    // Leaving the loop ends the connection.
    if (length > longestAnswerBytes) {
      throw new EngineError(`the container engine's answer is longer than ${longestAnswerBytes} bytes`, status);
    }
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  if (status >= 200 && status < 300) return text;
  throw new EngineError(`the container engine answered ${status}: ${refusalIn(text)}`, status);
}

/** What an engine says of a request that it refuses is JSON with a `message`; anything else is shown as it is. */
function refusalIn(text: string): string {
  let said = text;
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === "string") said = message;
  } catch {
    // No JSON, as of a proxy on the way.
  }
  return said.trim().slice(0, longestMessage);
}
