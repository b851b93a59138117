import type { Database } from "../../database/database.ts";
import { sealing } from "./rotation.ts";
import type { Vault } from "./vault.ts";

/** A key of this installation: its public part, and the other. */
export interface ServerKey {
  readonly public: string;
  readonly secret: string;
}

/**
 * Reads a key of the installation; the first who asks makes it, for all nodes.
 * @throws ConflictError if the master key that sealed it is missing
 */
export async function serverKey(
  database: Database,
  vault: Vault,
  name: string,
  make: () => Promise<ServerKey>,
): Promise<ServerKey> {
  const known = await readKey(database, vault, name);
  if (known !== null) return known;
  const made = await make();
  const id = crypto.randomUUID();
  await sealing(database, async (transaction) => {
    const { sealed, masterKey } = await vault.seal(id, made.secret);
    await transaction.query(
      `insert into server_key (id, name, public, sealed, master_key) values ($1, $2, $3, $4, $5) on conflict (name) do nothing`,
      [id, name, made.public, sealed, masterKey],
    );
  });
  const kept = await readKey(database, vault, name);
  if (kept === null) throw new Error(`the key ${name} was not stored`);
  return kept;
}

async function readKey(database: Database, vault: Vault, name: string): Promise<ServerKey | null> {
  const { rows } = await database.pool.query<{ id: string; public: string; sealed: Buffer; masterKey: string }>(
    `select id, public, sealed, master_key as "masterKey" from server_key where name = $1`,
    [name],
  );
  const [row] = rows;
  return row === undefined ? null : { public: row.public, secret: await vault.open(row.id, row) };
}
