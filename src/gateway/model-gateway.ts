import { timingSafeEqual } from "node:crypto";
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from "node:http";
import { request as httpsRequest } from "node:https";
import type { ModelProviderId, ModelProviders } from "../domain/model.ts";
import { routeModelRequest, type ModelRoute } from "./model-routes.ts";
import { createUsageReader, type ModelUsage } from "./usage.ts";

/** What the gateway saw of a turn's requests: the protocol has no word for a model's errors. */
export interface ModelTraffic {
  /** When something last went to a model or came from one, as `performance.now()`. */
  readonly lastActivity: number;
  readonly answered: number;
  readonly failed: number;
  /** What the model's server said in its last error, if nothing was answered since. */
  readonly lastError: string | null;
}

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
  "upgrade",
  // Usage is read along in what passes.
  "accept-encoding",
]);
const droppedOfAnswers = new Set(["connection", "keep-alive", "set-cookie", "transfer-encoding", "upgrade"]);
const errorLimit = 4_000;
/** A model may think for long before its first word, but not for ever. */
const silenceLimitMs = 15 * 60_000;

/**
 * Forwards requests of models: who shows the session's token gets the real key put in, outside of the sandbox.
 * What comes back is passed on as it comes.
 */
export function createModelGateway(options: {
  readonly models: ModelProviders;
  readonly token: string;
  readonly onUsage: (provider: ModelProviderId, usage: ModelUsage) => void;
}): ModelGateway {
  let lastActivity = performance.now();
  let answered = 0;
  let failed = 0;
  let lastError: string | null = null;
  const touch = (): void => void (lastActivity = performance.now());

  function fail(response: ServerResponse, message: string, status: number): void {
    failed += 1;
    lastError = message;
    refuse(response, status, message);
  }

  function forward(route: ModelRoute, request: IncomingMessage, response: ServerResponse): void {
    const send = route.url.protocol === "https:" ? httpsRequest : httpRequest;
    const headers: OutgoingHttpHeaders = { ...kept(request.headers, dropped), ...route.headers };
    const upstream = send(route.url, { method: request.method, headers, timeout: silenceLimitMs });
    upstream.once("timeout", () => upstream.destroy(new Error("it did not answer")));
    upstream.once("error", (error) => fail(response, `the model's server could not be reached: ${error.message}`, 502));
    upstream.once("response", (answer) => {
      touch();
      const status = answer.statusCode ?? 502;
      response.writeHead(status, kept(answer.headers, droppedOfAnswers));
      if (status < 400) {
        answered += 1;
        lastError = null;
      } else {
        failed += 1;
        lastError = `HTTP ${status}`;
        readError(answer, (text) => (lastError = `${text} (HTTP ${status})`));
      }
      const reader = createUsageReader();
      answer.on("data", (chunk: Buffer) => {
        touch();
        reader.read(chunk);
      });
      answer.once("end", () => {
        const usage = status < 400 ? reader.end() : null;
        if (usage !== null) options.onUsage(route.provider, usage);
      });
      answer.once("error", () => response.destroy());
      answer.pipe(response);
    });
    // A harness that hangs up wants no more of the answer, nor pays for it.
    response.once("close", () => upstream.destroy());
    request.pipe(upstream);
  }

  return {
    traffic: () => ({ lastActivity, answered, failed, lastError }),
    serve(request, response) {
      touch();
      if (!isToken(presentedToken(request), options.token))
        return refuse(response, 401, "this is not the session's token");
      const route = routeModelRequest(options.models, request.url ?? "");
      if (route === null) return refuse(response, 404, "there is no such model provider or operation here");
      return forward(route, request, response);
    },
  };
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

function isToken(shown: string, token: string): boolean {
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
