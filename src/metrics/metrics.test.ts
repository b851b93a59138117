import { expect, test } from "vitest";
import type { QueueStats } from "../domain/sessions/queue-stats.ts";
import { createMetrics } from "./metrics.ts";

const state: QueueStats = {
  sessions: { draft: 1, queued: 2, running: 3, waiting: 4 },
  jobs: { pending: 5, running: 0 },
  deliveries: { due: 9, later: 10 },
  oldestWaitSeconds: { sessions: 6, jobs: 7, deliveries: 11 },
  connections: { ok: 3, degraded: 2, broken: 1 },
  automations: { pausedByFailures: 12, silent: 13 },
  workers: 8,
};

test("what all nodes share is asked once for scrapes at the same time", async () => {
  const metrics = createMetrics();
  let asked = 0;
  metrics.watchQueues(
    () => ((asked += 1), Promise.resolve(state)),
    () => undefined,
  );
  const scrapes = await Promise.all([metrics.scrape(), metrics.scrape(), metrics.scrape()]);
  for (const { text } of scrapes) {
    expect(text).toContain('offstage_sessions{state="waiting"} 4');
    expect(text).toContain('offstage_queue_depth{queue="jobs"} 5');
    expect(text).toContain("offstage_workers 8");
    expect(text).toContain('offstage_forge_connections{state="broken"} 1');
    expect(text).toContain("offstage_automations_paused_by_failures 12");
    expect(text).toContain("offstage_automations_silent 13");
    expect(text).toContain('offstage_deliveries{state="later"} 10');
    expect(text).toContain('offstage_queue_depth{queue="deliveries"} 9');
    expect(text).toContain('offstage_queue_oldest_wait_seconds{queue="deliveries"} 11');
  }
  expect(asked).toBe(1);
});

test("a database that fails takes its figures with it, and leaves the process's own", async () => {
  const metrics = createMetrics();
  const failures: unknown[] = [];
  metrics.watchQueues(
    () => Promise.reject(new Error("gone")),
    (error) => failures.push(error),
  );
  metrics.attemptEnded("lost");
  const { text } = await metrics.scrape();
  expect(text).toContain("offstage_database_up 0");
  expect(text).not.toMatch(
    /^offstage_(?:sessions\{|forge_connections\{|deliveries\{|queue_(?:depth|oldest)|workers )/mu,
  );
  expect(text).toContain("offstage_leases_lost_total 1");
  expect(failures).toHaveLength(1);
});

test("two registries know nothing of each other", async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  one.attemptEnded("completed");
  expect((await one.scrape()).text).toContain('offstage_attempts_total{outcome="completed"} 1');
  expect((await other.scrape()).text).toContain('offstage_attempts_total{outcome="completed"} 0');
});

test("what alerts ask the growth of is there from the start, at 0", async () => {
  const { text } = await createMetrics().scrape();
  for (const outcome of ["delivered", "refused", "unanswered"])
    expect(text).toContain(`offstage_delivery_attempt_duration_seconds_count{outcome="${outcome}"} 0`);
  for (const outcome of ["taken", "unchanged", "tooLarge", "timedOut", "failed", "stopped"])
    expect(text).toContain(`offstage_checkpoint_duration_seconds_count{outcome="${outcome}"} 0`);
  for (const outcome of ["restored", "withoutMemory", "unusable", "failed", "stopped"])
    expect(text).toContain(`offstage_checkpoint_restores_total{outcome="${outcome}"} 0`);
  expect(text).toContain("offstage_deliveries_dead_total 0");
  for (const outcome of ["sent", "delayed", "refused", "dead"])
    expect(text).toContain(`offstage_answer_attempt_duration_seconds_count{kind="reaction",outcome="${outcome}"} 0`);
});
