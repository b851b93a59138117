/** Whether this machine has no room: as the system says it, or git did. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT" || /no space left on device|disk quota exceeded/iu.test(error.message);
}
