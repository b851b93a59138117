import { z } from "zod";
import { text } from "../fields/text.ts";

/** Scopes that an API key may have; see `hasScope`. */
export const scopes = ["trigger", "read", "write", "admin"] as const;
/** A scope. `trigger` allows a caller to start automations and nothing else, not even to read. */
export type Scope = (typeof scopes)[number];

/** For each scope, the scopes that include it. */
const heldBy: Readonly<Record<Scope, readonly Scope[]>> = {
  trigger: ["trigger", "write", "admin"],
  read: ["read", "write", "admin"],
  write: ["write", "admin"],
  admin: ["admin"],
};

/** Body of the creation of an API key. */
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
/** See `createKeySchema`. */
export type CreateKey = z.infer<typeof createKeySchema>;

/** An API key as the API shows it: without the secret part. */
export const keySchema = z.object({
  id: z.uuid(),
  name: z.string(),
  /** The first characters of the key, for people to recognise it by. */
  prefix: z.string(),
  scopes: z.array(z.enum(scopes)),
  /** Automations that the key may trigger; null: all. */
  automationIds: z.array(z.uuid()).nullable(),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
  revokedAt: z.iso.datetime().nullable(),
  lastUsedAt: z.iso.datetime().nullable(),
  /** The user who owns the sessions that it creates; null: no user. */
  owner: z.object({ id: z.uuid(), name: z.string() }).nullable(),
});
/** See `keySchema`. */
export type Key = z.infer<typeof keySchema>;

/** Answer to a key's creation: the only answer that contains the key itself. */
export const createdKeySchema = keySchema.extend({ key: z.string() });

/** The authenticated caller of a request: the API resolves it once from an API key or a browser's cookie. */
export interface Principal {
  readonly organizationId: string;
  readonly keyId: string | null;
  readonly userId: string | null;
  readonly scopes: readonly Scope[];
  /** Automations that the caller's key may trigger; null: all. */
  readonly automationIds: readonly string[] | null;
  /** Of a reader of one session by a share link: the link. They may request nothing else. */
  readonly shareId?: string;
  /** Of a program that acts for a person: the grant. */
  readonly grantId?: string;
}

/** Whether a caller has a scope: `admin` includes `write`, which includes `read` and `trigger`. */
export function hasScope({ scopes: granted }: Pick<Principal, "scopes">, scope: Scope): boolean {
  return heldBy[scope].some((holder) => granted.includes(holder));
}
