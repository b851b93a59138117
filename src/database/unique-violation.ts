/**
 * Whether a statement failed because a row with these values is there already (unique_violation, PostgreSQL's manual,
 * appendix A).
 */
export function isUniqueViolation(error: unknown): boolean {
  return (error as { code?: string }).code === "23505";
}
