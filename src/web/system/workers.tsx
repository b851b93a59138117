import type { DiskHealth, SystemHealth, WorkerHealth, WorkerMachine } from "../../domain/system/health.ts";
import { fullnessOf } from "../../domain/system/problems.ts";
import { Badge } from "../elements/badge.tsx";
import { Ago } from "../elements/time.tsx";
import { formatBytes, formatNumber } from "../texts/formats.ts";
import { useSystemTexts } from "../texts/system.ts";

/** The workers, each with what it runs and can run, its version and its disk. */
export function Workers({ health: { workers, server } }: { health: Pick<SystemHealth, "workers" | "server"> }) {
  const texts = useSystemTexts();
  return (
    <section aria-labelledby="workers" className="space-y-2">
      <h2 id="workers" className="label">
        {texts.figures.workers}
      </h2>
      {workers.length === 0 ? (
        <p className="card px-4 py-8 text-center text-sm text-muted">{texts.workers.none}</p>
      ) : (
        <ul aria-label={texts.figures.workers} className="card divide-y divide-line">
          {workers.map((worker) => (
            <Row key={worker.id} worker={worker} version={server.version} />
          ))}
        </ul>
      )}
    </section>
  );
}

/** @param version of the server, which the worker's should be */
function Row({ worker, version }: { worker: WorkerHealth; version: string }) {
  const { id, isSeen, seenAt, startedAt, agents, defaultAgent, warmSandboxes, machine } = worker;
  const { workers: texts } = useSystemTexts();
  return (
    <li className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 py-3 text-sm">
      <div className="min-w-0 flex-1 basis-64">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <code className="min-w-0 font-medium wrap-anywhere">{id}</code>
          <Badge tone={isSeen ? "good" : "bad"} label={isSeen ? texts.up : texts.notSeen} />
          {machine !== null && machine.version !== version && <Badge tone="warn" label={texts.otherVersion} />}
        </p>
        <p className="text-muted">
          {texts.seenAt} <Ago at={seenAt} /> · {texts.startedAt} <Ago at={machine?.startedAt ?? startedAt} />
        </p>
        <p className={`wrap-anywhere ${agents.length === 0 ? "text-warn" : "text-muted"}`}>
          {agents.length === 0 ? texts.noAgent : agents.join(", ")}
          {defaultAgent !== null && <code className="text-xs"> ({defaultAgent})</code>}
        </p>
        {machine !== null && <Program machine={machine} warmSandboxes={warmSandboxes} />}
      </div>
      <div className="w-full space-y-2 sm:w-48">
        <Places worker={worker} />
        {machine === null ? (
          <p className="text-xs text-muted">{texts.silent}</p>
        ) : (
          <Disk name={texts.diskOf(id)} disk={machine.disk} />
        )}
      </div>
    </li>
  );
}

function Program({
  machine: { version, nodeVersion, mirrors },
  warmSandboxes,
}: {
  machine: WorkerMachine;
  warmSandboxes: number;
}) {
  const { workers: texts } = useSystemTexts();
  return (
    <p className="text-xs wrap-anywhere text-muted tabular-nums">
      {[texts.program(version, nodeVersion), texts.mirrors(mirrors), texts.warm(warmSandboxes)].join(" · ")}
    </p>
  );
}

function Places({ worker: { id, concurrency, runningSessions, runningJobs } }: { worker: WorkerHealth }) {
  const { workers: texts } = useSystemTexts();
  return (
    <div className="space-y-1">
      <meter
        aria-label={texts.placesOf(id)}
        className="bar block h-2 w-full bg-transparent"
        min={0}
        max={concurrency}
        value={Math.min(concurrency, runningSessions)}
      />
      <p className="text-xs text-muted tabular-nums">
        {texts.places(formatNumber(runningSessions), formatNumber(concurrency))}
        {runningJobs > 0 && ` · ${texts.jobs(runningJobs)}`}
      </p>
    </div>
  );
}

function Disk({ name, disk }: { name: string; disk: DiskHealth }) {
  const { workers: texts, server } = useSystemTexts();
  const { freeBytes, totalBytes } = disk;
  const fullness = fullnessOf(disk);
  return (
    <div className="space-y-1">
      <meter
        aria-label={name}
        className="bar block h-2 w-full bg-transparent"
        min={0}
        max={totalBytes}
        value={totalBytes - freeBytes}
        data-kind={{ full: "over", nearlyFull: "execute", roomy: "disk" }[fullness]}
      />
      <p className="flex flex-wrap items-center gap-x-2 gap-y-1 text-xs text-muted tabular-nums">
        {server.diskFree(formatBytes(freeBytes), formatBytes(totalBytes))}
        {fullness !== "roomy" && <Badge tone={fullness === "full" ? "bad" : "warn"} label={texts[fullness]} />}
      </p>
    </div>
  );
}
