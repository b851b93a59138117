import type { WorkerHealth } from "../../domain/system/health.ts";
import { Badge } from "../elements/badge.tsx";
import { Ago } from "../elements/time.tsx";
import { formatNumber } from "../texts/formats.ts";
import { useSystemTexts } from "../texts/system.ts";

/** The workers, each with what it runs and can run. */
export function Workers({ workers }: { workers: readonly WorkerHealth[] }) {
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
            <Row key={worker.id} worker={worker} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Row({
  worker: { id, isSeen, seenAt, startedAt, concurrency, runningSessions, runningJobs, agents, defaultAgent },
}: {
  worker: WorkerHealth;
}) {
  const { workers: texts } = useSystemTexts();
  return (
    <li className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 py-3 text-sm">
      <div className="min-w-0 flex-1 basis-64">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <code className="min-w-0 font-medium wrap-anywhere">{id}</code>
          <Badge tone={isSeen ? "good" : "bad"} label={isSeen ? texts.up : texts.notSeen} />
        </p>
        <p className="text-muted">
          {texts.seenAt} <Ago at={seenAt} /> · {texts.startedAt} <Ago at={startedAt} />
        </p>
        <p className={`wrap-anywhere ${agents.length === 0 ? "text-warn" : "text-muted"}`}>
          {agents.length === 0 ? texts.noAgent : agents.join(", ")}
          {defaultAgent !== null && <code className="text-xs"> ({defaultAgent})</code>}
        </p>
      </div>
      <div className="w-full space-y-1 sm:w-48">
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
    </li>
  );
}
