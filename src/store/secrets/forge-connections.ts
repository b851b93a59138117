import { randomBytes } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import { ConflictError, NotFoundError, OffstageError } from "../../domain/errors/errors.ts";
import type { Page, PageQuery } from "../../domain/fields/list.ts";
import {
  boundedProblems,
  connectionStateOf,
  type Connection,
  type ConnectionCheck,
  type ConnectionCredential,
} from "../../domain/repositories/connection.ts";
import type { ForgeKind } from "../../domain/repositories/repository.ts";
import { cursorColumn, isoTime, pageOf, readCursor, withoutCursor, type WithCursor } from "../cursor.ts";
import { sealing } from "./rotation.ts";
import type { Sealed, Vault } from "./vault.ts";

/** Channel on which processes learn that an organization's connections have changed; its payload is the organization's id. */
export const connectionsChannel = "offstage_connections";

/** How long deliveries that are signed with the secret before a rotation are accepted. */
const previousSecretFor = "24 hours";
/** Time until the next check of a connection's health: an hour less up to a sixth of it, so that checks spread. */
const untilNextCheck = "interval '1 hour' - random() * interval '10 minutes'";
/** A connection that is broken is looked at again sooner: the forge may only have been away. */
const untilBrokenCheck = "interval '10 minutes'";
/** Most connections of an organization: each session opens all of them. */
const mostConnections = 100;

/** A connection as the database has it: its hook's address is added by the API, which knows its own. */
export type ConnectionRecord = Omit<Connection, "hookUrl">;

const columns = `id, kind, name, web_url as "webUrl", api_url as "apiUrl", credential, account, install_url as "installUrl",
  ${isoTime("previous_secret_until")} as "previousSecretUntil",
  json_build_object('state', state, 'checkedAt', ${isoTime("checked_at")}, 'problems', problems) as health,
  ${isoTime("created_at")} as "createdAt", ${isoTime("updated_at")} as "updatedAt"`;

/** What is sealed of a connection. */
interface SealedContent {
  readonly credential: ConnectionCredential;
  /** Secrets of its webhook: the current one, then the one before, if there was one. */
  readonly hookSecrets: readonly string[];
}

const newHookSecret = (): string => randomBytes(32).toString("hex");

async function sealContent(vault: Vault, id: string, content: SealedContent): Promise<Sealed> {
  return vault.seal(id, JSON.stringify(content));
}

async function openContent(vault: Vault, id: string, sealed: Sealed): Promise<SealedContent> {
  return JSON.parse(await vault.open(id, sealed)) as SealedContent;
}

/** A connection to create, checked already. */
export interface NewConnection extends Pick<ConnectionRecord, "id" | "kind" | "name" | "webUrl" | "apiUrl"> {
  readonly credential: ConnectionCredential;
  readonly check: ConnectionCheck;
  /** The secret that the forge chose for its webhook; omitted: a new one is made. */
  readonly hookSecret?: string;
}

/**
 * Creates a connection.
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
    await requireRoom(transaction, organizationId);
    const { sealed, masterKey } = await sealContent(vault, id, { credential, hookSecrets: [hookSecret] });
    const { rows } = await transaction
      .query<ConnectionRecord>(
        `insert into forge_connection (id, organization_id, kind, name, web_url, api_url, credential, account, install_url,
           sealed, master_key, state, problems, next_check_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now() + ${untilNextCheck}) returning ${columns}`,
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
        ],
      )
      .catch((error: unknown) => {
        if (!isUniqueViolation(error)) throw error;
        throw alreadyThere(webUrl);
      });
    return only(rows, id);
  });
  database.notify(connectionsChannel, organizationId);
  return { ...made, webhookSecret: hookSecret };
}

/** Holds the organization meanwhile, so that no other connection and no erasure gets in between. */
async function requireRoom(transaction: Queryable, organizationId: string): Promise<void> {
  await transaction.query("select from organization where id = $1 for no key update", [organizationId]);
  const { rows } = await transaction.query<{ count: number; isErased: boolean }>(
    `select (select count(*)::integer from forge_connection where organization_id = $1 and deleted_at is null) as count,
       exists (select from erasure where organization_id = $1) as "isErased"`,
    [organizationId],
  );
  const [{ count, isErased } = { count: 0, isErased: true }] = rows;
  if (isErased) throw new ConflictError("the organization is being erased: nothing can be connected to it");
  if (count < mostConnections) return;
  throw new ConflictError(`an organization has at most ${mostConnections} connections: delete one that is not needed`);
}

/**
 * Looks whether a connection for an address can be made, before a person does more for it.
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

function healthOf({ problems }: ConnectionCheck): [string, string] {
  return [connectionStateOf(problems), JSON.stringify(boundedProblems(problems))];
}

function only<Row>(rows: readonly Row[], id: string): Row {
  if (rows[0] === undefined) throw new NotFoundError(`connection ${id} was not found`);
  return rows[0];
}

/**
 * Lists an organization's connections, newest first.
 * @throws InvalidInputError if the cursor is malformed
 */
export async function listConnections(
  database: Database,
  organizationId: string,
  { limit, cursor }: PageQuery,
): Promise<Page<ConnectionRecord>> {
  const after = readCursor(cursor);
  const { rows } = await database.pool.query<WithCursor<ConnectionRecord>>(
    `select ${columns}, ${cursorColumn("forge_connection")} from forge_connection
     where organization_id = $1 and deleted_at is null
       and ($3::timestamptz is null or (created_at, id) < ($3::timestamptz, $4::uuid))
     order by created_at desc, id desc limit $2`,
    [organizationId, limit + 1, after?.createdAt, after?.id],
  );
  return pageOf(rows, limit, withoutCursor);
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
  return only(rows, id);
}

/**
 * Changes the given fields only.
 * @param changes.credential with what the forge said of it
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
  },
): Promise<ConnectionRecord> {
  const updated = await sealing(database, async (transaction) => {
    const before = await lockSealed(transaction, organizationId, id);
    const { name, credential } = changes;
    if (credential !== undefined) {
      const { given, check } = credential;
      const { hookSecrets } = await openContent(vault, id, before);
      const { sealed, masterKey } = await sealContent(vault, id, { credential: given, hookSecrets });
      await transaction.query(
        `update forge_connection set sealed = $2, master_key = $3, credential = $4, account = $5, install_url = $6,
           state = $7, problems = $8, checked_at = now(), next_check_at = now() + ${untilNextCheck} where id = $1`,
        [id, sealed, masterKey, given.type, check.account, check.installUrl ?? null, ...healthOf(check)],
      );
    }
    const { rows } = await transaction.query<ConnectionRecord>(
      `update forge_connection set name = coalesce($2, name), updated_at = now() where id = $1 returning ${columns}`,
      [id, name],
    );
    return only(rows, id);
  });
  database.notify(connectionsChannel, organizationId);
  return updated;
}

async function lockSealed(transaction: Queryable, organizationId: string, id: string): Promise<Sealed> {
  const { rows } = await transaction.query<Sealed>(
    `select sealed, master_key as "masterKey" from forge_connection
     where id = $1 and organization_id = $2 and deleted_at is null for no key update`,
    [id, organizationId],
  );
  return only(rows, id);
}

/**
 * Replaces the secret of a connection's webhook. The one before is accepted for another day.
 * @param hookSecret the new one; omitted: it is made
 * @returns the connection with the new secret, which is shown only now
 * @throws NotFoundError
 */
export async function rotateConnectionSecret(
  database: Database,
  vault: Vault,
  organizationId: string,
  id: string,
): Promise<ConnectionRecord & { readonly webhookSecret: string }> {
  const secret = newHookSecret();
  return sealing(database, async (transaction) => {
    const { credential, hookSecrets } = await openContent(vault, id, await lockSealed(transaction, organizationId, id));
    const content = { credential, hookSecrets: [secret, ...hookSecrets.slice(0, 1)] };
    const { sealed, masterKey } = await sealContent(vault, id, content);
    const { rows } = await transaction.query<ConnectionRecord>(
      `update forge_connection set sealed = $2, master_key = $3, updated_at = now(),
         previous_secret_until = now() + interval '${previousSecretFor}' where id = $1 returning ${columns}`,
      [id, sealed, masterKey],
    );
    return { ...only(rows, id), webhookSecret: secret };
  });
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
  const deleted = only(rows, id);
  database.notify(connectionsChannel, organizationId);
  return deleted;
}

/**
 * What is needed to take a delivery of a forge's webhook, by one query.
 * @param connectionId of any organization: whoever delivers has no key, and proves itself by the secret
 * @returns the secrets with which the delivery may be signed, the current one first; null if there is no such connection
 * @throws ConflictError if the secrets can't be decrypted
 */
export async function readConnectionForDelivery(
  database: Database,
  vault: Vault,
  connectionId: string,
): Promise<{ readonly organizationId: string; readonly kind: ForgeKind; readonly secrets: readonly string[] } | null> {
  const { rows } = await database.pool.query<
    Sealed & { organizationId: string; kind: ForgeKind; takesPrevious: boolean }
  >({
    name: "connection_for_delivery",
    text: `select organization_id as "organizationId", kind, sealed, master_key as "masterKey",
             coalesce(previous_secret_until > now(), false) as "takesPrevious"
           from forge_connection where id = $1 and deleted_at is null`,
    values: [connectionId],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { hookSecrets } = await openContent(vault, connectionId, row);
  const { organizationId, kind, takesPrevious } = row;
  return { organizationId, kind, secrets: takesPrevious ? hookSecrets : hookSecrets.slice(0, 1) };
}

/** The address that a connection serves; null if there is none any more. */
export async function readConnectionAddress(
  database: Database,
  organizationId: string,
  connectionId: string,
): Promise<string | null> {
  const { rows } = await database.pool.query<{ webUrl: string }>(
    `select web_url as "webUrl" from forge_connection where id = $1 and organization_id = $2 and deleted_at is null`,
    [connectionId, organizationId],
  );
  return rows[0]?.webUrl ?? null;
}

/** A connection as forges are made of it. Only where forges are called may this be read. */
export interface OpenedConnection extends Pick<ConnectionRecord, "id" | "kind" | "webUrl" | "apiUrl"> {
  readonly organizationId: string;
  /** Changes if the credential does. */
  readonly revision: string;
  /** The credential; an error if it can't be decrypted, which is no reason to use another one. */
  readonly credential: ConnectionCredential | OffstageError;
}

interface SealedConnection extends Omit<OpenedConnection, "credential">, Sealed {}

const sealedColumns = `id, organization_id as "organizationId", kind, web_url as "webUrl", api_url as "apiUrl", sealed,
  master_key as "masterKey", md5(sealed) as revision`;

async function opened(vault: Vault, row: SealedConnection): Promise<OpenedConnection> {
  const { sealed, masterKey, ...connection } = row;
  try {
    const { credential } = await openContent(vault, row.id, { sealed, masterKey });
    return { ...connection, credential };
  } catch (error) {
    if (!(error instanceof OffstageError)) throw error;
    return { ...connection, credential: error };
  }
}

/** The connections of an organization with their credentials. */
export async function openConnections(
  database: Database,
  vault: Vault,
  organizationId: string,
): Promise<OpenedConnection[]> {
  const { rows } = await database.pool.query<SealedConnection>({
    name: "open_connections",
    text: `select ${sealedColumns} from forge_connection where organization_id = $1 and deleted_at is null`,
    values: [organizationId],
  });
  return Promise.all(rows.map((row) => opened(vault, row)));
}

/** One connection with its credential. @throws NotFoundError */
export async function openConnection(
  database: Database,
  vault: Vault,
  organizationId: string,
  id: string,
): Promise<OpenedConnection> {
  const { rows } = await database.pool.query<SealedConnection>(
    `select ${sealedColumns} from forge_connection where id = $1 and organization_id = $2 and deleted_at is null`,
    [id, organizationId],
  );
  return opened(vault, only(rows, id));
}

/**
 * Records what a check found. The next one is in about an hour, in ten minutes if the connection is broken.
 * @param revision of the credential that was checked: if it was replaced meanwhile, the finding is about the old one, and dropped
 */
export async function saveConnectionHealth(
  database: Database,
  { id, revision }: Pick<OpenedConnection, "id" | "revision">,
  check: ConnectionCheck,
): Promise<void> {
  await database.pool.query(
    `update forge_connection set state = $3, problems = $4, checked_at = now(), account = coalesce($5, account),
       install_url = coalesce($6, install_url),
       next_check_at = now() + case when $3 = 'broken' then ${untilBrokenCheck} else ${untilNextCheck} end
     where id = $1 and deleted_at is null and md5(sealed) = $2`,
    [id, revision, ...healthOf(check), check.account, check.installUrl ?? null],
  );
}

/**
 * Takes connections whose check is due, of all organizations. Whoever takes one has five minutes for it.
 * @returns them with their credentials, the longest due first
 */
export async function claimDueConnections(
  database: Database,
  vault: Vault,
  limit: number,
): Promise<OpenedConnection[]> {
  const { rows } = await database.pool.query<SealedConnection>(
    `update forge_connection set next_check_at = now() + interval '5 minutes'
     where id in (select id from forge_connection
       where deleted_at is null and credential <> 'configured' and next_check_at <= now()
       order by next_check_at limit $1 for update skip locked)
     returning ${sealedColumns}`,
    [limit],
  );
  return Promise.all(rows.map((row) => opened(vault, row)));
}

/** Lets a connection be checked in the next minute, unless it was checked in the last one: a forge refused its credential. */
export async function checkConnectionSoon(database: Database, id: string): Promise<void> {
  await database.pool.query(
    `update forge_connection set next_check_at = now()
     where id = $1 and deleted_at is null and next_check_at > now() + interval '5 minutes'
       and checked_at < now() - interval '1 minute'`,
    [id],
  );
}

/** Organizations that have connections. */
export async function organizationsWithConnections(database: Database): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>(
    "select distinct organization_id as id from forge_connection where deleted_at is null",
  );
  return rows.map(({ id }) => id);
}
