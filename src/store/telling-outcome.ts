/** The outcome of an attempt to notify a person by push or mail. */
export type TellingOutcome =
  | { readonly status: "sent" }
  | { readonly status: "dead"; readonly problem: string }
  | { readonly status: "pending"; readonly problem: string; readonly retryMs: number };

/** Longest problem that is kept, in characters. */
const longestProblem = 500;

/** An outcome as the columns of an attempt have it: its status, the problem, and milliseconds until the next attempt. */
export function outcomeColumns(outcome: TellingOutcome): [status: string, problem: string | null, retryMs: number] {
  const problem =
    outcome.status === "sent" ? null : outcome.problem.slice(0, longestProblem).replaceAll("\0", "").toWellFormed();
  return [outcome.status, problem, outcome.status === "pending" ? outcome.retryMs : 0];
}
