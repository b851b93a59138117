import { createHash } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Key, Scope } from "../../domain/people/key.ts";
import { scopesBeyond, type User } from "../../domain/people/user.ts";
import { isoTime, listRows } from "../cursor.ts";
import { forgetKeys } from "./principals.ts";
import { revokeSharesOfKey } from "./share-links.ts";
import { hashOf, randomToken } from "./tokens.ts";
import { one } from "../one-row.ts";

const keyPrefix = "ofs_";
const shownCharacters = 12;

const columns = `id, name, prefix, scopes, automation_ids as "automationIds", ${isoTime("created_at")} as "createdAt",
  ${isoTime("expires_at")} as "expiresAt", ${isoTime("revoked_at")} as "revokedAt", ${isoTime("last_used_at")} as "lastUsedAt",
  (select jsonb_build_object('id', owner.id, 'name', owner.name) from user_account owner where owner.id = api_key.user_id) as owner`;

/**
 * Generates an API key: `ofs_`, 256 random bits, and a checksum of six characters, by which a secret scanner can
 * distinguish a real key from a look-alike.
 */
export function newKey(): string {
  const body = randomToken();
  return `${keyPrefix}${body}${createHash("sha256").update(body).digest("base64url").slice(0, 6)}`;
}

/**
 * An API key to create. `automationIds` limits it to these automations, and `expiresAt` is an ISO 8601 time; null or
 * undefined: no limit.
 */
export interface KeyInput {
  /** Omitted: another one is made. If there is a key of this id, which nobody has seen, it gets another secret part. */
  readonly id?: string | undefined;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly automationIds?: readonly string[] | null | undefined;
  readonly expiresAt?: string | null | undefined;
  /** The key's owner, for example the signed-in user who makes it: sessions that it creates are theirs. */
  readonly userId?: string | null | undefined;
}

/**
 * Creates an API key. Idempotent by id, except that each call makes another secret part.
 * @returns its record and the key itself, which is stored nowhere and shown only now
 */
export async function createKey(
  database: Database,
  organizationId: string,
  input: KeyInput,
): Promise<{ record: Key; key: string }> {
  const key = newKey();
  const record = await database.transaction((transaction) => insertKey(transaction, organizationId, input, key));
  return { record, key };
}

/**
 * Checks that a key has no scope that its owner lacks, which it could not use.
 * @param owner null: it has no owner
 * @throws InvalidInputError
 */
export function requireOwned(scopes: readonly Scope[], owner: Pick<User, "name" | "role"> | null): void {
  const beyond = owner === null ? [] : scopesBeyond(owner.role, scopes);
  if (owner === null || beyond.length === 0) return;
  throw new InvalidInputError(
    `scopes: ${owner.name} is ${owner.role}, so that a key of theirs can't have ${beyond.join(", ")}: choose others, or change the role first`,
  );
}

/** Stores a key with a known value, such as one that an operator chose at the first start. */
export async function insertKey(
  queryable: Queryable,
  organizationId: string,
  input: KeyInput,
  key: string,
): Promise<Key> {
  const { rows } = await queryable.query<Key>(
    `insert into api_key (id, organization_id, name, prefix, hash, scopes, automation_ids, expires_at, user_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (id) do update set hash = excluded.hash, prefix = excluded.prefix returning ${columns}`,
    [
      input.id ?? crypto.randomUUID(),
      organizationId,
      input.name,
      // If an operator chose the key, it may be short: twelve characters of it would reveal too much.
      key.startsWith(keyPrefix) ? key.slice(0, shownCharacters) : key.slice(0, 4),
      hashOf(key),
      input.scopes,
      input.automationIds,
      input.expiresAt,
      input.userId,
    ],
  );
  return rows[0] as Key;
}

/**
 * Lists an organization's API keys, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listKeys(database: Database, organizationId: string, query: PageQuery): Promise<Page<Key>> {
  return listRows<Key>(database, organizationId, query, { table: "api_key", columns });
}

/** All API keys of an organization, newest first, for the command line. */
export async function listEveryKey(database: Database, organizationId: string): Promise<Key[]> {
  const { rows } = await database.pool.query<Key>(
    `select ${columns} from api_key where organization_id = $1 order by created_at desc, id desc`,
    [organizationId],
  );
  return rows;
}

/**
 * Revokes a key at once, signs out the browsers that signed in with it, and the programs that they let act, and ends the links that it made.
 * @throws NotFoundError
 */
export async function revokeKey(database: Database, organizationId: string, id: string): Promise<Key> {
  const revoked = await database.transaction(async (transaction) => {
    const { rows } = await transaction.query<Key>(
      `update api_key set revoked_at = coalesce(revoked_at, now()) where id = $1 and organization_id = $2
       returning ${columns}`,
      [id, organizationId],
    );
    const key = one(rows, "key", id);
    await transaction.query("delete from browser_session where key_id = $1", [key.id]);
    await transaction.query("delete from oauth_grant where key_id = $1", [key.id]);
    await revokeSharesOfKey(transaction, key.id);
    return key;
  });
  forgetKeys(database);
  return revoked;
}

/** The user who owns a key; null: none. */
export async function ownerOfKey(database: Database, keyId: string): Promise<string | null> {
  const { rows } = await database.pool.query<{ userId: string | null }>(
    `select user_id as "userId" from api_key where id = $1`,
    [keyId],
  );
  return rows[0]?.userId ?? null;
}
