import { z } from "zod";
import { auditOutcomes, type AuditOutcome } from "./audit-outcome.ts";

/** An entry of the audit log: an actor, its action, the action's target, the caller's address, and the outcome. */
export const auditEntrySchema = z.object({
  id: z.uuid(),
  /** `nobody`: the request had no valid key; `command`: the server itself, or a command on its machine. */
  actor: z.enum(["key", "user", "browser", "command", "nobody"]),
  keyId: z.uuid().nullable(),
  /** The key's name and first characters. */
  keyName: z.string().nullable(),
  userId: z.uuid().nullable(),
  userName: z.string().nullable().default(null),
  action: z.string(),
  /** Its target, from the outside in, separated by slashes, such as `<session>/<link>`; null: no object with an id. */
  target: z.string().nullable(),
  outcome: z.enum(auditOutcomes),
  /** HTTP status of the API's answer. */
  status: z.number().int(),
  address: z.string().nullable(),
  requestId: z.uuid().nullable(),
  createdAt: z.iso.datetime(),
});

/** See `auditEntrySchema`. */
export type AuditEntry = z.infer<typeof auditEntrySchema>;

/** An audit entry before the database assigns its id and time; the outcome follows from the status. */
export type NewAuditEntry = Pick<
  AuditEntry,
  "actor" | "keyId" | "userId" | "action" | "target" | "status" | "address" | "requestId"
> & { readonly organizationId: string | null };

/**
 * The outcome of a request by its HTTP status: below 400 `allowed`; 401, 403, 421 and 429 `refused`; any other
 * `failed`.
 */
export function outcomeOf(status: number): AuditOutcome {
  if (status < 400) return "allowed";
  return status === 401 || status === 403 || status === 421 || status === 429 ? "refused" : "failed";
}
