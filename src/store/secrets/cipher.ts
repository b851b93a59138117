import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { ConflictError } from "../../domain/errors.ts";

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Seals with AES-256-GCM (NIST SP 800-38D). What is stored stays readable only while this format does: nonce, tag, content.
 * @param key 32 bytes
 * @param place what it is for: for another it can't be opened
 */
export function sealBytes(key: Buffer, place: string, content: Buffer): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(place));
  const encrypted = Buffer.concat([cipher.update(content), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), encrypted]);
}

/**
 * Opens what `sealBytes` made.
 * @param changed said where it was made for another place, or changed since
 * @throws ConflictError with that
 */
export function openBytes(key: Buffer, place: string, sealed: Buffer, changed: string): Buffer {
  // A shorter tag would be easier to forge.
  const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(place)).setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(nonceBytes + tagBytes)), decipher.final()]);
  } catch (cause) {
    throw new ConflictError(changed, undefined, { cause });
  }
}
