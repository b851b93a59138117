/**
 * By which id a forge's deliveries name an account.
 * @param id as the forge says it of whoever a token is of
 * @returns null: it says none
 */
export function accountIdOf(id: unknown): string | null {
  if (Number.isSafeInteger(id)) return String(id);
  return typeof id === "string" && /^[\w{}:.-]{1,200}$/u.test(id) ? id : null;
}
