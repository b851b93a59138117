import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors.ts";
import type { ObjectStore } from "../../objects/object-store.ts";

/**
 * Rows of what is in the object store. A row is committed before its object is sent, and removed after the object is, so that
 * a crash anywhere leaves a row by which the object is found. Whoever refers to objects holds them in its own transaction.
 */
export interface NewObject {
  readonly key: string;
  readonly content: Buffer;
}

/** What nobody refers to after this long is removed: far more than putting objects and referring to them takes. */
const sweepAfter = "interval '1 hour'";
/** After this long another worker takes up what one began to remove. */
const removalLost = "interval '10 minutes'";
const batchSize = 100;
const atOnce = 4;

/**
 * Puts objects, all at once. Keys must be new ones. Settles when none is on its way any more.
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
 * Keeps objects from being removed until the transaction is over, in which something must refer to them.
 * @throws ConflictError where one is being removed already
 */
export async function holdObjects(transaction: Queryable, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return;
  // A change of the row, and no lock alone: a sweep that looked before sees it when it gets the row.
  const { rowCount } = await transaction.query(
    "update stored_object set used_at = now() where key = any($1) and removing_since is null",
    [keys],
  );
  if (rowCount !== keys.length) throw new ConflictError("what was put into the object store was removed as too old");
}

/**
 * Removes what nobody refers to, here where the configured bucket has it. What can't be removed now is left for the next time.
 * @returns how many
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

/** Waits for all of them, also where one fails. @throws what the first one did */
async function allSettled(promises: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(promises)) if (result.status === "rejected") throw result.reason;
}
