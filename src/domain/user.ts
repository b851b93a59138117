import { z } from "zod";
import type { Scope } from "./key.ts";

export const roles = ["admin", "member", "viewer"] as const;
export type Role = (typeof roles)[number];

/** The one place that says what a role may do. */
const scopesByRole: Readonly<Record<Role, readonly Scope[]>> = {
  admin: ["admin"],
  member: ["read", "write"],
  viewer: ["read"],
};

export function scopesOf(role: Role): readonly Scope[] {
  return scopesByRole[role];
}

export const userSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  email: z.string().nullable(),
  /** Address of the provider that vouches for this person. */
  issuer: z.string(),
  role: z.enum(roles),
  createdAt: z.iso.datetime(),
  lastSignInAt: z.iso.datetime(),
  disabledAt: z.iso.datetime().nullable(),
});
export type User = z.infer<typeof userSchema>;

export const updateUserSchema = z.object({
  role: z.enum(roles).optional(),
  disabled: z.boolean().optional().meta({ description: "true signs the user out of every browser." }),
});

/** Who somebody is, as a provider says that was asked. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  /** Null where the provider does not vouch for it. */
  readonly email: string | null;
  /** Name by which the provider's users know each other; GitHub's alone. */
  readonly login: string | null;
  /** Organizations there, where they were asked for. */
  readonly organizations: readonly string[];
}

/** Whom the operator lets in; all in lower case. */
export interface SignInPolicy {
  /** E-mail addresses, and logins of GitHub. */
  readonly admins: readonly string[];
  /** Of e-mail addresses. */
  readonly domains: readonly string[];
  readonly githubOrganizations: readonly string[];
  readonly defaultRole: Role;
}

/** What somebody becomes who signs in; null where nobody lets them in. */
export function roleFor(identity: Identity, policy: SignInPolicy): Role | null {
  const email = identity.email?.toLowerCase() ?? null;
  const names = new Set([email, identity.login?.toLowerCase()]);
  if (policy.admins.some((admin) => names.has(admin))) return "admin";
  const domain = email?.slice(email.lastIndexOf("@") + 1);
  if (domain !== undefined && policy.domains.includes(domain)) return policy.defaultRole;
  const known = identity.organizations.some((name) => policy.githubOrganizations.includes(name.toLowerCase()));
  return known ? policy.defaultRole : null;
}

/** One attempt to sign in, which goes to the provider and comes back. */
export interface SignInAttempt {
  readonly state: string;
  readonly nonce: string;
  /** Of PKCE (RFC 7636). */
  readonly verifier: string;
  /** Where the provider sends the browser back to. */
  readonly redirectUrl: string;
}

export const signInMethodIds = ["oidc", "github"] as const;
export type SignInMethodId = (typeof signInMethodIds)[number];

/** A provider of identities. */
export interface SignInMethod {
  readonly id: SignInMethodId;
  /** On its button. */
  readonly name: string;
  /** @returns the provider's address to send the browser to @throws UnavailableError */
  begin(attempt: SignInAttempt): Promise<string>;
  /**
   * @param callback the whole address with which the browser came back
   * @throws ForbiddenError where the provider or a check says no; UnavailableError
   */
  finish(attempt: SignInAttempt, callback: URL): Promise<Identity>;
}

/** A page to come to after a sign-in: an address of our own, and nothing that a browser could take for another site. */
export const pagePath = /^(?:\/|(?:\/[\w-]{1,64}){1,3})(?:\?[\w=&.-]{1,100})?$/u;

/** Why a sign-in came to nothing, as the sign-in page reads it from its address. */
export const signInProblems = {
  refused: "You are not on the list of this server: ask its operator to let you in.",
  disabled: "Your account was disabled: ask an admin.",
  denied: "The sign-in was not finished, or could not be verified. Try again.",
  expired: "The sign-in took too long, or was started in another browser. Try again.",
  unavailable: "The sign-in provider does not answer. Try again later, or use a key or link.",
} as const;
export type SignInProblem = keyof typeof signInProblems;
