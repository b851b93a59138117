/** Figures of all nodes together from the database, as the metrics report them. */
export interface QueueStats {
  /** Number of sessions by status, without the final ones. */
  readonly sessions: Readonly<Record<"draft" | "queued" | "running" | "waiting", number>>;
  readonly jobs: Readonly<Record<"pending" | "running", number>>;
  /** Deliveries to enabled webhooks; `later`: being sent, or waiting for their next attempt. */
  readonly deliveries: Readonly<Record<"due" | "later", number>>;
  /** Seconds since the oldest waiting entry was queued, or became due if it is a delivery; 0 if none waits. */
  readonly oldestWaitSeconds: Readonly<Record<"sessions" | "jobs" | "deliveries", number>>;
  /** Connections of forges, by their health. */
  readonly connections: Readonly<Record<"ok" | "degraded" | "broken", number>>;
  /** Automations that are not as their owners want them: Offstage paused them after failures, or they did not fire when expected. */
  readonly automations: Readonly<Record<"pausedByFailures" | "silent", number>>;
  /** Workers whose last heartbeat is recent. */
  readonly workers: number;
}
