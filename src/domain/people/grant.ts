import { z } from "zod";
import { hasScope, scopes, type Principal, type Scope } from "./key.ts";

/** The resources of a grant's tokens: the whole API, or its MCP server alone (RFC 8707). */
export const resources = ["api", "mcp"] as const;
/** See `resources`. */
export type Resource = (typeof resources)[number];

/** A program that a person let act for them, as the API shows it: without its tokens. */
export const grantSchema = z.object({
  id: z.uuid(),
  clientId: z.string(),
  /** As the program calls itself. */
  clientName: z.string(),
  /** The grantor: a user, an API key that signed their browser in, or the person who opened a one-time link. */
  by: z.enum(["user", "key", "link"]),
  userId: z.uuid().nullable(),
  keyId: z.uuid().nullable(),
  /** The user's name, or the key's. */
  name: z.string().nullable(),
  scopes: z.array(z.enum(scopes)),
  resource: z.enum(resources),
  /** Address of the browser that allowed it, as far as the server knows it. */
  address: z.string().nullable(),
  createdAt: z.iso.datetime(),
  lastUsedAt: z.iso.datetime().nullable(),
  /** When it ends if the program does not use it until then. */
  expiresAt: z.iso.datetime(),
});
/** See `grantSchema`. */
export type Grant = z.infer<typeof grantSchema>;

/** A program's request to a person, as the consent page shows it. */
export const consentSchema = z.object({
  clientName: z.string(),
  /** The host whose document describes the program, and so vouches for its name; null: the name is unverified. */
  clientHost: z.string().nullable(),
  /** The host to which the browser is redirected with the answer. */
  redirectHost: z.string(),
  /** Whether that is a program on the person's own machine: any that runs there could have asked. */
  isLocal: z.boolean(),
  resource: z.enum(resources),
  /** The scopes that it would get: the requested ones that the person has. */
  scopes: z.array(z.enum(scopes)),
});
/** See `consentSchema`. */
export type Consent = z.infer<typeof consentSchema>;

/** The scopes for a program that requests `requested`: no more than the person has. */
export function grantable(requested: readonly Scope[], person: Pick<Principal, "scopes">): Scope[] {
  return requested.filter((scope) => hasScope(person, scope));
}

/** Scopes of a program that names none, or no existing one. */
const usualScopes: readonly Scope[] = ["read", "write"];

/** The scopes in a request's parameter `scope` (RFC 6749, section 3.3). What is no scope of ours, such as `offline_access`, is left out. */
export function requestedScopes(parameter: string | undefined): readonly Scope[] {
  const named = new Set((parameter ?? "").split(" "));
  const known = scopes.filter((scope) => named.has(scope));
  return known.length === 0 ? usualScopes : known;
}
