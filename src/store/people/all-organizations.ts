import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import {
  mostSessionsCounted,
  type CreateOrganization,
  type ListedOrganization,
} from "../../domain/people/organization.ts";
import { cursorColumn, isoTime, pageOf, readCursor, withoutCursor, type WithCursor } from "../cursor.ts";
import { one } from "../one-row.ts";
import { connectionsChannel } from "../secrets/forge-connections.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Mailing } from "./invitation-mails.ts";
import { insertInvited, type Invitation } from "./invitations.ts";
import { insertKey, newKey } from "./keys.ts";
import { isErased, newOrganizationLock } from "./organizations.ts";

// What those do who look after the server: they see that an organization is there and how much it is used, and nothing that is in it.

const columns = `organization.id, organization.name, organization.uses_server_forges as "usesServerForges", ${isoTime("organization.created_at")} as "createdAt",
  (select count(*) from user_account where organization_id = organization.id and disabled_at is null)::int as members,
  (select count(*) from (select from session where organization_id = organization.id limit ${mostSessionsCounted}) counted)::int
    as sessions,
  (select ${isoTime("created_at")} from session where organization_id = organization.id order by created_at desc, id desc limit 1)
    as "lastSessionAt"`;

/** A new organization, and what lets its first admin in: one of the two. */
export interface NewOrganization {
  readonly organization: ListedOrganization;
  readonly invitation: Invitation | null;
  /** Shown only now. */
  readonly adminKey: string | null;
}

/**
 * Creates an organization with a first admin, who is invited, or with an admin key. It has the settings that the server's own began with.
 * Idempotent by id, except that each call makes another invitation or key, which ends those before.
 * @param mailing how the invitation is mailed; null: it is not
 * @throws ConflictError if there is one of the name, in capitals or not, or if the one of the id was erased since
 */
export function createOrganization(
  database: Database,
  { id = crypto.randomUUID(), name, admin, usesServerForges = false }: CreateOrganization & { readonly id?: string },
  mailing: Mailing | null,
): Promise<NewOrganization> {
  return sealing(database, async (transaction) => {
    await transaction.query("select pg_advisory_xact_lock($1)", [newOrganizationLock]);
    const { rowCount } = await transaction.query(
      "select from organization where lower(name) = lower($1) and id <> $2",
      [name, id],
    );
    if (rowCount !== 0) throw new ConflictError(`name: there is an organization ${name} already`);
    await transaction.query(
      "insert into organization (id, name, uses_server_forges) values ($1, $2, $3) on conflict (id) do nothing",
      [id, name, usesServerForges],
    );
    await requireNotErased(transaction, id);
    if (admin == null) {
      const adminKey = newKey();
      await insertKey(transaction, id, { id, name: "first admin key", scopes: ["admin"] }, adminKey);
      return { organization: await listed(transaction, id), invitation: null, adminKey };
    }
    const person = { id, name: admin.name, email: admin.email ?? null, role: "admin" } as const;
    const invitation = await insertInvited(transaction, id, person, mailing);
    return { organization: await listed(transaction, id), invitation, adminKey: null };
  });
}

/** Holds the organization meanwhile, so that no erasure gets in between. One that was made before may be erased by now. */
async function requireNotErased(transaction: Queryable, id: string): Promise<void> {
  await transaction.query("select from organization where id = $1 for no key update", [id]);
  const { rowCount } = await transaction.query("select from erasure where organization_id = $1", [id]);
  if (rowCount !== 0)
    throw new ConflictError(
      "the organization was made and is erased: choose another Idempotency-Key to make a new one",
    );
}

/**
 * Lets an organization use the operator's credentials of forges, ssh keys and local repositories, or no more. It counts at once for what
 * begins, and for whatever is asked of a forge.
 * @throws NotFoundError also if it is being erased
 */
export async function changeOrganization(
  database: Database,
  id: string,
  { usesServerForges }: Pick<ListedOrganization, "usesServerForges">,
): Promise<ListedOrganization> {
  const { rows } = await database.pool.query<ListedOrganization>(
    `update organization set uses_server_forges = $2 where id = $1 and not ${isErased} returning ${columns}`,
    [id, usesServerForges],
  );
  const changed = one(rows, "organization", id);
  database.notifyAtOnce(connectionsChannel, id);
  return changed;
}

async function listed(queryable: Queryable, id: string): Promise<ListedOrganization> {
  const { rows } = await queryable.query<ListedOrganization>(`select ${columns} from organization where id = $1`, [id]);
  return one(rows, "organization", id);
}

/**
 * Lists all organizations, newest first, but those that are being erased.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listOrganizations(
  database: Database,
  { limit, cursor }: PageQuery,
): Promise<Page<ListedOrganization>> {
  const after = readCursor(cursor);
  const { rows } = await database.pool.query<WithCursor<ListedOrganization>>(
    `select ${columns}, ${cursorColumn("organization")} from organization
     where not ${isErased} and ($2::timestamptz is null or (created_at, id) < ($2::timestamptz, $3::uuid))
     order by created_at desc, id desc limit $1`,
    [limit + 1, after?.createdAt, after?.id],
  );
  return pageOf(rows, limit, withoutCursor);
}
