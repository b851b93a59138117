import { allowsRepository } from "../repositories/repository-pattern.ts";
import type { RepositoryAddress } from "../repositories/repository.ts";

/** The fields of a trigger that decide which events reach it. */
interface Listener {
  readonly type: string;
  readonly events?: readonly string[];
  readonly repositories?: readonly string[];
}

/**
 * Whether a trigger's list of events has an event's name; null: its type has no such list.
 * @param name null: the event has none
 */
export function listsEvent({ type, events = [] }: Listener, name: string | null): boolean | null {
  if (type === "source") return events.length === 0 || (name !== null && events.includes(name));
  return type === "forge" ? name !== null && events.includes(name) : null;
}

/**
 * Whether a trigger's list of repositories has the event's; an empty list has all. Null: its type has no such list.
 * @param address null: the event is about no repository
 */
export function listsRepository(
  { type, repositories = [] }: Listener,
  address: RepositoryAddress | null,
): boolean | null {
  if (type !== "forge") return null;
  return repositories.length === 0 || (address !== null && allowsRepository(repositories, address));
}
