/** A lock on folders that sessions share, such as mirrors: many users of one at a time, or one removal. */
export interface FolderLock {
  /** Runs `work`; the folder is not removed meanwhile, whether or not it exists yet. Waits for a removal under way. */
  whileUsed<T>(path: string, work: () => Promise<T>): Promise<T>;
  /** Runs `remove` if the folder is not in use; new users wait until it has ended. @returns whether it ran */
  whileUnused(path: string, remove: () => Promise<void>): Promise<boolean>;
}

/**
 * Makes the lock between starting sessions, which have left no sign yet of what they use, and the maintenance that removes what is unused.
 * It is in memory: a data folder has one worker, so both are in one process.
 */
export function createFolderLock(): FolderLock {
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
      // Waiting users only need to know that it has ended.
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
