import type { DiskHealth, SystemHealth, SystemProblem, WorkerHealth } from "./health.ts";

/** As deploy/prometheus/alerts.yml has it, in seconds. */
const longestWaits = { sessions: 900, jobs: 900, deliveries: 300 } as const;
/** Free disk space below this many times a server's need counts as little. */
const littleSpace = 4;
/** Workers that a problem names; of the others it says how many they are. */
const mostNames = 3;

/** The problems, the worst first. */
export function systemProblems(health: Omit<SystemHealth, "problems">): SystemProblem[] {
  const found = [
    ...workerProblems(health.workers),
    ...diskProblems(health),
    ...workerDiskProblems(health),
    ...versionProblems(health),
    ...queueProblems(health),
  ];
  if (health.database.unknownMigrations > 0) found.push(newerDatabase(health));
  return found.toSorted((one, other) => Number(other.severity === "bad") - Number(one.severity === "bad"));
}

function workerProblems(workers: readonly WorkerHealth[]): SystemProblem[] {
  const found: SystemProblem[] = [];
  const seen = workers.filter(({ isSeen }) => isSeen);
  const lost = workers.filter(({ isSeen }) => !isSeen);
  if (seen.length === 0) {
    found.push({
      code: "no_worker",
      severity: "bad",
      what: "No worker is there: sessions are accepted, and wait.",
      remedy: "Start one with `offstage start` or `offstage worker`, or find in its log why it ended.",
    });
  } else if (seen.every(({ agents }) => agents.length === 0)) {
    found.push({
      code: "no_agent",
      severity: "bad",
      what: "No worker has an agent that it can run.",
      remedy: "Run `offstage doctor` on a worker's machine: it says what each agent lacks.",
    });
  }
  if (lost.length > 0) {
    found.push({
      code: "worker_not_seen",
      severity: "warn",
      what: `${lost.length === 1 ? "A worker is" : `${lost.length} workers are`} not seen any more, and did not stop in order: ${named(lost)}.`,
      remedy:
        "Look at its log, and start it again. What it ran goes on elsewhere; one that does not come back is forgotten after a day.",
    });
  }
  return found;
}

function named(workers: readonly WorkerHealth[]): string {
  const names = workers.slice(0, mostNames).map(({ id }) => id);
  const more = workers.length - names.length;
  return more === 0 ? names.join(", ") : `${names.join(", ")} and ${more} more`;
}

/** Whether a disk is too full for work, or soon will be. */
export function fullnessOf({ freeBytes, neededBytes }: DiskHealth): "full" | "nearlyFull" | "roomy" {
  if (freeBytes < neededBytes) return "full";
  return freeBytes < neededBytes * littleSpace ? "nearlyFull" : "roomy";
}

const diskRemedies = {
  full: "Make room on that disk, or give it a larger one. OFFSTAGE_MIN_FREE_MB is what has to be free.",
  nearlyFull: "Make room on that disk, or keep less: docs/operating.md says what is kept, and for how long.",
} as const;

function diskProblems({ server: { disk } }: Pick<SystemHealth, "server">): SystemProblem[] {
  const fullness = fullnessOf(disk);
  const how = `${megabytes(disk.freeBytes)} are free, and work needs ${megabytes(disk.neededBytes)}.`;
  if (fullness === "full") {
    return [
      {
        code: "disk_full",
        severity: "bad",
        what: `The disk of this server's data folder is full: ${how}`,
        remedy: diskRemedies.full,
      },
    ];
  }
  if (fullness === "roomy") return [];
  return [
    {
      code: "disk_nearly_full",
      severity: "warn",
      what: `The disk of this server's data folder is nearly full: ${how}`,
      remedy: diskRemedies.nearlyFull,
    },
  ];
}

/** Of workers on other machines: the disk of the one in the answering server's process is that server's. */
function workerDiskProblems({ server, workers }: Pick<SystemHealth, "server" | "workers">): SystemProblem[] {
  const others = workers.filter(({ id, isSeen }) => isSeen && id !== server.workerId);
  const withDisk = (fullness: ReturnType<typeof fullnessOf>) =>
    others.filter(({ machine }) => machine !== null && fullnessOf(machine.disk) === fullness);
  const [full, nearlyFull] = [withDisk("full"), withDisk("nearlyFull")];
  const found: SystemProblem[] = [];
  if (full.length > 0) {
    found.push({
      code: "worker_disk_full",
      severity: "bad",
      what: `${disksOf(full)} full, and no session begins there.`,
      remedy: diskRemedies.full,
    });
  }
  if (nearlyFull.length > 0) {
    found.push({
      code: "worker_disk_nearly_full",
      severity: "warn",
      what: `${disksOf(nearlyFull)} nearly full.`,
      remedy: diskRemedies.nearlyFull,
    });
  }
  return found;
}

const disksOf = (workers: readonly WorkerHealth[]): string =>
  workers.length === 1
    ? `The disk of the worker ${named(workers)} is`
    : `The disks of ${workers.length} workers (${named(workers)}) are`;

function versionProblems({ server, workers }: Pick<SystemHealth, "server" | "workers">): SystemProblem[] {
  const others = workers.filter(
    ({ isSeen, machine }) => isSeen && machine !== null && machine.version !== server.version,
  );
  if (others.length === 0) return [];
  const versions = [...new Set(others.map(({ machine }) => machine?.version))].join(", ");
  return [
    {
      code: "worker_version",
      severity: "warn",
      what: `This server is Offstage ${server.version}, and ${others.length === 1 ? "a worker has" : `${others.length} workers have`} another version (${versions}): ${named(others)}.`,
      remedy: "During an upgrade that is as it should be. After it, bring them all to the newer version.",
    },
  ];
}

const megabytes = (bytes: number): string => `${Math.floor(bytes / 1024 ** 2)} MB`;

function queueProblems({ queue, workers }: Pick<SystemHealth, "queue" | "workers">): SystemProblem[] {
  const waits = queue.oldestWaitSeconds;
  const minutes = (seconds: number): string => `${Math.floor(seconds / 60)} minutes`;
  const found: SystemProblem[] = [];
  if (waits.sessions > longestWaits.sessions) {
    found.push({
      code: "sessions_wait",
      severity: "warn",
      what: `A session has waited in the queue for ${minutes(waits.sessions)}.`,
      remedy: hasPlace(workers)
        ? "Workers have places free: look whether its organization or repository is at its limit of running sessions, and in the workers' logs whether memory or disk is short."
        : "All places are taken: add workers, or raise OFFSTAGE_CONCURRENCY.",
    });
  }
  if (waits.jobs > longestWaits.jobs) {
    found.push({
      code: "jobs_wait",
      severity: "warn",
      what: `A job of an automation has waited for ${minutes(waits.jobs)}.`,
      remedy: "Look in the workers' logs for what holds jobs up.",
    });
  }
  if (waits.deliveries > longestWaits.deliveries) {
    found.push({
      code: "deliveries_wait",
      severity: "warn",
      what: `A delivery to a webhook has been due for ${minutes(waits.deliveries)}.`,
      remedy: "Look in the workers' logs for the reason. A receiver may also take seconds for each of many deliveries.",
    });
  }
  return found;
}

function hasPlace(workers: readonly WorkerHealth[]): boolean {
  return workers.some(({ isSeen, concurrency, runningSessions }) => isSeen && runningSessions < concurrency);
}

function newerDatabase({ server, database }: Pick<SystemHealth, "server" | "database">): SystemProblem {
  return {
    code: "database_newer",
    severity: "warn",
    what: `A newer Offstage has migrated the database (to ${database.migration.name}) than this server, which is ${server.version}.`,
    remedy: "Bring this server, and all others that are older, to the newer version.",
  };
}
