import { createHash, createHmac } from "node:crypto";
import { ConflictError } from "../../domain/errors.ts";
import { openBytes, sealBytes } from "./cipher.ts";
import type { Keyring } from "./keyring.ts";

/** A value as it is stored. */
export interface Sealed {
  readonly sealed: Buffer;
  /** Fingerprint of the master key that sealed it. */
  readonly masterKey: string;
}

export interface Vault {
  readonly keyring: Keyring;
  /** @param id of the row it is for: in another row it can't be opened */
  seal(id: string, value: string): Promise<Sealed>;
  /** @throws ConflictError where the master key is not there, or the row was tampered with */
  open(id: string, sealed: Sealed): Promise<string>;
  /** Hash by which a value is known again, and which tells nothing of it to who has not the master key. */
  hash(value: string): Promise<Buffer>;
}

/** Seals under the first master key of the ring; opens under any of them. */
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
      // A key of its own: none is used for two things.
      const key = createHmac("sha256", await firstKey())
        .update("offstage hash")
        .digest();
      return createHmac("sha256", key).update(value).digest();
    },
  };
}

/** Names a master key without telling of it. */
export function fingerprint(key: Buffer): string {
  return createHash("sha256").update("offstage master key").update(key).digest("hex").slice(0, 16);
}
