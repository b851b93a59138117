/**
 * Whether a statement failed because a row with these values exists already (unique_violation,
 * https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
export function isUniqueViolation(error: unknown): boolean {
  return (error as { code?: string }).code === "23505";
}
