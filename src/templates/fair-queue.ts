/** The caller for whom something is done. */
export interface QueuedCaller {
  readonly organizationId: string;
  /** Id of the key or the user, or a kind of work. */
  readonly id: string;
}

/** A queue that is fair: organizations take turns, and so do the askers of each organization. */
export interface FairQueue<T> {
  /** @returns false if too many items of this organization or asker wait already */
  add(asker: QueuedCaller, item: T): boolean;
  /** Takes the next item: of the organization, and of its asker, that has waited longest since the last one. */
  take(): T | undefined;
  /** Takes all items. */
  takeAll(): T[];
}

/** Limits of waiting items. */
export interface FairQueueLimits {
  readonly perAsker: number;
  readonly perOrganization: number;
}

/** A Map keeps the order of insertion: the one whose item was taken is moved to the end. */
type Lanes<T> = Map<string, Map<string, T[]>>;

/** Makes an empty queue. */
export function createFairQueue<T>(limits: FairQueueLimits): FairQueue<T> {
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
