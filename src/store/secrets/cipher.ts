import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { ConflictError } from "../../domain/errors/errors.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Encrypts with AES-256-GCM (NIST SP 800-38D). The format is nonce, tag, content: stored data depends on it, so it
 * must not change.
 * @param key 32 bytes
 * @param context additional authenticated data: what the content belongs to. It can't be decrypted for another place
 */
export function sealBytes(key: Buffer, context: string, content: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(context));
  const encrypted = Buffer.concat([cipher.update(content), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), encrypted]);
}

/**
 * Decrypts the result of `sealBytes`.
 * @param changed message of the error if the content was changed, or encrypted for another place
 * @throws ConflictError with that message
 */
export function openBytes(key: Buffer, context: string, sealed: Buffer, changed: string): Buffer {
  // Without a fixed length, Node.js would accept a shorter tag, which is easier to forge.
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(nonceBytes + tagBytes)), decipher.final()]);
  } catch (cause) {
    throw new ConflictError(changed, undefined, { cause });
  }
}
