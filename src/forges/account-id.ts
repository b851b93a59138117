/**
 * The id by which a forge's deliveries name an account.
 * @param id as the forge returns it for a token's user
 * @returns null: it returns none
 */
export function accountIdOf(id: unknown): string | null {
  if (Number.isSafeInteger(id)) return String(id);
  return typeof id === "string" && /^[\w{}:.-]{1,200}$/u.test(id) ? id : null;
}
