import type { EventContext } from "../domain/automations/automation.ts";

/** A task for the rendering process. */
export interface Task {
  readonly instructions: string;
  /** The trigger's body; null if the instructions are only checked. */
  readonly event: EventContext | null;
  /** Maximum length of the result, in characters. */
  readonly longest: number;
}

/** Messages of the rendering process: "ready" once, then one answer to each task. */
export type Message = "ready" | Answer;

/** The result of a task. */
export type Answer =
  /** Null if the instructions were only checked. */
  | { readonly prompt: string | null }
  /** The instructions can't be rendered; the sentence is for their author. */
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
