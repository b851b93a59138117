import { Gauge, type Registry } from "prom-client";
import type { QueueStats } from "../domain/sessions/queue-stats.ts";

/** A burst of scrapes queries the database once. */
const queueStatsCacheMs = 1_000;
/** A database that does not answer must not delay the process's own metrics for longer. */
const queueStatsLimitMs = 2_000;

/** Metrics of the state that all nodes share. Every node reports the same values, so a dashboard takes the maximum. */
export function createQueueGauges(registry: Registry) {
  const registers = [registry];
  const sessions = new Gauge({
    name: "offstage_sessions",
    help: "Unfinished sessions of all nodes, by state, counted up to 100,000",
    labelNames: ["state"],
    registers,
  });
  const deliveries = new Gauge({
    name: "offstage_deliveries",
    help: "Unfinished webhook deliveries of all nodes, by state, counted up to 100,000",
    labelNames: ["state"],
    registers,
  });
  const depth = new Gauge({
    name: "offstage_queue_depth",
    help: "Length of each queue, counted up to 100,000; of deliveries those that are due",
    labelNames: ["queue"],
    registers,
  });
  const oldest = new Gauge({
    name: "offstage_queue_oldest_wait_seconds",
    help: "Age of the oldest entry of each queue; 0 if it is empty",
    labelNames: ["queue"],
    registers,
  });
  const connections = new Gauge({
    name: "offstage_forge_connections",
    help: "Connections of forges of all organizations, by their health, counted up to 100,000",
    labelNames: ["state"],
    registers,
  });
  const pausedByFailures = new Gauge({
    name: "offstage_automations_paused_by_failures",
    help: "Automations of all organizations that Offstage paused because runs failed in a row, counted up to 100,000",
    registers,
  });
  const silent = new Gauge({
    name: "offstage_automations_silent",
    help: "Automations of all organizations that were expected to fire and did not, counted up to 100,000",
    registers,
  });
  const workers = new Gauge({ name: "offstage_workers", help: "Workers with a recent heartbeat", registers });
  const up = new Gauge({
    name: "offstage_database_up",
    help: "1 if the database answered this scrape in time; else 0, and its metrics are absent",
    registers,
  });
  let read: (() => Promise<QueueStats>) | null = null;
  let failed: (error: unknown) => void = () => undefined;
  let known: { readonly at: number; readonly done: Promise<void> } | null = null;
  let reading: Promise<QueueStats> | null = null;

  function show(state: QueueStats): void {
    for (const [name, count] of Object.entries(state.sessions)) sessions.set({ state: name }, count);
    for (const [name, count] of Object.entries(state.deliveries)) deliveries.set({ state: name }, count);
    depth.set({ queue: "sessions" }, state.sessions.queued);
    depth.set({ queue: "jobs" }, state.jobs.pending);
    depth.set({ queue: "deliveries" }, state.deliveries.due);
    for (const [queue, seconds] of Object.entries(state.oldestWaitSeconds)) oldest.set({ queue }, seconds);
    for (const [name, count] of Object.entries(state.connections)) connections.set({ state: name }, count);
    pausedByFailures.set(state.automations.pausedByFailures);
    silent.set(state.automations.silent);
    workers.set(state.workers);
    up.set(1);
  }

  async function ask(question: () => Promise<QueueStats>): Promise<void> {
    try {
      // If the last query is still running, wait for it instead of sending another one.
      reading ??= question().finally(() => (reading = null));
      show(await inTime(reading));
    } catch (error) {
      // Old values would look like current ones.
      for (const gauge of [sessions, deliveries, depth, oldest, connections]) gauge.reset();
      for (const gauge of [pausedByFailures, silent, workers]) gauge.remove();
      up.set(0);
      failed(error);
    }
  }

  return {
    watch(reader: () => Promise<QueueStats>, onFailed: (error: unknown) => void): void {
      read = reader;
      failed = onFailed;
    },
    async refresh(): Promise<void> {
      if (read === null) return;
      if (known === null || performance.now() - known.at >= queueStatsCacheMs) {
        known = { at: performance.now(), done: ask(read) };
      }
      await known.done;
    },
  };
}

/** @throws Error after `queueStatsLimitMs` milliseconds */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`the database did not answer in ${queueStatsLimitMs} ms`)),
      queueStatsLimitMs,
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
