import { randomBytes } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import { storableJson } from "../../domain/fields/text.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import type { Connection, ConnectionCheck, ConnectionCredential } from "../../domain/repositories/connection.ts";
import type { Calling } from "../../domain/repositories/calling.ts";
import { isoTime, listRows } from "../cursor.ts";
import { healthOf, openContent, sealContent, untilNextCheck } from "./connection-rows.ts";
import { sealing } from "./rotation.ts";
import type { Sealed, Vault } from "./vault.ts";
import { one } from "../one-row.ts";

/** Channel on which processes learn that an organization's connections have changed; its payload is the organization's id. */
export const connectionsChannel = "offstage_connections";

/** How long deliveries that are signed with the secret before a rotation are accepted. */
const previousSecretFor = "24 hours";
/** Most connections of an organization: each session opens all of them. */
const mostConnections = 100;

/** A connection as the database has it: its hook's address is added by the API, which knows its own. */
export type ConnectionRecord = Omit<Connection, "hookUrl">;

const columns = `id, kind, name, web_url as "webUrl", api_url as "apiUrl", credential, account, install_url as "installUrl",
  mention, allowed_bots as "allowedBots", work_item_repositories as "workItemRepositories",
  ${isoTime("previous_secret_until")} as "previousSecretUntil",
  json_build_object('state', state, 'checkedAt', ${isoTime("checked_at")}, 'problems', problems) as health,
  ${isoTime("created_at")} as "createdAt", ${isoTime("updated_at")} as "updatedAt"`;

const newHookSecret = (): string => randomBytes(32).toString("hex");

/** A connection to create, checked already. */
export interface NewConnection extends Pick<ConnectionRecord, "id" | "kind" | "name" | "webUrl" | "apiUrl"> {
  readonly credential: ConnectionCredential;
  readonly check: ConnectionCheck;
  /** The secret that the forge chose for its webhook; omitted: a new one is made. */
  readonly hookSecret?: string | undefined;
  readonly mention?: Calling["mention"] | undefined;
  readonly allowedBots?: Calling["allowedBots"] | undefined;
  readonly workItemRepositories?: ConnectionRecord["workItemRepositories"] | undefined;
}

/**
 * Creates a connection. Idempotent by id, except that each call makes another secret for its webhook.
 * @returns it with its webhook's secret, which is shown only now
 * @throws ConflictError if the organization has one for the same address, or a hundred, or is being erased
 */
export async function createConnection(
  database: Database,
  vault: Vault,
  organizationId: string,
  connection: NewConnection,
): Promise<ConnectionRecord & { readonly webhookSecret: string }> {
  const { id, kind, name, webUrl, apiUrl, credential, check, hookSecret = newHookSecret() } = connection;
  const made = await sealing(database, async (transaction) => {
    await requireRoom(transaction, organizationId, id);
    const { sealed, masterKey } = await sealContent(vault, id, { credential, hookSecrets: [hookSecret] });
    const { rows } = await transaction
      .query<ConnectionRecord>(
        `insert into forge_connection (id, organization_id, kind, name, web_url, api_url, credential, account, install_url,
           sealed, master_key, state, problems, mention, allowed_bots, work_item_repositories, account_id, account_name, next_check_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, now() + ${untilNextCheck})
         on conflict (id) do update set sealed = excluded.sealed, master_key = excluded.master_key
         returning ${columns}`,
        [
          id,
          organizationId,
          kind,
          name,
          webUrl,
          apiUrl,
          credential.type,
          check.account,
          check.installUrl ?? null,
          sealed,
          masterKey,
          ...healthOf(check),
          connection.mention ?? null,
          connection.allowedBots ?? null,
          asJson(connection.workItemRepositories),
          check.accountId ?? null,
          check.accountName ?? null,
        ],
      )
      .catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error;
        throw alreadyThere(webUrl);
      });
    return one(rows, "connection", id);
  });
  database.notifyAtOnce(connectionsChannel, organizationId);
  return { ...made, webhookSecret: hookSecret };
}

/** Holds the organization meanwhile, so that no other connection and no erasure gets in between. */
async function requireRoom(transaction: Queryable, organizationId: string, id: string): Promise<void> {
  await transaction.query("select from organization where id = $1 for no key update", [organizationId]);
  const { rows } = await transaction.query<{ count: number; isErased: boolean }>(
    `select (select count(*)::integer from forge_connection where organization_id = $1 and deleted_at is null and id <> $2) as count,
       exists (select from erasure where organization_id = $1) as "isErased"`,
    [organizationId, id],
  );
  const [{ count, isErased } = { count: 0, isErased: true }] = rows;
  if (isErased) throw new ConflictError("the organization is being erased: nothing can be connected to it");
  if (count < mostConnections) return;
  throw new ConflictError(`an organization has at most ${mostConnections} connections: delete one that is not needed`);
}

/**
 * Checks that a connection for an address can be made, before a person spends time on it.
 * @throws ConflictError if the organization has one
 */
export async function requireFreeAddress(database: Database, organizationId: string, webUrl: string): Promise<void> {
  const { rowCount } = await database.pool.query(
    "select from forge_connection where organization_id = $1 and web_url = $2 and deleted_at is null",
    [organizationId, webUrl],
  );
  if (rowCount !== 0) throw alreadyThere(webUrl);
}

function alreadyThere(webUrl: string): ConflictError {
  return new ConflictError(`webUrl: a connection for ${webUrl} already exists: update or delete it`);
}

/**
 * Lists an organization's connections, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export function listConnections(
  database: Database,
  organizationId: string,
  query: PageQuery,
): Promise<Page<ConnectionRecord>> {
  const condition = "deleted_at is null";
  return listRows<ConnectionRecord>(database, organizationId, query, { table: "forge_connection", columns, condition });
}

/** Reads a connection. @throws NotFoundError */
export async function getConnection(
  queryable: Pick<Queryable, "query">,
  organizationId: string,
  id: string,
): Promise<ConnectionRecord> {
  const { rows } = await queryable.query<ConnectionRecord>(
    `select ${columns} from forge_connection where id = $1 and organization_id = $2 and deleted_at is null`,
    [id, organizationId],
  );
  return one(rows, "connection", id);
}

/**
 * Changes the given fields only.
 * @param changes.credential with what the forge said of it
 * @param changes.mention null: as the server is set, as of `allowedBots`
 * @throws NotFoundError
 */
export async function updateConnection(
  database: Database,
  vault: Vault,
  organizationId: string,
  id: string,
  changes: {
    readonly name?: string | undefined;
    readonly credential?: { readonly given: ConnectionCredential; readonly check: ConnectionCheck } | undefined;
    readonly mention?: Calling["mention"] | undefined;
    readonly allowedBots?: Calling["allowedBots"] | undefined;
    readonly workItemRepositories?: ConnectionRecord["workItemRepositories"] | undefined;
  },
): Promise<ConnectionRecord> {
  const updated = await sealing(database, async (transaction) => {
    const before = await lockSealed(transaction, organizationId, id);
    const { name, credential, mention, allowedBots, workItemRepositories } = changes;
    if (credential !== undefined) {
      const { given, check } = credential;
      const { hookSecrets } = await openContent(vault, id, before);
      const { sealed, masterKey } = await sealContent(vault, id, { credential: given, hookSecrets });
      await transaction.query(
        `update forge_connection set sealed = $2, master_key = $3, credential = $4, account = $5, install_url = $6,
           state = $7, problems = $8, account_id = $9, account_name = $10, checked_at = now(),
           next_check_at = now() + ${untilNextCheck} where id = $1`,
        [
          id,
          sealed,
          masterKey,
          given.type,
          check.account,
          check.installUrl ?? null,
          ...healthOf(check),
          check.accountId ?? null,
          check.accountName ?? null,
        ],
      );
    }
    const { rows } = await transaction.query<ConnectionRecord>(
      `update forge_connection set name = coalesce($2, name), mention = case when $3 then $4 else mention end,
         allowed_bots = case when $5 then $6 else allowed_bots end,
         work_item_repositories = case when $7 then $8 else work_item_repositories end, updated_at = now()
       where id = $1 returning ${columns}`,
      [
        id,
        name,
        mention !== undefined,
        mention ?? null,
        allowedBots !== undefined,
        allowedBots ?? null,
        workItemRepositories !== undefined,
        asJson(workItemRepositories),
      ],
    );
    return one(rows, "connection", id);
  });
  database.notifyAtOnce(connectionsChannel, organizationId);
  return updated;
}

function asJson(value: NewConnection["workItemRepositories"]): string | null {
  return value == null ? null : storableJson(value);
}

async function lockSealed(transaction: Queryable, organizationId: string, id: string): Promise<Sealed> {
  const { rows } = await transaction.query<Sealed>(
    `select sealed, master_key as "masterKey" from forge_connection
     where id = $1 and organization_id = $2 and deleted_at is null for no key update`,
    [id, organizationId],
  );
  return one(rows, "connection", id);
}

/**
 * Replaces the secret of a connection's webhook. The one before is accepted for another day.
 * @returns the connection with the new secret, which is shown only now
 * @throws NotFoundError
 */
export async function rotateConnectionSecret(
  database: Database,
  vault: Vault,
  { organizationId, id }: { readonly organizationId: string; readonly id: string },
  hookSecret = newHookSecret(),
): Promise<ConnectionRecord & { readonly webhookSecret: string }> {
  const rotated = await sealing(database, async (transaction) => {
    const { credential, hookSecrets } = await openContent(vault, id, await lockSealed(transaction, organizationId, id));
    const content = { credential, hookSecrets: [hookSecret, ...hookSecrets.slice(0, 1)] };
    const { sealed, masterKey } = await sealContent(vault, id, content);
    const { rows } = await transaction.query<ConnectionRecord>(
      `update forge_connection set sealed = $2, master_key = $3, updated_at = now(),
         previous_secret_until = now() + interval '${previousSecretFor}' where id = $1 returning ${columns}`,
      [id, sealed, masterKey],
    );
    return { ...one(rows, "connection", id), webhookSecret: hookSecret };
  });
  database.notifyAtOnce(connectionsChannel, organizationId);
  return rotated;
}

/**
 * Deletes a connection with all that is secret of it; its row stays for what refers to it.
 * @throws NotFoundError
 */
export async function deleteConnection(
  database: Database,
  organizationId: string,
  id: string,
): Promise<ConnectionRecord> {
  const { rows } = await database.pool.query<ConnectionRecord>(
    `update forge_connection set deleted_at = now(), updated_at = now(), sealed = null, master_key = null
     where id = $1 and organization_id = $2 and deleted_at is null returning ${columns}`,
    [id, organizationId],
  );
  const deleted = one(rows, "connection", id);
  database.notifyAtOnce(connectionsChannel, organizationId);
  return deleted;
}
