/** Outcomes of an audited request; see `outcomeOf`. */
export const auditOutcomes = ["allowed", "refused", "failed"] as const;

/** See `auditOutcomes`. */
export type AuditOutcome = (typeof auditOutcomes)[number];
