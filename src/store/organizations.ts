import type { Database } from "../database/database.ts";
import { NotFoundError } from "../domain/errors.ts";
import { insertKey, newKey } from "./keys.ts";

const bootstrapLock = 4_747_003;

/** The organization of a new installation. */
export const defaultOrganization = "default";

export interface Bootstrapped {
  readonly organizationId: string;
  /** True at the very first start alone. */
  readonly created: boolean;
  /** The admin key made for a new organization; null where the operator gave it, or it was made before. */
  readonly adminKey: string | null;
}

/** At the first start: makes the organization `default` and one admin key. Later: finds it. */
export function bootstrap(database: Database, options: { readonly adminKey: string | null }): Promise<Bootstrapped> {
  return database.transaction(async (transaction) => {
    await transaction.query("select pg_advisory_xact_lock($1)", [bootstrapLock]);
    const found = await transaction.query<{ id: string }>("select id from organization where name = $1", [
      defaultOrganization,
    ]);
    if (found.rows[0] !== undefined) return { organizationId: found.rows[0].id, created: false, adminKey: null };
    const organizationId = crypto.randomUUID();
    await transaction.query("insert into organization (id, name) values ($1, $2)", [
      organizationId,
      defaultOrganization,
    ]);
    const key = options.adminKey ?? newKey();
    await insertKey(transaction, organizationId, { name: "first admin key", scopes: ["admin"] }, key);
    return { organizationId, created: true, adminKey: options.adminKey === null ? key : null };
  });
}

/** @throws NotFoundError before the first start */
export async function findDefaultOrganization(database: Database): Promise<string> {
  const { rows } = await database.pool.query<{ id: string }>("select id from organization where name = $1", [
    defaultOrganization,
  ]);
  if (rows[0] === undefined)
    throw new NotFoundError("nothing is here yet: start the server once with `offstage start`");
  return rows[0].id;
}
