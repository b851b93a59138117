/** What the database knows of all nodes together, as the metrics show it. */
export interface FleetState {
  /** Sessions that are not over. */
  readonly sessions: Readonly<Record<"draft" | "queued" | "running" | "waiting", number>>;
  readonly jobs: Readonly<Record<"pending" | "running", number>>;
  /** Seconds since what waits for the longest time was queued; 0 where nothing waits. */
  readonly oldestWaitSeconds: Readonly<Record<"sessions" | "jobs", number>>;
  /** Workers that said of late that they are there. */
  readonly workers: number;
}
