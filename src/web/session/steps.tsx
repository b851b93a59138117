import { Icon } from "../elements/icon.tsx";
import { useNow } from "../elements/time.tsx";
import { formatDuration, formatPercent } from "../texts/formats.ts";
import { useSessionTexts } from "../texts/session.ts";
import type { StepView } from "./view/steps.ts";

const looks: Record<StepView["state"], { lamp: string; colour: string }> = {
  waiting: { lamp: "draft", colour: "text-muted" },
  running: { lamp: "running", colour: "text-accent" },
  done: { lamp: "completed", colour: "text-good" },
  failed: { lamp: "failed", colour: "text-bad" },
  stopped: { lamp: "cancelled", colour: "text-muted" },
};

/**
 * The steps of the attempt with their durations; for the running step, its progress.
 * @param isCompleted whether the session is completed: steps that have not begun were not needed
 */
export function Steps({ steps, isCompleted }: { steps: readonly StepView[]; isCompleted: boolean }) {
  const texts = useSessionTexts().steps;
  const running = steps.find((step) => step.state === "running");
  return (
    <section aria-label={texts.label} className="min-w-0">
      <ol className="flex flex-wrap gap-x-4 gap-y-1">
        {steps.map((step) => (
          <Step key={step.name} step={step} isCompleted={isCompleted} />
        ))}
      </ol>
      {running?.progress != null && <Progress step={running} />}
    </section>
  );
}

function Step({ step, isCompleted }: { step: StepView; isCompleted: boolean }) {
  const texts = useSessionTexts().steps;
  const { lamp, colour } = looks[step.state];
  const isNotNeeded = isCompleted && step.state === "waiting";
  return (
    <li className="flex items-center gap-1.5 text-xs" aria-current={step.state === "running" ? "step" : undefined}>
      <span className={colour}>
        <Icon name={`lamp-${lamp}`} className={`size-3 ${step.state === "running" ? "animate-pulse" : ""}`} />
      </span>
      <span>
        <span className={step.state === "waiting" ? "text-muted" : "font-medium"}>{texts.names[step.name]}</span>
        {!isNotNeeded && <span className="sr-only"> {texts.states[step.state]}</span>}
      </span>
      <span className="text-muted tabular-nums">{isNotNeeded ? texts.notNeeded : <StepTime step={step} />}</span>
    </li>
  );
}

function StepTime({ step }: { step: StepView }) {
  const now = useNow(step.state === "running" ? 1_000 : null);
  if (step.durationMs !== null) return formatDuration(step.durationMs);
  if (step.state !== "running" || step.startedAt === null) return null;
  return formatDuration(Math.max(0, now - Date.parse(step.startedAt)));
}

function Progress({ step }: { step: StepView }) {
  const texts = useSessionTexts().steps;
  const { text, fraction } = step.progress ?? { text: "", fraction: undefined };
  return (
    <div className="mt-1.5 flex items-center gap-3 text-xs text-muted">
      <span className="min-w-0 flex-1 truncate">{text}</span>
      {fraction !== undefined && (
        <>
          <progress
            aria-label={`${texts.names[step.name]}: ${text}`}
            value={fraction}
            max={1}
            className="progress h-1 w-40"
          />
          <span className="tabular-nums">{formatPercent(fraction)}</span>
        </>
      )}
    </div>
  );
}
