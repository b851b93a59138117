import { request, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import type { Duplex } from "node:stream";
import { OffstageError } from "../../domain/errors/errors.ts";

/**
 * The engine refused, or its answer can't be used. If an engine does not answer at all, the system's error of the
 * connection is thrown instead.
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

/** A request to an engine's API. */
export interface EngineRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Absolute path, with its variable parts escaped. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** Aborting it ends the connection. */
  readonly signal: AbortSignal;
}

/** Maximum size of an answer: enough for a list of a few thousand containers. */
export const longestAnswerBytes = 8 * 1024 * 1024;
/** Maximum characters of an engine's message in an error. */
const longestMessage = 2_000;

/**
 * Sends a request over its own connection.
 * @param socketPath path of the engine's unix socket
 * @returns the body of a successful answer
 * @throws EngineError if the status is not successful, or the body is longer than `longestAnswerBytes`; the system's
 * error if the connection fails
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
 * Turns a request's connection into the container's input and output
 * (https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach, "hijacking").
 * @returns the stream, paused; the caller destroys it
 * @throws as `askEngineSocket`; EngineError if the engine does not switch to a stream
 */
export function openEngineStream(socketPath: string, asked: EngineRequest): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const sent = request({
      ...optionsFor(socketPath, asked),
      headers: { Connection: "Upgrade", Upgrade: "tcp", "Content-Length": 0 },
    });
    sent.once("upgrade", (_answer, stream: Duplex, head: Buffer) => {
      // The caller has given up, and will not take the stream.
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
  // One connection for each request: after an aborted one, no other request can read its answer.
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

/** An engine's message for a refused request: `message` of its JSON, or else the text as it is. */
function refusalIn(text: string): string {
  let problem = text;
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === "string") problem = message;
  } catch {
    // No JSON, as of a proxy on the way.
  }
  return problem.trim().slice(0, longestMessage);
}
