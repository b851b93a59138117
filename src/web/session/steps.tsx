import type { StepName } from "../../domain/sessions/step.ts";
import { formatDuration, useNow } from "../elements/time.tsx";
import type { StepView } from "./session-view.ts";

const labels: Record<StepName, string> = {
  prepare: "Prepare",
  setup: "Set up",
  restore: "Restore",
  gate: "Gate",
  agent: "Agent",
  commit: "Commit",
  push: "Push",
  pullRequest: "Pull request",
};

const looks: Record<StepView["state"], { mark: string; className: string; word: string }> = {
  waiting: { mark: "○", className: "text-muted", word: "not started" },
  running: { mark: "◐", className: "text-accent", word: "running" },
  done: { mark: "✓", className: "text-good", word: "done" },
  failed: { mark: "✕", className: "text-bad", word: "failed" },
  stopped: { mark: "◼", className: "text-muted", word: "stopped" },
};

/**
 * The steps of the attempt with their durations; for the running step, its progress.
 * @param completed whether the session is completed: steps that have not begun were not needed
 */
export function Steps({ steps, completed }: { steps: readonly StepView[]; completed: boolean }) {
  const running = steps.find((step) => step.state === "running");
  return (
    <section aria-label="Steps" className="card p-3">
      <ol className="grid grid-cols-2 gap-2 sm:flex sm:flex-wrap sm:justify-between sm:gap-4">
        {steps.map((step) => (
          <Step key={step.name} step={step} completed={completed} />
        ))}
      </ol>
      {running?.progress != null && <Progress step={running} />}
    </section>
  );
}

function Step({ step, completed }: { step: StepView; completed: boolean }) {
  const { mark, className, word } = looks[step.state];
  const isNotNeeded = completed && step.state === "waiting";
  return (
    <li className="flex items-start gap-2 text-sm" aria-current={step.state === "running" ? "step" : undefined}>
      <span aria-hidden className={`${className} ${step.state === "running" ? "animate-spin" : ""}`}>
        {mark}
      </span>
      <span>
        <span className="font-medium">{labels[step.name]}</span>
        {!isNotNeeded && <span className="sr-only"> {word}</span>}
        <span className="block text-xs text-muted tabular-nums">
          {isNotNeeded ? "not needed" : <StepTime step={step} />}
        </span>
      </span>
    </li>
  );
}

function StepTime({ step }: { step: StepView }) {
  const now = useNow(step.state === "running" ? 1_000 : null);
  if (step.durationMs !== null) return formatDuration(step.durationMs);
  if (step.state !== "running" || step.startedAt === null) return "–";
  return formatDuration(Math.max(0, now - Date.parse(step.startedAt)));
}

function Progress({ step }: { step: StepView }) {
  const { text, fraction } = step.progress ?? { text: "", fraction: undefined };
  return (
    <div className="mt-3 text-xs text-muted">
      <div className="mb-1 flex justify-between gap-4">
        <span className="truncate">{text}</span>
        {fraction !== undefined && <span className="tabular-nums">{Math.round(fraction * 100)} %</span>}
      </div>
      {fraction !== undefined && (
        <progress
          aria-label={`${labels[step.name]}: ${text}`}
          value={fraction}
          max={1}
          className="h-1.5 w-full accent-accent"
        />
      )}
    </div>
  );
}
