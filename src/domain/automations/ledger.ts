import { z } from "zod";
import { ledgerOutcomes } from "./ledger-outcome.ts";

/** An entry of the ledger of triggers. */
export const ledgerEntrySchema = z.object({
  id: z.uuid().meta({ description: "Of the job, if it started one." }),
  automationId: z.uuid().nullable().meta({ description: "null: an event that several automations may answer." }),
  /** Null: by the API, or by a node of the version before. */
  triggerId: z.uuid().nullable().default(null),
  eventId: z.uuid().nullable().default(null).meta({ description: "The entry of the event that started it." }),
  name: z.string().nullable().default(null).meta({ description: "The event's name, if it has one." }),
  outcome: z.enum(ledgerOutcomes).nullable().meta({ description: "null while it is under way." }),
  reason: z.string().nullable().meta({ description: "Why it did not fire." }),
  sessionId: z.uuid().nullable(),
  originalId: z.uuid().nullable().meta({ description: "The entry that this is a duplicate or a replay of." }),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});

/** The decision of a trigger that listened to an event. */
const decisionSchema = z.object({
  triggerId: z.uuid(),
  automationId: z.uuid(),
  outcome: z.enum(["fired", "filtered"]),
  reason: z.string().nullable(),
});

/** See `decisionSchema`. */
export type Decision = z.infer<typeof decisionSchema>;

/** A ledger entry as a whole. */
export const wholeLedgerEntrySchema = ledgerEntrySchema.extend({
  payload: z
    .record(z.string(), z.unknown())
    .nullable()
    .meta({ description: "The event, with secrets masked; null if it is gone." }),
  deliveryId: z.string().nullable().meta({ description: "The sender's." }),
  subject: z.string().nullable(),
  decisions: z.array(decisionSchema).meta({ description: "Of an event: what its listeners made of it, at most 100." }),
});

/** See `ledgerEntrySchema`. */
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>;

/** See `wholeLedgerEntrySchema`. */
export type WholeLedgerEntry = z.infer<typeof wholeLedgerEntrySchema>;
