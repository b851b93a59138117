/** As the system's library says it, and git where it writes packs and indexes (csum-file.c). */
const sentences = /no space left on device|disk quota exceeded|out of diskspace/iu;

/** Whether this machine has no room: as the system says it, or git did. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT" || sentences.test(error.message);
}
