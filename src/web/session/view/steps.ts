import type { SessionEvent } from "../../../domain/sessions/event.ts";
import { optionalSteps, stepNames, type StepName } from "../../../domain/sessions/step.ts";

type StepEvent = Extract<SessionEvent, { type: `step.${string}` }>;

/** A step of the attempt as shown. */
export interface StepView {
  readonly name: StepName;
  readonly state: "waiting" | "running" | "done" | "failed" | "stopped";
  readonly startedAt: string | null;
  readonly durationMs: number | null;
  readonly progress: Extract<SessionEvent, { type: "step.progress" }>["data"] | null;
}

/** A step that ran in this or an earlier attempt. */
export interface StepSpan {
  readonly key: number;
  readonly name: StepName;
  readonly startedAt: string;
  /** Null while it runs. */
  readonly endedAt: string | null;
  readonly hasFailed: boolean;
}

const notStarted = { state: "waiting", startedAt: null, durationMs: null, progress: null } as const;
const allSteps: readonly StepView[] = stepNames.map((name) => ({ name, ...notStarted }));
/** The steps of an attempt of which none has begun: those that every attempt has. */
export const noSteps: readonly StepView[] = allSteps.filter(({ name }) => !optionalSteps.has(name));

/** The steps after an event about one of them. */
export function moveSteps(steps: readonly StepView[], event: StepEvent): readonly StepView[] {
  const { step: name } = event.data;
  const known = steps.some((step) => step.name === name);
  const before = known
    ? steps
    : allSteps.flatMap((step) => steps.find((other) => other.name === step.name) ?? (step.name === name ? step : []));
  return before.map((step) => (step.name === name ? moveStep(step, event) : step));
}

function moveStep(step: StepView, event: StepEvent): StepView {
  switch (event.type) {
    case "step.started":
      return { ...step, state: "running", startedAt: event.createdAt, durationMs: null, progress: null };
    case "step.progress":
      return { ...step, progress: event.data };
    case "step.completed":
      return { ...step, state: "done", durationMs: event.data.durationMs, progress: null };
    case "step.failed":
      return { ...step, state: "failed", durationMs: event.data.durationMs, progress: null };
  }
}

/** Changes spans by an event about a step. */
export function moveSpans(spans: StepSpan[], event: StepEvent): void {
  const { step: name } = event.data;
  if (event.type === "step.started") {
    spans.push({ key: event.seq, name, startedAt: event.createdAt, endedAt: null, hasFailed: false });
  } else if (event.type !== "step.progress") {
    const index = spans.findLastIndex((span) => span.name === name && span.endedAt === null);
    const span = spans[index];
    if (span === undefined) return;
    spans[index] = { ...span, endedAt: event.createdAt, hasFailed: event.type === "step.failed" };
  }
}

/** The steps after the attempt broke off: those that ran have stopped. */
export function stopSteps(steps: readonly StepView[], at: string): readonly StepView[] {
  return steps.map((step) => {
    if (step.state !== "running") return step;
    const durationMs = step.startedAt === null ? null : Math.max(0, Date.parse(at) - Date.parse(step.startedAt));
    return { ...step, state: "stopped", durationMs, progress: null };
  });
}
