/** On whose behalf something is asked. */
export interface Asker {
  readonly organizationId: string;
  /** The key, the user, or the kind of work. */
  readonly id: string;
}

/** What waits, taken in turns: of the organizations, and within each of those who ask. */
export interface Turns<T> {
  /** @returns false where too much of this organization, or of the same asker, waits already */
  add(asker: Asker, item: T): boolean;
  /** Takes what is next: of the organization, and there of the asker, that was not served for longest. */
  take(): T | undefined;
  /** Takes everything. */
  takeAll(): T[];
}

export interface TurnLimits {
  readonly perAsker: number;
  readonly perOrganization: number;
}

/** A Map keeps its order of insertion: whoever was served is put at its end. */
type Lanes<T> = Map<string, Map<string, T[]>>;

export function createTurns<T>(limits: TurnLimits): Turns<T> {
  const lanes: Lanes<T> = new Map();

  function take(): T | undefined {
    const [organization] = lanes;
    if (organization === undefined) return undefined;
    const [organizationId, askers] = organization;
    const [asker] = askers;
    if (asker === undefined) throw new Error("an organization without an asker was kept");
    const [id, items] = asker;
    const item = items.shift();
    toTheEnd(askers, id, items, items.length > 0);
    toTheEnd(lanes, organizationId, askers, askers.size > 0);
    return item;
  }

  return {
    add({ organizationId, id }, item) {
      const askers = lanes.get(organizationId) ?? new Map<string, T[]>();
      const items = askers.get(id) ?? [];
      if (items.length >= limits.perAsker || waiting(askers) >= limits.perOrganization) return false;
      items.push(item);
      askers.set(id, items);
      lanes.set(organizationId, askers);
      return true;
    },
    take,
    takeAll() {
      const all = [...lanes.values()].flatMap((askers) => [...askers.values()].flat());
      lanes.clear();
      return all;
    },
  };
}

function toTheEnd<T>(map: Map<string, T>, key: string, value: T, kept: boolean): void {
  map.delete(key);
  if (kept) map.set(key, value);
}

function waiting<T>(askers: ReadonlyMap<string, readonly T[]>): number {
  return [...askers.values()].reduce((sum, items) => sum + items.length, 0);
}
