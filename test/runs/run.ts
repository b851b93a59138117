import { randomUUID } from "node:crypto";
import type { Failure } from "../../src/domain/errors/errors.ts";
import { claimJob } from "../../src/store/automations/jobs.ts";
import { finishSession, type ClaimedSession } from "../../src/store/queue/claims.ts";
import { completeMessage, nextMessage } from "../../src/store/queue/progress.ts";
import { failSession } from "../../src/store/queue/retry.ts";
import { createLogger } from "../../src/observability.ts";
import { noTraces } from "../../src/traces.ts";
import { runJob } from "../../src/worker/run-job.ts";
import type { TestApp } from "../api/app.ts";
import { longLeaseMs, requireClaim } from "../store/fixtures.ts";
import { noForge } from "../no-forge.ts";

/** Runs of automations without a worker: each step is taken when a test says so. */
export interface Runs {
  /** @returns the automation's id */
  add(settings?: object): Promise<string>;
  /** Triggers it by the API. @returns the job's id */
  trigger(automationId: string, event?: object): Promise<string>;
  /** A worker claims the next job and runs it. */
  runNextJob(): Promise<void>;
  /** Triggers it, and has a worker begin each session of the run. */
  begin(automationId: string): Promise<ClaimedSession[]>;
  end(session: ClaimedSession, outcome: "completed" | Failure): Promise<void>;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of a body is the test's to say
  get(automationId: string): Promise<any>;
}

/** A failure that no retry helps against. */
export const broken: Failure = {
  code: "setup_failed",
  reason: "The setup script ended with 1.",
  retryable: true,
  passing: false,
  remedy: "Mend it.",
};

export function createRuns(api: TestApp): Runs {
  const { database } = api;
  const trigger = async (automationId: string, event: object = {}): Promise<string> => {
    const { status, body } = await api.post(`/automation/${automationId}/trigger`, event);
    if (status !== 200) throw new Error(`the trigger was answered with ${status}: ${body.error}`);
    return body.id as string;
  };
  const runNextJob = async (): Promise<void> => {
    const job = await claimJob(database, { worker: "w", leaseMs: longLeaseMs });
    if (job === null) throw new Error("no job was pending");
    const { templates } = api;
    await runJob(
      { database, logger: createLogger("silent"), traces: noTraces, templates, ...noForge, sandboxed: true },
      job,
    );
  };
  return {
    async add(settings = {}) {
      const macro = `m-${randomUUID().slice(0, 13)}`;
      const { status, body } = await api.post("/automation/create", {
        name: macro,
        macro,
        instructions: "Work",
        ...settings,
      });
      if (status !== 200) throw new Error(`it was answered with ${status}: ${body.error}`);
      return body.id as string;
    },
    trigger,
    runNextJob,
    async begin(automationId) {
      const job = await trigger(automationId);
      await runNextJob();
      const { rows } = await database.pool.query("select from session where job_id = $1", [job]);
      const claimed: ClaimedSession[] = [];
      for (const _ of rows) claimed.push(await requireClaim(database));
      return claimed;
    },
    async end(session, outcome) {
      if (outcome !== "completed") {
        await failSession(database, session, outcome, { forMs: longLeaseMs });
        return;
      }
      const message = await nextMessage(database, session);
      if (message !== null) await completeMessage(database, session, message.id, { answer: "Done.", isKept: true });
      await finishSession(database, session, { status: "completed", summary: "Done.", failure: null });
    },
    async get(automationId) {
      return (await api.get(`/automation/${automationId}`)).body;
    },
  };
}
