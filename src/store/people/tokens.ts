import { createHash, randomBytes } from "node:crypto";

/** A token of 256 random bits from the operating system, as 43 characters that are safe in URLs and headers. */
export function randomToken(): string {
  return randomBytes(32).toString("base64url");
}

/**
 * The SHA-256 hash that is stored instead of a key or token. A slow hash is not needed, because 256 random bits can't
 * be guessed; and a lookup by hash compares no secrets, so its timing reveals none.
 */
export function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
