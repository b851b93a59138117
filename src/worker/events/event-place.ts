import type { Database } from "../../database/database.ts";
import type { Calling } from "../../domain/repositories/calling.ts";
import { repositoryRefusal } from "../../domain/repositories/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { servesAddress } from "../../forges/serves.ts";
import type { ClaimedEvent } from "../../store/automations/claimed-events.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { findRepositoryByKey, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import { readConnectionOfEvent } from "../../store/secrets/event-connections.ts";

/** The repository that an event is about, as it was when the event was claimed. */
export interface EventPlace {
  readonly address: RepositoryAddress;
  readonly key: string;
  /** Whether the organization allows it. */
  readonly isAllowed: boolean;
  /** Null: it is not connected. */
  readonly known: RepositoryRecord | null;
  readonly calling: Calling;
}

/** Services for recognizing an event's repository. */
export interface PlaceServices {
  readonly database: Database;
  /** A key that is equal for all addresses of one repository. */
  readonly keyOf: (address: RepositoryAddress, organizationId: string) => Promise<string>;
}

/** Finds the repository that an event is about; null if it is about none that its sender may speak of. */
export async function eventPlaceOf(
  { database, keyOf }: PlaceServices,
  event: ClaimedEvent,
): Promise<EventPlace | null> {
  const { organizationId } = event;
  const found = await addressOf(database, event);
  if (found === null) return null;
  const { address, calling } = found;
  const key = await keyOf(address, organizationId);
  const isAllowed = repositoryRefusal(await allowedRepositories(database, organizationId), address) === null;
  return { address, key, isAllowed, known: await findRepositoryByKey(database, organizationId, key), calling };
}

/** The mention and trusted bots if no connection sets them. */
export const asTheServer: Calling = { mention: null, allowedBots: null };

/**
 * The address of the repository that an event is about, with the mention and trusted bots there; null if it is about
 * none, or about one that is not of the connection's forge.
 */
async function addressOf(
  database: Database,
  { organizationId, connectionId, payload }: ClaimedEvent,
): Promise<{ readonly address: RepositoryAddress; readonly calling: Calling } | null> {
  const { url } = (payload["repository"] ?? {}) as { readonly url?: unknown };
  if (typeof url !== "string") return null;
  const address = parseRepositoryUrl(url);
  // A delivery must not name a folder of this machine.
  if (isAddressProblem(address) || address.local) return null;
  if (connectionId === null) return { address, calling: asTheServer };
  const connection = await readConnectionOfEvent(database, organizationId, connectionId);
  return connection !== null && servesAddress(connection.webUrl, address, true)
    ? { address, calling: connection }
    : null;
}
