import { z } from "zod";

export const auditOutcomes = ["allowed", "refused", "failed"] as const;
export type AuditOutcome = (typeof auditOutcomes)[number];

/** One line of the audit log: who did what to what, from where, and whether it was let through. */
export const auditEntrySchema = z.object({
  id: z.uuid(),
  /** `nobody` showed no key, or a wrong one; a `command` ran on the server's machine. */
  actor: z.enum(["key", "user", "browser", "command", "nobody"]),
  keyId: z.uuid().nullable(),
  /** The key's name and first characters. */
  keyName: z.string().nullable(),
  userId: z.uuid().nullable(),
  action: z.string(),
  target: z.string().nullable(),
  outcome: z.enum(auditOutcomes),
  /** As the API answered. */
  status: z.number().int(),
  address: z.string().nullable(),
  requestId: z.uuid().nullable(),
  createdAt: z.iso.datetime(),
});
export type AuditEntry = z.infer<typeof auditEntrySchema>;

/** An entry before the store gave it its id and time. */
export type NewAuditEntry = Pick<
  AuditEntry,
  "actor" | "keyId" | "userId" | "action" | "target" | "status" | "address" | "requestId"
> & { readonly organizationId: string | null };

export function outcomeOf(status: number): AuditOutcome {
  if (status < 400) return "allowed";
  return status === 401 || status === 403 || status === 421 || status === 429 ? "refused" : "failed";
}
