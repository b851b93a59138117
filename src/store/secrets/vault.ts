import { createHash, createHmac } from "node:crypto";
import { ConflictError } from "../../domain/errors/errors.ts";
import { openBytes, sealBytes } from "./cipher.ts";
import type { Keyring } from "./keyring.ts";

/** An encrypted value as it is stored. */
export interface Sealed {
  readonly sealed: Buffer;
  /** Fingerprint of the master key that encrypted it. */
  readonly masterKey: string;
}

/** Encrypts and decrypts values under the master keys. */
export interface Vault {
  readonly keyring: Keyring;
  /** @param id id of the row that will have the value: it can't be decrypted in another row */
  seal(id: string, value: string): Promise<Sealed>;
  /** @throws ConflictError if the master key is missing, or the row was changed */
  open(id: string, sealed: Sealed): Promise<string>;
  /** Keyed hash, to recognize a value; without the master key it reveals nothing of it. */
  hash(value: string): Promise<Buffer>;
}

/** Makes a vault that encrypts under the first master key and decrypts under any of them. */
export function createVault(keyring: Keyring): Vault {
  async function firstKey(): Promise<Buffer> {
    const [key] = await keyring.keys();
    if (key === undefined) throw new ConflictError("there is no master key: see OFFSTAGE_MASTER_KEY");
    return key;
  }
  return {
    keyring,
    async seal(id, value) {
      const key = await firstKey();
      return { sealed: sealBytes(key, id, Buffer.from(value)), masterKey: fingerprint(key) };
    },
    async open(id, { sealed, masterKey }) {
      const key = (await keyring.keys()).find((known) => fingerprint(known) === masterKey);
      if (key === undefined) {
        throw new ConflictError(
          `the master key ${masterKey}, which sealed a secret, is missing: put it back (${keyring.source})`,
        );
      }
      const changed = `the secret ${id} was changed outside Offstage: set its value again`;
      return openBytes(key, id, sealed, changed).toString("utf8");
    },
    async hash(value) {
      // A derived key, so that no key serves two purposes.
      const key = createHmac("sha256", await firstKey())
        .update("offstage hash")
        .digest();
      return createHmac("sha256", key).update(value).digest();
    },
  };
}

/** Names a master key without revealing it: 16 hexadecimal digits. */
export function fingerprint(key: Buffer): string {
  return createHash("sha256").update("offstage master key").update(key).digest("hex").slice(0, 16);
}
