import type { Database, Queryable } from "../../database/database.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { Keyring } from "./keyring.ts";
import { fingerprint, type Sealed, type Vault } from "./vault.ts";

/**
 * Advisory lock: shared while a transaction encrypts, exclusive during a rotation. Nothing may be encrypted with a
 * key that is about to be deleted.
 */
const rotationLock = 4_747_004;

/** Every table with values encrypted under a master key; `id` is the SQL of what each value is bound to. */
const sealedTables = [
  { table: "secret", id: "id", sealed: "sealed" },
  { table: "registry", id: "id", sealed: "sealed" },
  { table: "webhook", id: "id", sealed: "sealed" },
  { table: "trigger", id: "id", sealed: "sealed" },
  { table: "forge_connection", id: "id", sealed: "sealed" },
  { table: "forge_account", id: "id", sealed: "sealed" },
  { table: "push_subscription", id: "id", sealed: "sealed" },
  { table: "invitation_mail", id: "id", sealed: "sealed" },
  { table: "server_key", id: "id", sealed: "sealed" },
  { table: "checkpoint", id: "session_id", sealed: "sealed_key" },
  { table: "idempotency", id: "'answer ' || created_id::text", sealed: "sealed" },
] as const;

/**
 * Encrypts every secret with a new master key and deletes the old keys. If the keys are in the environment, the first
 * of them is the new one. If it is interrupted, the file has both keys, and a second call completes the rotation.
 * @returns how many values were encrypted again
 * @throws InvalidInputError if the environment has no new key
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
    let resealed = 0;
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
      resealed += rows.length;
    }
    return resealed;
  });
  await database.transaction(async (transaction) => {
    await transaction.query("select pg_advisory_xact_lock($1)", [rotationLock]);
    // Another rotation may have added a key meanwhile, and may have been interrupted before it used it.
    if (!(await usesOlderKeys(transaction, keyring))) await keyring.retire?.();
  });
  return count;
}

/** Whether a value is encrypted with another key than the first. */
async function usesOlderKeys(transaction: Queryable, keyring: Keyring): Promise<boolean> {
  const [current] = await keyring.keys();
  for (const { table } of sealedTables) {
    const { rows } = await transaction.query(`select 1 from ${table} where master_key <> $1 limit 1`, [
      current === undefined ? "" : fingerprint(current),
    ]);
    if (rows.length > 0) return true;
  }
  return false;
}

/** Runs a transaction that encrypts something with a master key. */
export function sealing<T>(database: Database, work: (transaction: Queryable) => Promise<T>): Promise<T> {
  return database.transaction(async (transaction) => {
    await transaction.query("select pg_advisory_xact_lock_shared($1)", [rotationLock]);
    return work(transaction);
  });
}
