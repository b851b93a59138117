import { z } from "zod";

/**
 * Outcomes of an accepted trigger of an automation: every trigger ends in exactly one. `filtered` and `missed` are for triggers
 * with a condition and for schedules, and are not written before there are such triggers.
 */
export const ledgerOutcomes = ["fired", "duplicate", "filtered", "missed", "failed", "dead-lettered"] as const;
/** See `ledgerOutcomes`. */
export type LedgerOutcome = (typeof ledgerOutcomes)[number];

/** An entry of the ledger of triggers. */
export const ledgerEntrySchema = z.object({
  id: z.uuid().meta({ description: "Of the job, if it started one." }),
  automationId: z.uuid().nullable(),
  outcome: z.enum(ledgerOutcomes).nullable().meta({ description: "null while it is under way." }),
  reason: z.string().nullable().meta({ description: "Why it did not fire." }),
  sessionId: z.uuid().nullable(),
  originalId: z.uuid().nullable().meta({ description: "The entry that this is a duplicate or a replay of." }),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `ledgerEntrySchema`. */
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>;
