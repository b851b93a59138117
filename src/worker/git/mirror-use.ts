export interface MirrorUse {
  /** Does `work`, during which the mirror stays where it is, whether or not it is there yet. */
  whileUsed<T>(path: string, work: () => Promise<T>): Promise<T>;
  /** Does `remove` while nobody uses the mirror; whoever wants to waits. @returns whether it did: not while it is used */
  whileUnused(path: string, remove: () => Promise<void>): Promise<boolean>;
}

/**
 * Between a session that starts, whose pins are not in the mirror yet, and the upkeep that removes what nobody pins. Both
 * are of one process, since a data folder has one worker.
 */
export function createMirrorUse(): MirrorUse {
  const users = new Map<string, number>();
  const removals = new Map<string, Promise<void>>();
  const add = (path: string, change: number): void => {
    const count = (users.get(path) ?? 0) + change;
    if (count === 0) users.delete(path);
    else users.set(path, count);
  };
  return {
    async whileUsed(path, work) {
      for (let removal = removals.get(path); removal !== undefined; removal = removals.get(path)) await removal;
      add(path, 1);
      try {
        return await work();
      } finally {
        add(path, -1);
      }
    },
    async whileUnused(path, remove) {
      if (users.has(path) || removals.has(path)) return false;
      const removal = remove();
      // Who waits for it does not care how it ended.
      removals.set(path, removal.then(ignore, ignore));
      try {
        await removal;
      } finally {
        removals.delete(path);
      }
      return true;
    },
  };
}

function ignore(): void {}
