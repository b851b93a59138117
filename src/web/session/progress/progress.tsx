import { Fragment } from "react";
import type { SessionDetail } from "../../../domain/sessions/session.ts";
import { isFinal } from "../../../domain/sessions/status.ts";
import { useNow } from "../../elements/time.tsx";
import {
  formatBytes,
  formatCompact,
  formatDollars,
  formatDuration,
  formatNumber,
  formatPercent,
  formatTenths,
} from "../../texts/formats.ts";
import { useSessionTexts } from "../../texts/session.ts";
import type { SessionView, UsageSample } from "../view/view.ts";
import { Plot } from "./plot.tsx";
import { spentTimeOf, type TimedCall } from "./spent-time.ts";
import { TimeChart } from "./time-chart.tsx";

const longestCalls = 5;

/** A session's progress: how its time was spent, what it costs, what its sandbox uses. */
export function Progress({ session, view }: { session: SessionDetail; view: SessionView }) {
  const texts = useSessionTexts().progress;
  const isAtWork = !isFinal(session.status) && session.status !== "draft";
  const now = useNow(isAtWork ? 1_000 : null);
  const spent = spentTimeOf(view, now);
  if (view.spans.length === 0) return <p className="py-12 text-center text-sm text-muted">{texts.nothing}</p>;
  return (
    <div className="space-y-6 text-sm">
      <section aria-labelledby="progress-time" className="space-y-3">
        <h2 id="progress-time" className="label">
          {texts.where}
        </h2>
        <TimeChart spans={view.spans} calls={spent.calls} now={now} />
        <Shares kinds={spent.kinds} modelMs={spent.modelMs} />
        <Longest calls={spent.calls} />
      </section>
      <Cost session={session} view={view} />
      {view.samples.length > 1 && <SandboxUse samples={view.samples} />}
    </div>
  );
}

/** Each kind's share of the time, with bars. */
function Shares({ kinds, modelMs }: { kinds: readonly (readonly [string, number])[]; modelMs: number }) {
  const texts = useSessionTexts().progress;
  const names: Readonly<Record<string, string>> = texts.kinds;
  const all = [["model", modelMs] as const, ...kinds].sort((a, b) => b[1] - a[1]);
  const most = all[0]?.[1] ?? 0;
  return (
    <dl className="grid grid-cols-[6rem_1fr] items-center gap-x-2 gap-y-1 text-xs">
      {all.map(([kind, ms]) => (
        <Fragment key={kind}>
          <dt className="text-muted">{kind === "model" ? texts.model : (names[kind] ?? kind)}</dt>
          <dd className="flex items-center gap-2">
            <meter aria-hidden className="bar h-2 flex-1" min={0} max={Math.max(1, most)} value={ms} data-kind={kind} />
            <span className="w-20 text-end text-xs tabular-nums">{formatDuration(ms)}</span>
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

function Longest({ calls }: { calls: readonly TimedCall[] }) {
  const texts = useSessionTexts().progress;
  const longest = [...calls]
    .sort((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs))
    .slice(0, longestCalls)
    .filter(({ startMs, endMs }) => endMs > startMs);
  if (longest.length === 0) return null;
  return (
    <>
      <h3 className="label pt-1">{texts.longest}</h3>
      <ol className="space-y-0.5">
        {longest.map(({ key, title, startMs, endMs }) => (
          <li key={key} className="flex items-center gap-3">
            <bdi className="min-w-0 flex-1 truncate font-mono text-xs">{title}</bdi>
            <span className="text-xs tabular-nums">{formatDuration(endMs - startMs)}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

function Cost({ session, view }: { session: SessionDetail; view: SessionView }) {
  const texts = useSessionTexts().progress;
  const { tokens, usage } = view;
  // Events are ahead of the session while it runs, and may be deleted later.
  const costUsd = Math.max(session.spentUsd, tokens.costUsd);
  const { budgetUsd } = session;
  const counts = [
    [texts.tokensIn, tokens.input],
    [texts.tokensCached, tokens.cached],
    [texts.tokensOut, tokens.output],
  ] as const;
  return (
    <section aria-labelledby="progress-cost" className="space-y-2">
      <h2 id="progress-cost" className="label">
        {texts.cost}
      </h2>
      <p className="flex items-baseline gap-2">
        <span className="text-lg font-semibold tabular-nums">{formatDollars(costUsd)}</span>
        <span className="text-muted">
          {budgetUsd === null ? texts.noBudget : texts.ofBudget(formatDollars(budgetUsd))}
        </span>
      </p>
      {budgetUsd !== null && budgetUsd > 0 && (
        <meter
          aria-label={texts.cost}
          className="bar h-2 w-full"
          min={0}
          max={budgetUsd}
          value={costUsd}
          data-kind={costUsd >= budgetUsd ? "over" : "cost"}
        />
      )}
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-0.5 text-xs">
        {counts.map(([name, count]) => (
          <Fragment key={name}>
            <dt className="text-muted">
              {texts.tokens} {name}
            </dt>
            <dd className="tabular-nums" title={formatNumber(count)}>
              {formatCompact(count)}
            </dd>
          </Fragment>
        ))}
        {usage.contextUsed !== undefined && usage.contextSize !== undefined && usage.contextSize > 0 && (
          <>
            <dt className="text-muted">{texts.context}</dt>
            <dd className="tabular-nums">
              {formatCompact(usage.contextUsed)} · {formatPercent(usage.contextUsed / usage.contextSize)}
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}

function SandboxUse({ samples }: { samples: readonly UsageSample[] }) {
  const texts = useSessionTexts().progress;
  const last = samples.at(-1);
  const limit = last?.memoryLimitBytes ?? null;
  return (
    <section aria-labelledby="progress-sandbox" className="space-y-3">
      <h2 id="progress-sandbox" className="label">
        {texts.sandbox}
      </h2>
      <Plot
        name={texts.memory}
        now={
          limit === null
            ? formatBytes(last?.memoryBytes ?? 0)
            : texts.memoryOf(formatBytes(last?.memoryBytes ?? 0), formatBytes(limit))
        }
        points={samples.map(({ at, memoryBytes }) => ({ at: Date.parse(at), value: memoryBytes }))}
        limit={limit}
        format={formatBytes}
      />
      <Plot
        name={texts.cores}
        now={texts.coresUsed(formatTenths(last?.cores ?? 0))}
        points={samples.map(({ at, cores: used }) => ({ at: Date.parse(at), value: used }))}
        limit={null}
        format={formatTenths}
      />
    </section>
  );
}
