import type { Database } from "../../database/database.ts";
import type { Calling } from "../../domain/repositories/calling.ts";
import type { ForgeKind } from "../../domain/repositories/repository.ts";
import { openContent } from "./connection-rows.ts";
import type { Sealed, Vault } from "./vault.ts";
import { createKnown, type Known } from "../known.ts";
import { type ConnectionRecord, connectionsChannel } from "./forge-connections.ts";

/** An account of a forge, by which it is named in deliveries, and the name by which people see it. */
export interface OwnAccount {
  readonly id: string;
  readonly name: string;
}

/** What is needed to take a delivery of a forge's webhook. */
export interface DeliveringConnection extends Pick<Calling, "mention"> {
  readonly organizationId: string;
  readonly kind: ForgeKind;
  /** Which repositories its work items are about. */
  readonly workItemRepositories: ConnectionRecord["workItemRepositories"];
  /** Whose its credential is, as deliveries name them; null: its forge does not say. */
  readonly own: OwnAccount | null;
  /** With which the delivery may be signed, the current one first. */
  readonly secrets: readonly string[];
}

/** Connections that are remembered with their opened secrets. */
const mostKnown = 1_000;

/** Remembers connections that take deliveries for a short time: opening a secret takes longer than all else that is done with a delivery. */
export function createDeliveringConnections(database: Database, vault: Vault): Known<DeliveringConnection> {
  const ask = async (id: string) => {
    const value = await readConnectionForDelivery(database, vault, id);
    return value && { value, validMs: Number.POSITIVE_INFINITY };
  };
  return createKnown(database, ask, { channel: connectionsChannel, most: mostKnown });
}

/**
 * Reads what is needed to take a delivery of a forge's webhook, by one query.
 * @param connectionId of any organization: whoever delivers has no key, and proves itself by the secret
 * @returns null if there is no such connection
 * @throws ConflictError if the secrets can't be decrypted
 */
export async function readConnectionForDelivery(
  database: Database,
  vault: Vault,
  connectionId: string,
): Promise<DeliveringConnection | null> {
  const { rows } = await database.pool.query<
    Sealed &
      Pick<ConnectionRecord, "mention" | "workItemRepositories"> & {
        organizationId: string;
        kind: ForgeKind;
        takesPrevious: boolean;
        accountId: string | null;
        accountName: string | null;
      }
  >({
    name: "connection_for_delivery",
    text: `select organization_id as "organizationId", kind, mention, work_item_repositories as "workItemRepositories", sealed, master_key as "masterKey",
             account_id as "accountId", account_name as "accountName",
             coalesce(previous_secret_until > now(), false) as "takesPrevious"
           from forge_connection where id = $1 and deleted_at is null`,
    values: [connectionId],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { hookSecrets } = await openContent(vault, connectionId, row);
  const { organizationId, kind, mention, workItemRepositories, takesPrevious, accountId: ownId, accountName } = row;
  return {
    organizationId,
    kind,
    mention,
    workItemRepositories,
    own: ownId === null || accountName === null ? null : { id: ownId, name: accountName },
    secrets: takesPrevious ? hookSecrets : hookSecrets.slice(0, 1),
  };
}

/**
 * All secrets with which deliveries to an organization's connections are signed, to mask them.
 * @throws ConflictError if one can't be decrypted
 */
export async function openHookSecrets(database: Database, vault: Vault, organizationId: string): Promise<string[]> {
  const { rows } = await database.pool.query<Sealed & { readonly id: string }>(
    `select id, sealed, master_key as "masterKey" from forge_connection where organization_id = $1 and deleted_at is null`,
    [organizationId],
  );
  const contents = await Promise.all(rows.map((row) => openContent(vault, row.id, row)));
  return contents.flatMap(({ hookSecrets }) => hookSecrets);
}

/** The address that a connection serves, and who calls Offstage there by what; null if there is none any more. */
export async function readConnectionOfEvent(
  database: Database,
  organizationId: string,
  connectionId: string,
): Promise<(Calling & { readonly webUrl: string }) | null> {
  const { rows } = await database.pool.query<Calling & { webUrl: string }>(
    `select web_url as "webUrl", mention, allowed_bots as "allowedBots" from forge_connection
     where id = $1 and organization_id = $2 and deleted_at is null`,
    [connectionId, organizationId],
  );
  return rows[0] ?? null;
}
