import type { Database } from "../../src/database/database.ts";
import type { Scope } from "../../src/domain/people/key.ts";
import type { Role, SignInIdentity } from "../../src/domain/people/user.ts";
import { newSession, type SessionRequest } from "../../src/domain/sessions/new-session.ts";
import { createAutomation } from "../../src/store/automations/automations.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { createBrowserSession } from "../../src/store/people/logins.ts";
import { claimSession, type ClaimedSession } from "../../src/store/queue/claims.ts";
import { createSession, type CreatedSession } from "../../src/store/sessions/new-session.ts";

/** An organization of its own, so that the tests of one file don't see each other's sessions. */
export async function addOrganization(database: Database, maxRunning: number | null = null): Promise<string> {
  const id = crypto.randomUUID();
  await database.pool.query("insert into organization (id, name, max_running_sessions) values ($1, $2, $3)", [
    id,
    `organization ${id}`,
    maxRunning,
  ]);
  return id;
}

/** Somebody whom a provider signed in to an organization, whatever the operator's lists say. @returns null if they are disabled */
export async function signInUser(
  database: Database,
  organizationId: string,
  { issuer, subject, email, name }: SignInIdentity,
  role: Role,
): Promise<{ readonly id: string; readonly name: string; readonly role: Role } | null> {
  const { rows } = await database.pool.query<{ id: string; name: string; role: Role }>(
    `insert into user_account (id, organization_id, issuer, subject, email, name, role) values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (organization_id, issuer, subject) do update set email = excluded.email, last_sign_in_at = now()
       where user_account.disabled_at is null
     returning id, name, role`,
    [crypto.randomUUID(), organizationId, issuer, subject, email, name, role],
  );
  return rows[0] ?? null;
}

/** Somebody whom a provider knows by a name. */
export const identityOf = (subject: string, email: string | null = null): SignInIdentity => ({
  issuer: "https://id.example",
  subject,
  name: subject,
  email,
  login: null,
  organizations: [],
});

/** Signs a person's browser in. @param issuer of the provider that did; omitted: a link did @returns the value of its cookie */
export function signInBrowser(
  database: Database,
  organizationId: string,
  userId: string,
  issuer?: string,
): Promise<string> {
  const principal = { organizationId, keyId: null, userId, scopes: [], automationIds: null };
  const browser = { days: 30, address: "192.0.2.1", userAgent: "A browser" };
  return createBrowserSession(database, principal, { ...browser, ...(issuer !== undefined && { issuer }) });
}

/** Somebody who signed in, with a key of their own. */
export async function addPerson(
  database: Database,
  organizationId: string,
  {
    name,
    role = "member",
    scopes = ["read", "write"],
  }: { readonly name: string; readonly role?: Role; readonly scopes?: readonly Scope[] },
): Promise<{ readonly userId: string; readonly key: string }> {
  const user = await signInUser(database, organizationId, identityOf(name), role);
  if (user === null) throw new Error(`${name} could not sign in`);
  const { key } = await createKey(database, organizationId, {
    name: `${name}'s`,
    scopes: [...scopes],
    userId: user.id,
  });
  return { userId: user.id, key };
}

/** A person's grant for a program. @returns its id */
export async function addGrant(database: Database, organizationId: string): Promise<string> {
  const id = crypto.randomUUID();
  await database.pool.query(
    `insert into oauth_grant (id, organization_id, client_id, client_name, scopes, resource, expires_at)
     values ($1, $2, 'a-program', 'A program', '{read}', 'mcp', now() + interval '1 day')`,
    [id, organizationId],
  );
  return id;
}

export async function addAutomation(database: Database, organizationId: string, macro: string): Promise<string> {
  const id = crypto.randomUUID();
  await createAutomation(database, organizationId, {
    id,
    name: macro,
    macro,
    instructions: "Work",
    agent: null,
    repositoryIds: [],
    targetBranch: null,
    priority: 5,
    paused: false,
    budgetUsd: null,
    title: null,
  });
  return id;
}

export function addSession(
  database: Database,
  organizationId: string,
  request: Partial<SessionRequest> = {},
): Promise<CreatedSession> {
  const session = newSession({ prompt: "Work", repositories: [], sandboxed: true, ...request });
  return createSession(database, organizationId, session);
}

export const longLeaseMs = 60_000;

export function claim(
  database: Database,
  options: {
    readonly worker?: string;
    readonly leaseMs?: number;
    readonly maximum?: number;
    readonly perRepository?: number;
  } = {},
): Promise<ClaimedSession | null> {
  const { worker = "worker", leaseMs = longLeaseMs, maximum = 1_000, perRepository = null } = options;
  const limits = { maxRunningPerOrganization: maximum, maxRunningPerRepository: perRepository };
  return claimSession(database, { worker, leaseMs, ...limits });
}

/** @throws where nothing is queued */
export async function requireClaim(...options: Parameters<typeof claim>): Promise<ClaimedSession> {
  const claimed = await claim(...options);
  if (claimed === null) throw new Error("there was nothing to claim");
  return claimed;
}

/** The lease runs out now, as if the time had passed. */
export async function expireLease(database: Database, sessionId: string): Promise<void> {
  await database.pool.query("update session set lease_until = now() - interval '1 second' where id = $1", [sessionId]);
}

/** `count` calls at once. */
export function atOnce<T>(count: number, call: (index: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => call(index)));
}
