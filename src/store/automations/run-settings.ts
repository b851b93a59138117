import type { Queryable } from "../../database/database.ts";
import type { Expectation } from "../../domain/automations/expectation.ts";
import type { PullRequestSettings } from "../../domain/repositories/pull-request-settings.ts";
import { isoTime } from "../cursor.ts";

/**
 * An automation's settings for its runs as a whole. A field that is undefined keeps its value, or that of a new
 * automation.
 */
export interface RunSettings {
  /** So many failed runs in a row pause it; 0 or null: any number may fail. */
  readonly failuresBeforePause?: number | null | undefined;
  /** Null: nothing is expected of it, but that its schedules tick. */
  readonly expect?: Expectation | null | undefined;
  /** Whether each run has a session for each repository. */
  readonly fanOut?: boolean | undefined;
  /** Null: their pull requests are opened as usual. */
  readonly pullRequest?: PullRequestSettings | null | undefined;
  /** Whether its sessions open no pull request until the work on all repositories is pushed. */
  readonly pullRequestsTogether?: boolean | undefined;
}

/** SQL for the API's fields of them, and of the runs' outcomes, from the table `automation`. */
export const runSettingsColumns = `
  automation.failures_before_pause as "failuresBeforePause", automation.failed_in_a_row as "failedInARow",
  automation.fan_out as "fanOut", automation.pull_request as "pullRequest",
  automation.pull_requests_together as "pullRequestsTogether",
  case when automation.paused then automation.paused_reason end as "pausedReason", automation.expect,
  case when automation.silent_since is not null then jsonb_build_object('since', ${isoTime("automation.silent_since")},
    'reason', automation.silent_reason) end as alert`;

/** Saves the settings that are given. What is newly expected is expected from now on. */
export async function saveRunSettings(
  transaction: Queryable,
  id: string,
  { failuresBeforePause, expect, fanOut, pullRequest, pullRequestsTogether }: RunSettings,
): Promise<void> {
  const given = [failuresBeforePause, expect, fanOut, pullRequest, pullRequestsTogether];
  if (given.every((value) => value === undefined)) return;
  await transaction.query(
    `update automation set
       failures_before_pause = case when $2 then $3 else failures_before_pause end,
       expect = case when $4 then $5 else expect end,
       expect_since = case when $4 and expect is distinct from $5 then clock_timestamp() else expect_since end,
       fan_out = coalesce($6, fan_out),
       pull_request = case when $7 then $8 else pull_request end,
       pull_requests_together = coalesce($9, pull_requests_together)
     where id = $1`,
    [
      id,
      failuresBeforePause !== undefined,
      failuresBeforePause,
      expect !== undefined,
      expect == null ? null : JSON.stringify(expect),
      fanOut,
      pullRequest !== undefined,
      pullRequest == null ? null : JSON.stringify(pullRequest),
      pullRequestsTogether,
    ],
  );
}
