import type { Database } from "../../database/database.ts";
import { OffstageError } from "../../domain/errors/errors.ts";
import type { ConnectionCheck, ConnectionCredential } from "../../domain/repositories/connection.ts";
import { healthOf, openContent, untilNextCheck } from "./connection-rows.ts";
import { connectionsChannel, type ConnectionRecord } from "./forge-connections.ts";
import type { Sealed, Vault } from "./vault.ts";
import { one } from "../one-row.ts";

/** A broken connection is checked again sooner: the forge may only have been unavailable. */
const untilBrokenCheck = "interval '10 minutes'";

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

/**
 * The addresses of an organization's connections, without credentials. Those that only take deliveries for a forge that
 * the operator configured are left out: the operator names their API.
 */
export async function connectionAddresses(
  database: Database,
  organizationId: string,
): Promise<Pick<ConnectionRecord, "kind" | "webUrl" | "apiUrl">[]> {
  const { rows } = await database.pool.query<Pick<ConnectionRecord, "kind" | "webUrl" | "apiUrl">>(
    `select kind, web_url as "webUrl", api_url as "apiUrl" from forge_connection
     where organization_id = $1 and deleted_at is null and credential <> 'configured'`,
    [organizationId],
  );
  return rows;
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
  return opened(vault, one(rows, "connection", id));
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
  const { rows } = await database.pool.query<{ organizationId: string; isRenamed: boolean }>(
    `with before as (select id, account_id, account_name from forge_connection where id = $1)
     update forge_connection set state = $3, problems = $4, checked_at = now(), account = coalesce($5, account),
       install_url = coalesce($6, install_url), account_id = coalesce($7, forge_connection.account_id),
       account_name = coalesce($8, forge_connection.account_name),
       next_check_at = now() + case when $3 = 'broken' then ${untilBrokenCheck} else ${untilNextCheck} end
     from before where forge_connection.id = before.id and deleted_at is null and md5(sealed) = $2
     returning organization_id as "organizationId",
       (before.account_id, before.account_name) is distinct from (forge_connection.account_id, forge_connection.account_name) as "isRenamed"`,
    [
      id,
      revision,
      ...healthOf(check),
      check.account,
      check.installUrl ?? null,
      check.accountId ?? null,
      check.accountName ?? null,
    ],
  );
  const [saved] = rows;
  // Deliveries are read with it.
  if (saved?.isRenamed === true) database.notifyAtOnce(connectionsChannel, saved.organizationId);
}

/**
 * Claims connections whose check is due, of all organizations, for five minutes.
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

/**
 * Makes a connection's check due in the next minute, unless it was checked in the last one: a forge refused its
 * credential.
 */
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
