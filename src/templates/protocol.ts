import type { EventContext } from "../domain/automation.ts";

/** What a renderer's process is told. */
export interface Task {
  readonly instructions: string;
  /** The trigger's body; null: the instructions are only checked. */
  readonly event: EventContext | null;
  /** Characters that the result may have. */
  readonly longest: number;
}

/** What it says: once that it is ready, then one answer to each task. */
export type Message = "ready" | Answer;

export type Answer =
  /** Null where the instructions were only checked. */
  | { readonly prompt: string | null }
  /** The instructions can't be rendered; the sentence is for whoever wrote them. */
  | { readonly problem: string };

/** Signal by which a process ends itself when a template used up its processor time: nothing else sends it. */
export const timeSignal = "SIGVTALRM";

/** Indexes into what the rendering thread and its watchdog share: two 64-bit integers. */
export const shared = {
  /** One of `phases`. */
  phase: 0,
  /** Processor time of the process, in microseconds, at which the task under way ends. */
  deadline: 1,
} as const;
export const phases = { idle: 0n, rendering: 1n, overdue: 2n } as const;

/** Processor time that the whole process used so far, in microseconds. */
export function usedCpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
