/** The C library's messages for ENOSPC and EDQUOT, and git's when it writes packs and indexes (csum-file.c). */
const sentences = /no space left on device|disk quota exceeded|out of diskspace/iu;

/** Whether an error means that a disk is full: by its system error code, or by the text of git or another program. */
export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT" || sentences.test(error.message);
}
