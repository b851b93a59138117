import { createHash, randomBytes } from "node:crypto";

/** 256 bits from the system's generator, as 43 characters that fit in URLs and headers. */
export function randomToken(): string {
  return randomBytes(32).toString("base64url");
}

/**
 * What is stored instead of a key or token. Plain SHA-256 is enough: with 256 random bits there is nothing to guess,
 * and looking up by the hash compares no secret.
 */
export function hashOf(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
