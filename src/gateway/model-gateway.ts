import { timingSafeEqual } from "node:crypto";
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { request as httpsRequest } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import type { ModelProviderId, ModelProviders } from "../domain/model.ts";
import { createMeasure, estimateUsage } from "./estimate.ts";
import { modelOf, routeModelRequest, type ModelRoute } from "./model-routes.ts";
import type { Recorder } from "./recording.ts";
import { retryDelayMs } from "./retry.ts";
import { createUsageReader, type ModelUsage } from "./usage.ts";

/** What the gateway saw of a turn's requests: the protocol has no word for a model's errors. */
export interface ModelTraffic {
  /** When something last went to a model or came from one, as `performance.now()`; later than now while it waits to try again. */
  readonly lastActivity: number;
  /** When a model last answered something else than an error; the beginning, where none did. */
  readonly lastAnswer: number;
  readonly answered: number;
  readonly failed: number;
  /** What the model's server said in its last error, if nothing was answered since. */
  readonly lastError: string | null;
}

/** Why a request of a model is not forwarded. */
export interface ModelRefusal {
  readonly status: number;
  readonly message: string;
}

export interface ModelGatewayOptions {
  readonly models: ModelProviders;
  readonly token: string;
  /** Asked before each request that is for a model: null lets it through. */
  readonly admit: (model: string) => Promise<ModelRefusal | null>;
  /**
   * Told before the answer ends, so that the next request finds it counted.
   * @param asked the model that was asked for: its server may call it by another name in `usage`
   */
  readonly onUsage: (provider: ModelProviderId, usage: ModelUsage, asked: string | null) => void;
  /** Told of each request and how it came out; without a model where it named none. */
  readonly onRequest: (provider: ModelProviderId, model: string | null, outcome: ModelOutcome) => void;
  readonly recorder: Recorder | null;
}

/** `retried`: it failed, and is asked again. */
export type ModelOutcome = "answered" | "failed" | "refused" | "retried";

export interface ModelGateway {
  serve(request: IncomingMessage, response: ServerResponse): void;
  traffic(): ModelTraffic;
}

/** Headers that carry a key, or belong to one connection. */
const dropped = new Set([
  "host",
  "authorization",
  "x-api-key",
  "x-goog-api-key",
  "api-key",
  "cookie",
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "content-length",
  "expect",
  "upgrade",
  // Usage is read along in what passes.
  "accept-encoding",
]);
const droppedOfAnswers = new Set(["connection", "keep-alive", "set-cookie", "transfer-encoding", "upgrade"]);
const errorLimit = 4_000;
/** A model may think for long before its first word, but not for ever. */
const silenceLimitMs = 15 * 60_000;
/** Images and whole files are in what models are asked, and no more. */
const requestLimit = 64 * 1024 * 1024;
/** The same of all that are under way together, which wait in the worker's memory. */
const heldLimit = 256 * 1024 * 1024;
const attempts = 3;

/**
 * Forwards requests of models: who shows the session's token gets the real key put in, outside of the sandbox.
 * What comes back is passed on as it comes; what its provider calls worth trying again is tried again first.
 */
export function createModelGateway(options: ModelGatewayOptions): ModelGateway {
  let lastActivity = performance.now();
  let lastAnswer = lastActivity;
  let answered = 0;
  let failed = 0;
  let lastError: string | null = null;
  let held = 0;
  const touch = (): void => void (lastActivity = performance.now());

  function fail(message: string): void {
    failed += 1;
    lastError = message;
  }

  async function forward(route: ModelRoute, request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A harness that hangs up wants no more of the answer.
    const hungUp = new AbortController();
    let ofThis = 0;
    response.once("close", () => {
      hungUp.abort();
      held -= ofThis;
      ofThis = 0;
    });
    const body = await readBody(request, (bytes) => {
      if (response.closed || ofThis + bytes > requestLimit || held + bytes > heldLimit) return false;
      ofThis += bytes;
      held += bytes;
      return true;
    });
    if (body === null) {
      const [one, all] = [requestLimit, heldLimit].map((bytes) => bytes / 1024 ** 2);
      const message = `a request can have at most ${one} MiB, and all under way at once ${all} MiB`;
      return refuse(response, 413, message);
    }
    const model = modelOf(route, body);
    if (model !== null) {
      const refusal = await options.admit(model);
      if (refusal !== null) {
        fail(refusal.message);
        options.onRequest(route.provider, model, "refused");
        return refuse(response, refusal.status, refusal.message);
      }
    }
    if (hungUp.signal.aborted) return undefined;
    const headers: OutgoingHttpHeaders = { ...kept(request.headers, dropped), ...route.headers };
    for (let attempt = 1; ; attempt += 1) {
      const answer = await ask(route.url, request.method ?? "GET", headers, body, hungUp.signal).catch(
        (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
      );
      if (hungUp.signal.aborted) return undefined;
      touch();
      const delayMs = attempt === attempts ? null : retryDelayMs(answer, attempt);
      if (delayMs === null) return deliver(answer, { route, request, response, body, model });
      fail(answer instanceof Error ? answer.message : `HTTP ${answer.statusCode}`);
      options.onRequest(route.provider, model, "retried");
      if (!(answer instanceof Error)) answer.resume();
      lastActivity = performance.now() + delayMs;
      await pause(delayMs, undefined, { signal: hungUp.signal }).catch(() => undefined);
      if (hungUp.signal.aborted) return undefined;
    }
  }

  interface Asked {
    readonly route: ModelRoute;
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly body: Buffer;
    readonly model: string | null;
  }

  function deliver(answer: IncomingMessage | Error, { route, request, response, body, model }: Asked): void {
    if (answer instanceof Error) {
      const message = `the model's server could not be reached: ${answer.message}`;
      fail(message);
      options.onRequest(route.provider, model, "failed");
      return refuse(response, 502, message);
    }
    const status = answer.statusCode ?? 502;
    options.onRequest(route.provider, model, status < 400 ? "answered" : "failed");
    response.writeHead(status, kept(answer.headers, droppedOfAnswers));
    if (status < 400) {
      answered += 1;
      lastAnswer = performance.now();
      lastError = null;
    } else {
      fail(`HTTP ${status}`);
      readError(answer, (text) => (lastError = `${text} (HTTP ${status})`));
    }
    const recording = options.recorder?.begin({
      provider: route.provider,
      method: request.method ?? "GET",
      path: route.path,
      model,
      body: body.toString("utf8"),
    });
    recording?.head(status, answer.headers["content-type"] ?? "");
    const reader = createUsageReader();
    const measure = createMeasure();
    let isCounted = status >= 400;
    function count(isWhole: boolean): void {
      if (isCounted) return;
      isCounted = true;
      const told = reader.end();
      const isTold = told !== null && isWhole;
      const usage = isTold || model === null ? told : estimateUsage(told, { path: route.path, body }, measure.tokens());
      if (usage !== null) options.onUsage(route.provider, { ...usage, model: usage.model ?? model }, model);
    }
    answer.on("data", (chunk: Buffer) => {
      touch();
      reader.read(chunk);
      measure.read(chunk);
      recording?.chunk(chunk);
    });
    answer.once("end", () => {
      count(true);
      recording?.end();
    });
    // It broke off, or who asked hung up: what came is paid for all the same.
    response.once("close", () => count(false));
    answer.once("error", () => response.destroy());
    answer.pipe(response);
    return undefined;
  }

  return {
    traffic: () => ({ lastActivity, lastAnswer, answered, failed, lastError }),
    serve(request, response) {
      touch();
      if (!isToken(presentedToken(request), options.token))
        return refuse(response, 401, "this is not the session's token");
      const route = routeModelRequest(options.models, request);
      if (route === null) return refuse(response, 404, "there is no such model provider or operation here");
      forward(route, request, response).catch((error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        fail(message);
        refuse(response, 502, message);
      });
      return undefined;
    },
  };
}

/** Null where it is too long, which is then left unread. @param hold asked before each part: false ends it */
async function readBody(request: IncomingMessage, hold: (bytes: number) => boolean): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) {
    if (!hold(chunk.length)) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** One attempt. @throws Error where there is no answer */
function ask(
  url: URL,
  method: string,
  headers: OutgoingHttpHeaders,
  body: Buffer,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const length = method === "GET" || method === "HEAD" ? {} : { "content-length": body.length };
    const upstream = send(url, { method, headers: { ...headers, ...length }, timeout: silenceLimitMs, signal });
    upstream.once("timeout", () => upstream.destroy(new Error("it did not answer")));
    upstream.once("error", reject);
    upstream.once("response", (answer) => {
      // From here on what breaks is the answer's, which whoever reads it hears of.
      upstream.on("error", (error) => answer.destroy(error));
      answer.on("error", () => undefined);
      resolve(answer);
    });
    upstream.end(body);
  });
}

/** Every provider's programs show their key in a place of their own. */
function presentedToken({ headers, url = "" }: IncomingMessage): string {
  const bearer = /^Bearer (.+)$/u.exec(headers.authorization ?? "")?.[1];
  const shown =
    bearer ??
    headers["x-api-key"] ??
    headers["x-goog-api-key"] ??
    new URL(url, "http://gateway").searchParams.get("key");
  return typeof shown === "string" ? shown : "";
}

export function isToken(shown: string, token: string): boolean {
  const [one, other] = [Buffer.from(shown), Buffer.from(token)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function kept(headers: IncomingMessage["headers"], without: ReadonlySet<string>): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !without.has(name)));
}

function readError(answer: IncomingMessage, done: (text: string) => void): void {
  let text = "";
  answer.on("data", (chunk: Buffer) => {
    if (text.length < errorLimit) text += chunk.toString("utf8");
  });
  answer.once("end", () => done((/"message"\s*:\s*"((?:[^"\\]|\\.)*)"/u.exec(text)?.[1] ?? text).slice(0, 500)));
}

/** In a shape that programs of every provider read. */
function refuse(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = { type: "error", error: { type: "offstage_gateway", code: status, message: `Offstage: ${message}` } };
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}
