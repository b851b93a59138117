import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ModelProviderId } from "../domain/agents/model.ts";
import { failureCodes, type FailureCode } from "../domain/errors/errors.ts";
import type { QueueStats } from "../domain/sessions/queue-stats.ts";
import type { StepName } from "../domain/sessions/step.ts";
import { createCheckpointMetrics, type CheckpointMetrics } from "./checkpoints.ts";
import { createCloneMetrics, type CloneMetrics } from "./clones.ts";
import { createDeliveryMetrics, type DeliveryMetrics } from "./deliveries.ts";
import { createQueueGauges } from "./queue-gauges.ts";
import { createWarmStartMetrics, type WarmStartMetrics } from "./warm-starts.ts";

/** How a step ended. `stopped`: by a cancellation, a budget, a lost lease or a worker's shutdown. */
export type StepOutcome = "completed" | "failed" | "stopped";
const attemptOutcomes = ["completed", "failed", "cancelled", "waiting", "released", "retried", "lost"] as const;
/**
 * How an attempt ended. `waiting`: for a budget; `released`: the worker shuts down; `retried`: it failed for a reason
 * that passes by itself, and will be tried again; `lost`: another worker may have the session.
 */
export type AttemptOutcome = (typeof attemptOutcomes)[number];
/** How a request to a model ended. `retried`: it failed, and the gateway sent it again. */
export type ModelRequestOutcome = "answered" | "failed" | "refused" | "retried";
/** Kinds of tokens that model providers count; `reasoning` is part of `output`. */
export type TokenKind = "input" | "output" | "cacheRead" | "cacheWrite" | "reasoning";

/** Connections of the database pool. */
export interface PoolState {
  readonly total: number;
  readonly idle: number;
  /** Queries that wait for a connection. */
  readonly waiting: number;
}

/** A metric, for documentation and tests. */
export interface MetricDescription {
  readonly name: string;
  /** `counter`, `gauge`, `histogram` or `summary`. */
  readonly type: string;
  readonly labels: readonly string[];
}

/**
 * The Prometheus metrics of one process. No label has an id or free text: its values are from a list that is known at
 * the start. Times are in seconds.
 */
export interface Metrics extends DeliveryMetrics, CheckpointMetrics, CloneMetrics, WarmStartMetrics {
  /** @param operation the operation's id in the API, or `other` */
  requestEnded(operation: string, status: number, seconds: number): void;
  streamOpened(): void;
  streamClosed(): void;
  /** @param seconds from queueing to the claim */
  sessionClaimed(seconds: number): void;
  /** @param seconds from the claim until the secrets are opened and the work begins */
  attemptStarted(seconds: number): void;
  /** @param seconds the step's duration */
  stepEnded(step: StepName, outcome: StepOutcome, seconds: number): void;
  /** @param failure the failure's code, if the attempt failed */
  attemptEnded(outcome: AttemptOutcome, failure?: FailureCode): void;
  sessionsRecovered(count: number): void;
  /** A delivery came to a trigger or a connection. */
  deliveryReceived(outcome: "accepted" | "duplicate" | "filtered" | "refused"): void;
  /** @param model from a bounded list, see `modelLabel` */
  modelRequested(provider: ModelProviderId, model: string, outcome: ModelRequestOutcome, count: number): void;
  modelUsed(provider: ModelProviderId, model: string, tokens: Readonly<Record<TokenKind, number>>): void;
  /** @param dollars in US dollars, by the configured prices */
  modelCost(provider: ModelProviderId, model: string, dollars: number): void;
  /**
   * Makes each scrape read the state that all nodes share, at most once a second. `failed` gets the error of a failed
   * read.
   */
  watchQueues(read: () => Promise<QueueStats>, failed: (error: unknown) => void): void;
  /** Makes each scrape read the state of the database pool. */
  watchPool(read: () => PoolState): void;
  /** Measures memory, processor time, event loop and garbage collection of this process from now on. */
  watchProcess(): void;
  /** Lists all metrics. */
  describe(): Promise<readonly MetricDescription[]>;
  /** All metrics in Prometheus's text format. */
  scrape(): Promise<{ readonly contentType: string; readonly text: string }>;
}

const requestSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const waitSeconds = [0.01, 0.05, 0.25, 1, 5, 15, 60, 300, 900, 3_600, 14_400];
const stepSeconds = [0.1, 0.5, 1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 7_200, 14_400];

/**
 * Makes the metrics of a process with their own registry. Nothing is measured before a `watch` method is called,
 * except what callers report.
 */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const { requests, streams, ...work } = createOwn(registry);
  const fleet = createQueueGauges(registry);
  const pool = createPool(registry);
  // Without an initial 0, `increase` in Prometheus would miss a series' first event.
  for (const outcome of attemptOutcomes) work.runs.inc({ outcome }, 0);
  for (const code of failureCodes) work.failures.inc({ code }, 0);
  for (const outcome of ["accepted", "duplicate", "filtered", "refused"]) work.received.inc({ outcome }, 0);
  return {
    requestEnded: (operation, status, seconds) => requests.observe({ operation, status }, seconds),
    streamOpened: () => streams.inc(),
    streamClosed: () => streams.dec(),
    sessionClaimed: (seconds) => work.queueWait.observe(seconds),
    attemptStarted: (seconds) => work.claimToStart.observe(seconds),
    stepEnded: (step, outcome, seconds) => work.steps.observe({ step, outcome }, seconds),
    attemptEnded(outcome, failure) {
      work.runs.inc({ outcome });
      if (outcome === "lost") work.leasesLost.inc();
      if (failure !== undefined) work.failures.inc({ code: failure });
    },
    deliveryReceived: (outcome) => work.received.inc({ outcome }),
    sessionsRecovered: (count) => work.recovered.inc(count),
    modelRequested: (provider, model, outcome, count) => work.modelRequests.inc({ provider, model, outcome }, count),
    modelUsed(provider, model, tokens) {
      for (const [kind, count] of Object.entries(tokens)) {
        if (count > 0) work.modelTokens.inc({ provider, model, kind }, count);
      }
    },
    modelCost: (provider, model, dollars) => work.modelCost.inc({ provider, model }, dollars),
    ...createDeliveryMetrics(registry),
    ...createCheckpointMetrics(registry),
    ...createCloneMetrics(registry),
    ...createWarmStartMetrics(registry),
    watchQueues: fleet.watch,
    watchPool: pool.watch,
    watchProcess: () => collectDefaultMetrics({ register: registry }),
    async describe() {
      const described = await registry.getMetricsAsJSON();
      return described.map(({ name, type }) => {
        const { labelNames = [] } = registry.getSingleMetric(name) as { labelNames?: readonly string[] };
        return { name, type: String(type), labels: labelNames };
      });
    },
    async scrape() {
      await fleet.refresh();
      pool.refresh();
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

function createOwn(registry: Registry) {
  const registers = [registry];
  return {
    requests: new Histogram({
      name: "offstage_http_request_duration_seconds",
      help: "Duration of API requests, by operation and status; without event streams",
      labelNames: ["operation", "status"],
      buckets: requestSeconds,
      registers,
    }),
    streams: new Gauge({
      name: "offstage_event_streams",
      help: "Clients that watch a session's events on this node",
      registers,
    }),
    queueWait: new Histogram({
      name: "offstage_queue_wait_seconds",
      help: "Time from the queueing of a session to its claim by this worker",
      buckets: waitSeconds,
      registers,
    }),
    claimToStart: new Histogram({
      name: "offstage_claim_to_start_seconds",
      help: "Time from this worker's claim of a session until its secrets are opened and its work begins",
      buckets: waitSeconds,
      registers,
    }),
    steps: new Histogram({
      name: "offstage_step_duration_seconds",
      help: "Duration of an attempt's steps, by step and outcome",
      labelNames: ["step", "outcome"],
      buckets: stepSeconds,
      registers,
    }),
    runs: new Counter({
      name: "offstage_attempts_total",
      help: "Attempts at sessions that ended on this worker, by outcome",
      labelNames: ["outcome"],
      registers,
    }),
    failures: new Counter({
      name: "offstage_attempt_failures_total",
      help: "Failed attempts, by the code of the failure",
      labelNames: ["code"],
      registers,
    }),
    leasesLost: new Counter({
      name: "offstage_leases_lost_total",
      help: "Attempts that this worker gave up because another may hold the session",
      registers,
    }),
    recovered: new Counter({
      name: "offstage_sessions_recovered_total",
      help: "Sessions of dead workers that this worker requeued",
      registers,
    }),
    received: new Counter({
      name: "offstage_received_deliveries_total",
      help: "Deliveries to triggers and connections, by outcome; refused: the signature is wrong",
      labelNames: ["outcome"],
      registers,
    }),
    modelRequests: new Counter({
      name: "offstage_model_requests_total",
      help: "Requests to models through this worker's gateways",
      labelNames: ["provider", "model", "outcome"],
      registers,
    }),
    modelTokens: new Counter({
      name: "offstage_model_tokens_total",
      help: "Tokens as the models' providers count them; reasoning is part of output",
      labelNames: ["provider", "model", "kind"],
      registers,
    }),
    modelCost: new Counter({
      name: "offstage_model_cost_dollars_total",
      help: "Cost in US dollars, by the configured prices",
      labelNames: ["provider", "model"],
      registers,
    }),
  };
}

function createPool(registry: Registry) {
  const connections = new Gauge({
    name: "offstage_database_connections",
    help: "Connections of this process's pool, by state",
    labelNames: ["state"],
    registers: [registry],
  });
  const waiting = new Gauge({
    name: "offstage_database_waiting_queries",
    help: "Queries of this process that wait for a connection of the pool",
    registers: [registry],
  });
  let read: (() => PoolState) | null = null;
  return {
    watch: (reader: () => PoolState): void => void (read = reader),
    refresh(): void {
      if (read === null) return;
      const state = read();
      connections.set({ state: "idle" }, state.idle);
      connections.set({ state: "used" }, state.total - state.idle);
      waiting.set(state.waiting);
    },
  };
}
