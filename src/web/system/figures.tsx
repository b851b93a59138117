import type { ReactNode } from "react";
import type { SystemHealth } from "../../domain/system/health.ts";
import { Until } from "../elements/time.tsx";
import { formatBytes, formatDuration, formatNumber } from "../texts/formats.ts";
import { useSystemTexts } from "../texts/system.ts";

/** Figures of the whole server at a glance. */
export function Figures({ health: { workers, queue, server } }: { health: SystemHealth }) {
  const texts = useSystemTexts();
  const { figures: names } = texts;
  const seen = workers.filter(({ isSeen }) => isSeen);
  const places = seen.reduce((sum, { concurrency }) => sum + concurrency, 0);
  const taken = seen.reduce((sum, { runningSessions }) => sum + runningSessions, 0);
  const lost = workers.length - seen.length;
  const { sessions, retries, jobs, deliveries, oldestWaitSeconds: waits } = queue;
  const oldest = (seconds: number): string => (seconds === 0 ? "" : texts.oldest(formatDuration(seconds * 1_000)));
  return (
    <section aria-label={texts.now}>
      <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-4">
        <Figure name={names.workers} value={formatNumber(seen.length)}>
          {lost > 0 && texts.notSeenCount(formatNumber(lost))}
        </Figure>
        <Figure name={names.places} value={formatNumber(taken)}>
          {texts.ofAll(formatNumber(places))}
        </Figure>
        <Figure name={names.queued} value={formatNumber(sessions.queued - retries.due - retries.later)}>
          {oldest(waits.sessions)}
        </Figure>
        <Figure name={names.running} value={formatNumber(sessions.running)}>
          {sessions.waiting > 0 && texts.waiting(formatNumber(sessions.waiting))}
        </Figure>
        <Figure name={names.retries} value={formatNumber(retries.due + retries.later)}>
          {retries.nextAt !== null && (
            <>
              {texts.next} <Until at={retries.nextAt} />
            </>
          )}
        </Figure>
        <Figure name={names.jobs} value={formatNumber(jobs.pending)}>
          {oldest(waits.jobs) || (jobs.running > 0 && texts.runningJobs(formatNumber(jobs.running)))}
        </Figure>
        <Figure name={names.deliveries} value={formatNumber(deliveries.due)}>
          {oldest(waits.deliveries) || (deliveries.later > 0 && texts.later(formatNumber(deliveries.later)))}
        </Figure>
        <Figure name={names.disk} value={formatBytes(server.disk.freeBytes)}>
          {texts.ofAll(formatBytes(server.disk.totalBytes))}
        </Figure>
      </dl>
    </section>
  );
}

function Figure({ name, value, children }: { name: string; value: string; children: ReactNode }) {
  return (
    <div className="bg-surface p-3">
      <dt className="text-xs text-muted">{name}</dt>
      <dd>
        <span className="text-lg font-semibold tabular-nums">{value}</span>
        <span className="block min-h-4 text-xs text-muted">{children}</span>
      </dd>
    </div>
  );
}
