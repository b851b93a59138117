import { z } from "zod";

/** How everything ends that was accepted to start an automation: in exactly one of these. */
export const ledgerOutcomes = ["fired", "duplicate", "filtered", "missed", "failed", "dead-lettered"] as const;
export type LedgerOutcome = (typeof ledgerOutcomes)[number];

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
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>;
