import { z } from "zod";

const count = z.number().int();
const seconds = (description: string) => z.number().meta({ description });

/** The possible problems of a server. */
export const systemProblemCodes = [
  "no_worker",
  "worker_not_seen",
  "no_agent",
  "disk_full",
  "disk_nearly_full",
  "worker_disk_full",
  "worker_disk_nearly_full",
  "worker_version",
  "sessions_wait",
  "jobs_wait",
  "deliveries_wait",
  "database_newer",
] as const;

/** Something that is wrong with the server, and what to do. */
export const systemProblemSchema = z.object({
  code: z.enum(systemProblemCodes),
  severity: z.enum(["bad", "warn"]).meta({ description: "`bad`: work stands still. `warn`: it soon may, or is slow." }),
  what: z.string(),
  remedy: z.string(),
});
/** See `systemProblemSchema`. */
export type SystemProblem = z.infer<typeof systemProblemSchema>;

/** The disk of a data folder. */
const diskSchema = z.object({
  freeBytes: z.number(),
  totalBytes: z.number(),
  neededBytes: z.number().meta({ description: "OFFSTAGE_MIN_FREE_MB: with less free a worker takes no session." }),
});
/** See `diskSchema`. */
export type DiskHealth = z.infer<typeof diskSchema>;

/** A worker's program, and the disk of its data folder. */
export const workerMachineSchema = z.object({
  version: z.string().meta({ description: "Of Offstage." }),
  nodeVersion: z.string(),
  startedAt: z.iso.datetime().meta({ description: "Of its process." }),
  disk: diskSchema,
  mirrors: count.meta({ description: "Repositories of which it keeps a mirror on that disk." }),
});
/** See `workerMachineSchema`. */
export type WorkerMachine = z.infer<typeof workerMachineSchema>;

/** A worker as its heartbeat reports it. */
export const workerHealthSchema = z.object({
  id: z.string(),
  startedAt: z.iso.datetime().meta({ description: "When it was first listed since it last stopped in order." }),
  seenAt: z.iso.datetime().meta({ description: "Its last heartbeat." }),
  isSeen: z
    .boolean()
    .meta({ description: "Whether that is less than 45 s ago, and its sessions were not found without it since." }),
  concurrency: count.meta({ description: "Sessions that it runs at once." }),
  runningSessions: count,
  runningJobs: count,
  defaultAgent: z.string().nullable(),
  agents: z.array(z.string()).meta({ description: "Names of the agents that it can run." }),
  warmSandboxes: count.default(0).meta({ description: "Sandboxes that it keeps ready for sessions to come." }),
  machine: workerMachineSchema
    .nullable()
    .default(null)
    .meta({ description: "As its last heartbeat had it; null: it did not say, as a worker of a version before." }),
});
/** See `workerHealthSchema`. */
export type WorkerHealth = z.infer<typeof workerHealthSchema>;

/** Queued and running work of all organizations; each count stops at 100,000. */
export const queueHealthSchema = z.object({
  sessions: z.object({ queued: count, running: count, waiting: count }),
  retries: z.object({
    due: count.meta({
      description: "Queued sessions whose time of a retry has come, and that no worker has put back yet.",
    }),
    later: count.meta({ description: "Those that are tried again later. All are among the queued." }),
    nextAt: z.iso.datetime().nullable(),
  }),
  jobs: z.object({ pending: count, running: count }),
  deliveries: z.object({ due: count, later: count }),
  oldestWaitSeconds: z.object({
    sessions: seconds("Since the oldest session was queued that could run now; 0: none waits."),
    jobs: seconds("The same of jobs."),
    deliveries: seconds("Since the oldest delivery to a webhook was due."),
  }),
});
/** See `queueHealthSchema`. */
export type QueueHealth = z.infer<typeof queueHealthSchema>;

/** The database, and which migrations it has. */
export const databaseHealthSchema = z.object({
  version: z.string().meta({ description: "Of PostgreSQL." }),
  bytes: z.number().meta({ description: "Its size on disk, read once a minute." }),
  migration: z
    .object({ number: count, name: z.string(), ranAt: z.iso.datetime() })
    .meta({ description: "The last one." }),
  migrations: count.meta({ description: "How many were run." }),
  unknownMigrations: count.meta({
    description: "How many of them the answering server does not know: a newer Offstage uses the database, too.",
  }),
});
/** See `databaseHealthSchema`. */
export type DatabaseHealth = z.infer<typeof databaseHealthSchema>;

/** The server that answers. */
export const serverHealthSchema = z.object({
  version: z.string().meta({ description: "Of Offstage." }),
  nodeVersion: z.string(),
  startedAt: z.iso.datetime(),
  disk: diskSchema.meta({ description: "Of its data folder." }),
  workerId: z
    .string()
    .nullable()
    .default(null)
    .meta({ description: "The worker in the same process; null: it runs no sessions." }),
});
/** See `serverHealthSchema`. */
export type ServerHealth = z.infer<typeof serverHealthSchema>;

/** How a server and its workers are. */
export const systemHealthSchema = z.object({
  checkedAt: z.iso.datetime(),
  problems: z.array(systemProblemSchema).meta({ description: "The worst first; empty: nothing is wrong." }),
  server: serverHealthSchema,
  workers: z.array(workerHealthSchema).meta({ description: "The oldest first, 500 at most." }),
  queue: queueHealthSchema,
  database: databaseHealthSchema,
});
/** See `systemHealthSchema`. */
export type SystemHealth = z.infer<typeof systemHealthSchema>;
