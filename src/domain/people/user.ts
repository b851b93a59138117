import { z } from "zod";
import { hasScope, scopes, type Scope } from "./key.ts";

/** Roles of a user in an organization. */
export const roles = ["admin", "member", "viewer"] as const;

/** See `roles`. */
export type Role = (typeof roles)[number];

/** The scopes of each role. Nothing else decides what a role may do. */
const scopesByRole: Readonly<Record<Role, readonly Scope[]>> = {
  admin: ["admin"],
  member: ["read", "write"],
  viewer: ["read"],
};

/** Scopes of a user with this role. */
export function scopesOf(role: Role): readonly Scope[] {
  return scopesByRole[role];
}

/**
 * The scopes that a key has now: its own, without those that its owner lost by a change of role.
 * @param role of the owner; null: it has no owner
 */
export function scopesOfKey(given: readonly Scope[], role: Role | null): readonly Scope[] {
  if (role === null || scopesBeyond(role, given).length === 0) return given;
  const owner = { scopes: scopesOf(role) };
  return scopes.filter((scope) => hasScope({ scopes: given }, scope) && hasScope(owner, scope));
}

/** Those of the scopes that a user with this role does not have. */
export function scopesBeyond(role: Role, given: readonly Scope[]): readonly Scope[] {
  return given.filter((scope) => !hasScope({ scopes: scopesOf(role) }, scope));
}

/** The issuer of an invited person who has not signed in by an identity provider. */
export const invitationIssuer = "invitation";

/** A user as the API shows it: created at the first sign-in, or when they were invited. */
export const userSchema = z.object({
  id: z.uuid(),
  name: z.string(),
  email: z.string().nullable(),
  issuer: z.string().meta({
    description: `Address of the identity provider that authenticated the user; ${invitationIssuer} if none has, since a link signs them in.`,
  }),
  role: z.enum(roles),
  createdAt: z.iso.datetime(),
  invitedAt: z.iso.datetime().nullable().meta({ description: "null: nobody invited them." }),
  invitationMail: z
    .object({
      status: z
        .enum(["pending", "sent", "dead"])
        .meta({ description: "dead: the mail server refused it, or could not be reached for a day." }),
      problem: z.string().nullable().meta({ description: "Why it was not sent, as the last attempt had it." }),
    })
    .nullable()
    .default(null)
    .meta({ description: "The mail with their newest link; null: there is none, or the link has ended." }),
  lastSignInAt: z.iso
    .datetime()
    .nullable()
    .meta({ description: "null: they have not signed in to this organization yet." }),
  lastSeenAt: z.iso.datetime().nullable().meta({
    description:
      "When they, or a program that acts for them, last asked for something, as far as sign-ins tell that still stand.",
  }),
  disabledAt: z.iso.datetime().nullable(),
});

/** See `userSchema`. */
export type User = z.infer<typeof userSchema>;

/** Body of an update of a user: fields that are not sent keep their value. */
export const updateUserSchema = z.object({
  role: z.enum(roles).optional(),
  disabled: z.boolean().optional().meta({ description: "true signs the user out of every browser." }),
});

/** An authenticated person, as the identity provider describes them. */
export interface SignInIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  /** Null if the provider has not verified an address. */
  readonly email: string | null;
  /** The user name at the provider; null unless the provider is GitHub. */
  readonly login: string | null;
  /** The person's organizations at the provider; empty if Offstage did not ask for them. */
  readonly organizations: readonly string[];
}

/** Who may sign in, as the operator configured it; all texts in lower case. */
export interface SignInPolicy {
  /** E-mail addresses, and user names at GitHub. */
  readonly admins: readonly string[];
  /** Domains of e-mail addresses. */
  readonly domains: readonly string[];
  readonly githubOrganizations: readonly string[];
  readonly defaultRole: Role;
}

/** The role of a person who signs in; null if the policy does not admit them. */
export function roleFor(identity: SignInIdentity, policy: SignInPolicy): Role | null {
  const email = identity.email?.toLowerCase() ?? null;
  const names = new Set([email, identity.login?.toLowerCase()]);
  if (policy.admins.some((admin) => names.has(admin))) return "admin";
  const domain = email?.slice(email.lastIndexOf("@") + 1);
  if (domain !== undefined && policy.domains.includes(domain)) return policy.defaultRole;
  const known = identity.organizations.some((name) => policy.githubOrganizations.includes(name.toLowerCase()));
  return known ? policy.defaultRole : null;
}

/** One attempt to sign in, kept while the browser is at the provider. */
export interface SignInAttempt {
  readonly state: string;
  readonly nonce: string;
  /** Code verifier of PKCE (RFC 7636). */
  readonly verifier: string;
  /** Address to which the provider sends the browser back. */
  readonly redirectUrl: string;
}

/** Ids of all sign-in methods. */
export const signInMethodIds = ["oidc", "github"] as const;

/** See `signInMethodIds`. */
export type SignInMethodId = (typeof signInMethodIds)[number];

/** An identity provider. */
export interface SignInMethod {
  readonly id: SignInMethodId;
  /** Text of the method's button. */
  readonly name: string;
  /**
   * Starts a sign-in.
   * @returns the provider's address for the browser
   * @throws UnavailableError if the provider does not answer
   */
  begin(attempt: SignInAttempt): Promise<string>;
  /**
   * Completes a sign-in.
   * @param callback the whole address at which the browser came back
   * @throws ForbiddenError if the provider or a check refuses
   * @throws UnavailableError if the provider does not answer
   */
  finish(attempt: SignInAttempt, callback: URL): Promise<SignInIdentity>;
}
