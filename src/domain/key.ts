import { z } from "zod";
import { text } from "./text.ts";

export const scopes = ["read", "write", "admin"] as const;
export type Scope = (typeof scopes)[number];

export const createKeySchema = z
  .object({
    name: text(200),
    scopes: z.array(z.enum(scopes)).min(1).optional().meta({ description: "Default read and write." }),
    role: z.enum(["admin", "member", "viewer"]).optional().meta({ description: "Instead of scopes." }),
    expiresAt: z.iso.datetime("must be a time in UTC, such as 2030-01-31T12:00:00Z").nullish(),
  })
  .refine((body) => body.role === undefined || body.scopes === undefined, {
    message: "can't be given beside scopes: choose one of them",
    path: ["role"],
  });
export type CreateKey = z.infer<typeof createKeySchema>;

export const keySchema = z.object({
  id: z.uuid(),
  name: z.string(),
  /** The first characters of the key, enough to recognise it. */
  prefix: z.string(),
  scopes: z.array(z.enum(scopes)),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
  revokedAt: z.iso.datetime().nullable(),
  lastUsedAt: z.iso.datetime().nullable(),
});
export type Key = z.infer<typeof keySchema>;

/** The only answer that ever holds the key itself. */
export const createdKeySchema = keySchema.extend({ key: z.string() });

/** Who is asking: resolved once at the edge from a key or a browser's cookie. */
export interface Principal {
  readonly organizationId: string;
  readonly keyId: string | null;
  readonly userId: string | null;
  readonly scopes: readonly Scope[];
}

/** `admin` holds `write`, which holds `read`. */
export function hasScope(principal: Principal, scope: Scope): boolean {
  return scopes.slice(scopes.indexOf(scope)).some((held) => principal.scopes.includes(held));
}
