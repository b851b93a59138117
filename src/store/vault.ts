import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { ConflictError } from "../domain/errors.ts";
import type { Keyring } from "./keyring.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

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
}

/** Seals with AES-256-GCM (NIST SP 800-38D) under the first master key of the ring; opens under any of them. */
export function createVault(keyring: Keyring): Vault {
  return {
    keyring,
    async seal(id, value) {
      const [key] = await keyring.keys();
      if (key === undefined) throw new ConflictError("there is no master key: see OFFSTAGE_MASTER_KEY");
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(id));
      const text = Buffer.concat([cipher.update(value, "utf8"), cipher.final()]);
      return { sealed: Buffer.concat([nonce, cipher.getAuthTag(), text]), masterKey: fingerprint(key) };
    },
    async open(id, { sealed, masterKey }) {
      const key = (await keyring.keys()).find((known) => fingerprint(known) === masterKey);
      if (key === undefined) {
        throw new ConflictError(
          `the master key ${masterKey}, with which a secret was sealed, is not here: put it back (${keyring.source})`,
        );
      }
      const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
      decipher.setAAD(Buffer.from(id)).setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
      try {
        const text = [decipher.update(sealed.subarray(nonceBytes + tagBytes)), decipher.final()];
        return Buffer.concat(text).toString("utf8");
      } catch (cause) {
        throw new ConflictError(`the secret ${id} was changed behind Offstage's back: set its value anew`, undefined, {
          cause,
        });
      }
    },
  };
}

/** Names a master key without telling of it. */
export function fingerprint(key: Buffer): string {
  return createHash("sha256").update("offstage master key").update(key).digest("hex").slice(0, 16);
}
