import type { Database, Queryable } from "../../database/database.ts";
import { InvalidInputError } from "../../domain/errors.ts";
import { fingerprint, type Sealed, type Vault } from "./vault.ts";

/** Shared by who seals, alone for who rotates: nothing may be sealed with a key that is about to be forgotten. */
const rotationLock = 4_747_004;

/** Every table that holds something sealed with the master key; `id` is what it was sealed for. */
const sealedTables = [
  { table: "secret", id: "id", sealed: "sealed" },
  { table: "webhook", id: "id", sealed: "sealed" },
  { table: "checkpoint", id: "session_id", sealed: "sealed_key" },
] as const;

/**
 * Seals every secret with a new master key, or where the keys are in the environment with the first of them, and forgets
 * the others. A kill in between leaves both keys in the file, and doing it again ends it.
 * @returns how many values were sealed anew
 * @throws InvalidInputError where the environment has no new key
 */
export async function rotateMasterKey(database: Database, vault: Vault): Promise<number> {
  const { keyring } = vault;
  if (keyring.add === null && (await keyring.keys()).length === 1) {
    throw new InvalidInputError(
      `${keyring.source}: has one key alone: put a new one first (new,old), restart every server, then rotate`,
    );
  }
  const count = await database.transaction(async (transaction) => {
    await transaction.query("select pg_advisory_xact_lock($1)", [rotationLock]);
    await keyring.add?.();
    const [current] = await keyring.keys();
    let sealedAnew = 0;
    for (const { table, id, sealed } of sealedTables) {
      const { rows } = await transaction.query<Sealed & { id: string }>(
        `select ${id} as id, ${sealed} as sealed, master_key as "masterKey" from ${table} where master_key <> $1 for update`,
        [current === undefined ? "" : fingerprint(current)],
      );
      for (const row of rows) {
        const fresh = await vault.seal(row.id, await vault.open(row.id, row));
        await transaction.query(`update ${table} set ${sealed} = $2, master_key = $3 where ${id} = $1`, [
          row.id,
          fresh.sealed,
          fresh.masterKey,
        ]);
      }
      sealedAnew += rows.length;
    }
    return sealedAnew;
  });
  await keyring.retire?.();
  return count;
}

/** A transaction that seals something. */
export function sealing<T>(database: Database, work: (transaction: Queryable) => Promise<T>): Promise<T> {
  return database.transaction(async (transaction) => {
    await transaction.query("select pg_advisory_xact_lock_shared($1)", [rotationLock]);
    return work(transaction);
  });
}
