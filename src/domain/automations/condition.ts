import type { EventContext } from "./automation.ts";

/** The expressions of a trigger to evaluate. */
export interface Expression {
  /** CEL that gives a bool; empty: true. */
  readonly condition: string;
  /** CEL that gives the key of runs that do not run at once; null: there is none. */
  readonly key: string | null;
  /** What they see as `trigger`. */
  readonly trigger: { readonly id: string; readonly type: string };
}

/** The variables of expressions in addition to their own trigger. */
export interface ConditionVariables {
  readonly event: EventContext;
  /** The repository that the event is about; null if it is about none. */
  readonly repository: { readonly name: string; readonly url: string } | null;
}

/** The outcome of evaluating one `Expression`. */
export type Verdict =
  /** The key is null if the condition does not hold, or there is none. */
  | { readonly passes: boolean; readonly key: string | null }
  /** It can't be evaluated; the sentence is for its author. */
  | { readonly problem: string };
