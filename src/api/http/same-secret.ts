import { createHash, timingSafeEqual } from "node:crypto";

/** Whether two secrets are the same, in a time that does not depend on how much of them matches. */
export function isSameSecret(one: string, other: string): boolean {
  const [a, b] = [one, other].map((secret) => createHash("sha256").update(secret).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}
