import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { ModelProviderId, ModelProviders } from "../../domain/agents/model.ts";
import { messageOf } from "../../domain/errors/errors.ts";
import { createBodyCheck, type Understood } from "../bodies/check.ts";
import { applyEdits, editsFor } from "../bodies/edits.ts";
import { operations, type ModelOperation } from "../bodies/operations.ts";
import { countedUsage, limitedTo, mostUsage, type MostUsage } from "../costs/estimate.ts";
import { RequestRefusedError } from "../refusal.ts";
import { createTrafficCounter, finalError, passingError, type ModelTraffic } from "../traffic.ts";
import { isRefusal, type Admission, type Admit } from "./admission.ts";
import { answerRefusal, readError } from "./answer-error.ts";
import { forwardAnswer } from "./exchange.ts";
import { readBody, release, type BufferedBytes } from "./read-body.ts";
import type { Recorder } from "./recording.ts";
import { headersFor } from "./request-headers.ts";
import type { ReportedError } from "./reported-error.ts";
import { outlookOf, retryDelayMs } from "./retry.ts";
import { routeModelRequest, type UpstreamRoute } from "./routes.ts";
import { requireNoSearch } from "./searching-models.ts";
import { createSemaphore } from "./semaphore.ts";
import { ask, errorMayBeBilled, UnansweredError } from "./upstream.ts";

/** Configuration of the models' part of a gateway. */
export interface ModelGatewayOptions {
  readonly models: ModelProviders;
  readonly token: string;
  /** Features of providers, in addition to answers, that the operator allows agents by name: `tool:web_search*`. */
  readonly permits: readonly string[];
  readonly admit: Admit;
  /** Called for each request with its outcome; `model` is null if it named none. */
  readonly onRequest: (provider: ModelProviderId, model: string | null, outcome: ModelOutcome) => void;
  readonly recorder: Recorder | null;
  /** How long an answer is read on after the client hung up, to learn its cost, in ms. */
  readonly lingerMs: number;
}

/** Outcome of a request; `retried`: it failed, and is sent again. */
export type ModelOutcome = "answered" | "failed" | "refused" | "retried";

/** Forwards requests to models. */
export interface ModelGateway {
  serve(request: IncomingMessage, response: ServerResponse): void;
  traffic(): ModelTraffic;
  /** Settles when no request to a model is open or unsettled. */
  idle(): Promise<void>;
}

const attempts = 3;
/** Concurrent requests of one session: enough for harnesses with several parallel agents. Further ones wait. */
const inFlight = 8;

/** A request that is being forwarded. */
interface PendingRequest {
  readonly route: UpstreamRoute;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: Record<string, string>;
  readonly model: string | null;
  /** Null for a request that only reads about models. */
  readonly body: {
    readonly operation: ModelOperation;
    readonly blocks: readonly Buffer[];
    readonly checked: Understood;
  } | null;
  /** Aborts when the client hangs up. */
  readonly hungUp: AbortSignal;
}

/**
 * Forwards requests to models: a client that sends the session's token gets the real key added, outside of the sandbox.
 * A request that is not fully understood is refused. Answers are passed on as they arrive; an error that its provider
 * marks as retryable is retried first. Every request that was sent is billed, even if its client hangs up.
 */
export function createModelGateway(options: ModelGatewayOptions): ModelGateway {
  const traffic = createTrafficCounter();
  const concurrency = createSemaphore(inFlight);
  const readings = createSemaphore(1);
  const held: BufferedBytes = { bytes: 0 };
  const { permits } = options;
  const handled = new Set<Promise<void>>();

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let provider: ModelProviderId | null = null;
    try {
      const route = routeModelRequest(options.models, request);
      ({ provider } = route);
      await forward(route, request, response);
    } catch (error) {
      // The client has hung up.
      if (response.closed) return;
      const message = messageOf(error);
      traffic.failed(message, finalError);
      const isRefused = error instanceof RequestRefusedError;
      if (provider !== null) options.onRequest(provider, null, isRefused ? "refused" : "failed");
      answerRefusal(response, isRefused ? error.status : 502, message);
    }
  }

  async function forward(route: UpstreamRoute, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const hangUp = new AbortController();
    response.once("close", () => hangUp.abort(new Error("it hung up")));
    const hungUp = hangUp.signal;
    const headers = { ...headersFor(request.headers, permits), ...route.headers };
    const landed = await concurrency.acquire(hungUp);
    try {
      if (route.operation === null) {
        requireNoBody(request);
        return await send({ route, request, response, headers, model: null, body: null, hungUp });
      }
      const operation = operations[route.operation];
      const { blocks, understood } = await read(route, request, hungUp);
      try {
        const model = requireModel(route, understood, permits);
        return await send({
          route,
          request,
          response,
          headers,
          model,
          body: { operation, blocks, checked: understood },
          hungUp,
        });
      } finally {
        release(blocks, held);
      }
    } finally {
      landed();
    }
  }

  /** Reads one body at a time, because reading takes memory. */
  async function read(route: UpstreamRoute, request: IncomingMessage, hungUp: AbortSignal) {
    const { operation, pathModel } = route;
    if (operation === null) throw new RequestRefusedError(404, "there is no such operation here");
    const done = await readings.acquire(hungUp);
    try {
      return await readBody(request, createBodyCheck({ operation: operations[operation], pathModel, permits }), held);
    } finally {
      done();
    }
  }

  /** Settles when the answer is over, or is no longer read. */
  async function send(pending: PendingRequest): Promise<void> {
    const most = pending.body === null || pending.model === null ? null : mostOf(pending.body, pending.model);
    for (let attempt = 1; ; attempt += 1) {
      const admission = await admitted(pending, most);
      if (admission === null) return undefined;
      const settle = settleOnce(admission, most);
      const delayMs = await attemptOnce(pending, admission, settle, attempt);
      if (delayMs === null) return undefined;
      traffic.waits(delayMs);
      await pause(delayMs, undefined, { signal: pending.hungUp }).catch(() => undefined);
      if (pending.hungUp.aborted) return undefined;
    }
  }

  /** Null if it was refused; the refusal has been answered. */
  async function admitted(pending: PendingRequest, most: MostUsage | null): Promise<Admission | null> {
    const { route, response, model, hungUp } = pending;
    if (model === null) return { outputLimit: null, settle: () => undefined };
    const answer = await options.admit({ provider: route.provider, model, most, signal: hungUp });
    if (!isRefusal(answer)) {
      if (!hungUp.aborted) return answer;
      answer.settle(null);
      return null;
    }
    traffic.failed(answer.message, answer.passes === true ? passingError : finalError);
    options.onRequest(route.provider, model, "refused");
    answerRefusal(response, answer.status, answer.message);
    return null;
  }

  /** @returns ms after which to try again; null if the request is over */
  async function attemptOnce(
    pending: PendingRequest,
    admission: Admission,
    settle: Settle,
    attempt: number,
  ): Promise<number | null> {
    const { route, request, response, headers, model, hungUp } = pending;
    const lingering = lingerAfter(hungUp, options.lingerMs);
    const landed = traffic.asked();
    hungUp.addEventListener("abort", landed);
    try {
      const body = pending.body === null ? null : edited(pending.body, admission.outputLimit);
      const method = request.method ?? "GET";
      const answer = await ask({ url: route.url, method, headers, body, signal: lingering.signal });
      traffic.touch();
      const status = answer.statusCode ?? 502;
      const delayMs = attempt === attempts || hungUp.aborted ? null : retryDelayMs(answer, attempt);
      if (status >= 300) settle(errorMayBeBilled(status, route.isMakers) ? "most" : "nothing");
      if (delayMs === null) {
        await deliver(pending, answer, settle);
        return null;
      }
      traffic.failed(`HTTP ${status}`, outlookOf(answer));
      options.onRequest(route.provider, model, "retried");
      answer.resume();
      return delayMs;
    } catch (error) {
      if (!(error instanceof UnansweredError)) throw error;
      settle(error.mayBeBilled ? "most" : "nothing");
      if (hungUp.aborted) return null;
      if (attempt < attempts) {
        traffic.failed(error.message, outlookOf(error));
        options.onRequest(route.provider, model, "retried");
        return retryDelayMs(error, attempt);
      }
      const message = `the model's server could not be reached: ${error.message}`;
      traffic.failed(message, outlookOf(error));
      options.onRequest(route.provider, model, "failed");
      answerRefusal(response, 502, message);
      return null;
    } finally {
      landed();
      lingering.stop();
      settle("most");
    }
  }

  function deliver(pending: PendingRequest, answer: IncomingMessage, settle: Settle): Promise<void> {
    const { route, response, model, hungUp } = pending;
    const status = answer.statusCode ?? 502;
    let isGood = status < 400;
    if (isGood) traffic.answered();
    else {
      traffic.failed(`HTTP ${status}`, outlookOf(answer));
      readError(answer, (text) => traffic.says(`${text} (HTTP ${status})`));
    }
    const recording = options.recorder === null ? null : record(options.recorder, pending, answer);
    const onError = ({ message, outlook }: ReportedError): void => {
      if (!isGood || hungUp.aborted) return;
      isGood = false;
      traffic.broke(message, outlook);
    };
    return new Promise((resolve) => {
      forwardAnswer(answer, response, {
        recording,
        onData: traffic.touch,
        onError,
        onEnd({ usage: reported, broken }) {
          if (broken !== null) onError(broken);
          options.onRequest(route.provider, model, isGood ? "answered" : "failed");
          settle(broken === null ? (reported ?? "most") : reported === null ? "most" : { ...reported, isWhole: false });
          resolve();
        },
      });
    });
  }

  return {
    traffic: traffic.read,
    serve(request, response) {
      traffic.touch();
      if (!isToken(presentedToken(request), options.token))
        return answerRefusal(response, 401, "this is not the session's token");
      const all = handle(request, response).finally(() => handled.delete(all));
      handled.add(all);
      return undefined;
    },
    async idle() {
      await Promise.allSettled(handled);
    },
  };
}

function mostOf(
  { operation, checked: understood }: NonNullable<PendingRequest["body"]>,
  model: string,
): MostUsage | null {
  return operation.isFree === true ? null : mostUsage(operation, understood, model);
}

function edited(
  { operation, blocks, checked: understood }: NonNullable<PendingRequest["body"]>,
  outputLimit: number | null,
): Buffer[] {
  return applyEdits(blocks, editsFor(operation, understood, outputLimit));
}

function record(recorder: Recorder, { route, request, model, body }: PendingRequest, answer: IncomingMessage) {
  const recording = recorder.begin({
    provider: route.provider,
    method: request.method ?? "GET",
    path: route.path,
    model,
    turns: body?.checked.turns ?? 0,
    hasTools: body?.checked.hasTools ?? false,
    body: body?.blocks ?? [],
  });
  recording.head(answer.statusCode ?? 502, answer.headers["content-type"] ?? "");
  return recording;
}

/** Settles a request's cost: only the first call counts. */
type Settle = (usage: Parameters<typeof countedUsage>[0] | "most" | "nothing") => void;

function settleOnce(admission: Admission, most: MostUsage | null): Settle {
  let isSettled = false;
  const limited = most === null ? null : limitedTo(most, admission.outputLimit);
  return (usage) => {
    if (isSettled) return;
    isSettled = true;
    if (usage === "nothing" || limited === null) admission.settle(null);
    else admission.settle(countedUsage(usage === "most" ? null : usage, limited));
  };
}

/** A signal that aborts `lingerMs` after another, unless it is stopped. */
function lingerAfter(hungUp: AbortSignal, lingerMs: number): { readonly signal: AbortSignal; stop(): void } {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const start = (): void => void (timer = setTimeout(() => over.abort(), lingerMs));
  if (hungUp.aborted) start();
  else hungUp.addEventListener("abort", start, { once: true });
  return {
    signal: over.signal,
    stop() {
      hungUp.removeEventListener("abort", start);
      clearTimeout(timer);
    },
  };
}

function requireNoBody({ headers }: IncomingMessage): void {
  if (headers["transfer-encoding"] === undefined && (headers["content-length"] ?? "0") === "0") return;
  throw new RequestRefusedError(400, "this operation takes no body");
}

function requireModel(route: UpstreamRoute, understood: Understood, permits: readonly string[]): string {
  const model = route.pathModel ?? understood.model;
  if (model === null) throw new RequestRefusedError(400, "the body must name a model");
  if (model.length > 200) throw new RequestRefusedError(400, "a model's name can have at most 200 characters");
  requireNoSearch(model, permits);
  return model;
}

/** The token, from the header or query in which a provider's client sends its key. */
export function presentedToken({ headers, url = "" }: IncomingMessage): string {
  const bearer = /^Bearer (.+)$/u.exec(headers.authorization ?? "")?.[1];
  const query = url.slice(url.indexOf("?") + 1);
  const shown = bearer ?? headers["x-api-key"] ?? headers["x-goog-api-key"] ?? new URLSearchParams(query).get("key");
  return typeof shown === "string" ? shown : "";
}

/** Compares a token with the session's in constant time. */
export function isToken(shown: string, token: string): boolean {
  const [one, other] = [Buffer.from(shown), Buffer.from(token)];
  return one.length === other.length && timingSafeEqual(one, other);
}
