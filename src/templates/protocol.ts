import type { EventContext } from "../domain/automations/automation.ts";
import type { ConditionVariables, Expression, Verdict } from "../domain/automations/condition.ts";

/** A task for the rendering process. */
export type Task = TemplateTask | CheckTask | EvaluateTask | ReadTask;

/** Renders or checks a template. */
export interface TemplateTask {
  readonly instructions: string;
  /** The trigger's body; null if the instructions are only checked. */
  readonly event: EventContext | null;
  /** Maximum length of the result, in characters. */
  readonly longest: number;
}

/** Checks one expression. */
export interface CheckTask {
  readonly expression: string;
  readonly gives: "bool" | "string";
}

/** Evaluates expressions with one event. */
export interface EvaluateTask {
  readonly expressions: readonly Expression[];
  readonly variables: ConditionVariables;
}

/** Reads YAML. */
export interface ReadTask {
  readonly yaml: string;
}

/** Messages of the rendering process: "ready" once, then one answer to each task. */
export type RendererMessage = "ready" | TaskAnswer;

/** The result of a task. */
export type TaskAnswer =
  /** Null if a template or an expression was only checked. */
  | { readonly prompt: string | null }
  /** One for each expression. */
  | { readonly verdicts: readonly Verdict[] }
  /** The value of the YAML. */
  | { readonly value: unknown }
  /** The text can't be checked or rendered; the sentence is for its author. */
  | { readonly problem: string };

/**
 * Signal with which the rendering process ends itself if a template has used up its processor time. Nothing else
 * sends it.
 */
export const timeSignal = "SIGVTALRM";

/** Indexes into the memory that the rendering thread and its watchdog share: two 64-bit integers. */
export const shared = {
  /** One of `phases`. */
  phase: 0,
  /** The current task must end when the process has used this much processor time, in microseconds. */
  deadline: 1,
} as const;
/** States of the rendering thread. */
export const phases = { idle: 0n, rendering: 1n, overdue: 2n } as const;

/** Processor time that the whole process has used so far, in microseconds. */
export function usedCpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
