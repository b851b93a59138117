import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import { allSettled } from "../../all-settled.ts";
import type { ObjectStore } from "../../objects/object-store.ts";

// Rows about the objects in the object store. A row is committed before its object is uploaded, and deleted after the
// object is, so that every object has a row by which it can be found and removed after a crash. Code that refers to
// objects holds them (`holdObjects`) in its own transaction.

/** An object to upload, under a key that was never used before. */
export interface NewObject {
  readonly key: string;
  readonly content: Buffer;
}

/**
 * Unused objects are removed after this time, which is far longer than it takes to upload objects and refer to them.
 */
const sweepAfter = "interval '1 hour'";
/** After this time another worker continues a removal that was not finished. */
const removalLost = "interval '10 minutes'";
const batchSize = 100;
const atOnce = 4;

/**
 * Uploads objects in parallel. The keys must be new. Returns only after every upload has ended, also if one fails.
 * @throws ObjectStoreError
 */
export async function putObjects(
  database: Database,
  objects: ObjectStore,
  fresh: readonly NewObject[],
  signal: AbortSignal,
): Promise<void> {
  if (fresh.length === 0) return;
  await database.pool.query(
    "insert into stored_object (key, bucket, bytes) select key, $3, bytes from unnest($1::text[], $2::integer[]) as new (key, bytes)",
    [fresh.map(({ key }) => key), fresh.map(({ content }) => content.length), objects.bucket],
  );
  await allSettled(fresh.map(({ key, content }) => objects.put(key, content, signal)));
}

/**
 * Protects objects from removal until the transaction ends. The transaction must write something that refers to them.
 * @throws ConflictError if an object is being removed already
 */
export async function holdObjects(transaction: Queryable, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  // This updates the row instead of only locking it: a sweep that read the row earlier then sees the change when it
  // gets the lock.
  const { rowCount } = await transaction.query(
    "update stored_object set used_at = now() where key = any($1) and removing_since is null",
    [keys],
  );
  if (rowCount !== keys.length) throw new ConflictError("what was put into the object store was removed as too old");
}

/**
 * Removes unused objects from the configured bucket. What can't be removed now is left for the next sweep.
 * @returns how many objects were removed
 * @throws ObjectStoreError
 */
export async function sweepObjects(database: Database, objects: ObjectStore, signal: AbortSignal): Promise<number> {
  let count = 0;
  while (!signal.aborted) {
    const keys = await markUnused(database, objects.bucket);
    for (let from = 0; from < keys.length; from += atOnce) {
      const some = keys.slice(from, from + atOnce);
      try {
        await allSettled(some.map((key) => objects.remove(key, signal)));
      } catch (error) {
        if (signal.aborted) return count;
        throw error;
      }
      await database.pool.query("delete from stored_object where key = any($1)", [some]);
      count += some.length;
    }
    if (keys.length < batchSize) break;
  }
  return count;
}

async function markUnused(database: Database, bucket: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ key: string }>(
    `update stored_object set removing_since = now() where key in (
       select key from stored_object where bucket = $1 and used_at < now() - ${sweepAfter}
         and (removing_since is null or removing_since < now() - ${removalLost})
         and not exists (select from checkpoint_piece where object_key = key)
       limit ${batchSize} for update skip locked)
     returning key`,
    [bucket],
  );
  return rows.map(({ key }) => key);
}
