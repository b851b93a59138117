import { z } from "zod";
import { text } from "./text.ts";

export const scopes = ["trigger", "read", "write", "admin"] as const;
/** `trigger` starts automations and nothing else: it does not even read. */
export type Scope = (typeof scopes)[number];

/** Which scopes hold each. */
const heldBy: Readonly<Record<Scope, readonly Scope[]>> = {
  trigger: ["trigger", "write", "admin"],
  read: ["read", "write", "admin"],
  write: ["write", "admin"],
  admin: ["admin"],
};

export const createKeySchema = z
  .object({
    name: text(200),
    scopes: z.array(z.enum(scopes)).min(1).optional().meta({ description: "Default read and write." }),
    role: z.enum(["admin", "member", "viewer"]).optional().meta({ description: "Instead of scopes." }),
    automationIds: z
      .array(z.uuid())
      .min(1)
      .max(100)
      .nullish()
      .meta({ description: "Automations that a key of the scope trigger may start; omitted or null: all." }),
    expiresAt: z.iso.datetime("must be a time in UTC, such as 2030-01-31T12:00:00Z").nullish(),
  })
  .refine((body) => body.role === undefined || body.scopes === undefined, {
    message: "can't be given beside scopes: choose one of them",
    path: ["role"],
  })
  .refine((body) => body.automationIds == null || (body.scopes?.length === 1 && body.scopes[0] === "trigger"), {
    message: 'can only be given with the scopes ["trigger"]: every other scope is for the whole organization',
    path: ["automationIds"],
  });
export type CreateKey = z.infer<typeof createKeySchema>;

export const keySchema = z.object({
  id: z.uuid(),
  name: z.string(),
  /** The first characters of the key, enough to recognise it. */
  prefix: z.string(),
  scopes: z.array(z.enum(scopes)),
  /** Automations that it may trigger; null: not limited to some. */
  automationIds: z.array(z.uuid()).nullable(),
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
  /** Automations that its key may trigger; null: not limited to some. */
  readonly automationIds: readonly string[] | null;
}

/** `admin` holds `write`, which holds `read` and `trigger`. */
export function hasScope({ scopes: held }: Pick<Principal, "scopes">, scope: Scope): boolean {
  return heldBy[scope].some((holder) => held.includes(holder));
}
