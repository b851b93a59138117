/** What the database knows of all nodes together, as the metrics show it. */
export interface FleetState {
  /** Sessions that are not over. */
  readonly sessions: Readonly<Record<"draft" | "queued" | "running" | "waiting", number>>;
  readonly jobs: Readonly<Record<"pending" | "running", number>>;
  /** To webhooks that are switched on; `later`: under way, or between two attempts. */
  readonly deliveries: Readonly<Record<"due" | "later", number>>;
  /** Seconds since what waits for the longest time was queued, or a delivery was due; 0 where nothing waits. */
  readonly oldestWaitSeconds: Readonly<Record<"sessions" | "jobs" | "deliveries", number>>;
  /** Workers that said of late that they are there. */
  readonly workers: number;
}
