/** Outcomes of what was accepted (a trigger of the API, a tick, a delivered event): each ends in exactly one. */
export const ledgerOutcomes = [
  "fired",
  "duplicate",
  "filtered",
  "superseded",
  "missed",
  "failed",
  "dead-lettered",
] as const;

/** See `ledgerOutcomes`. */
export type LedgerOutcome = (typeof ledgerOutcomes)[number];
