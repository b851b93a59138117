import { SessionError } from "../../domain/errors/errors.ts";
import { diskUsage } from "../../sandboxes/process/disk-usage.ts";
import { watchUsage } from "../../sandboxes/process/watch.ts";
import type { ResourceLimits } from "../../sandboxes/sandbox.ts";
import { entriesOf, pathIn } from "../git/entries.ts";
import { mustGit } from "../git/git.ts";
import { sparseHas } from "../git/sparse-checkout.ts";

/** The disk bounds of all of a session's folders together. */
export type DiskBounds = Pick<ResourceLimits, "diskBytes" | "files">;

/** The sizes of all repositories' files in a session's folders; `addCheckout` adds to them. */
export interface WrittenFiles {
  bytes: number;
  files: number;
}

/** Most file systems allocate blocks of this size: a file of one byte takes a block. */
const blockBytes = 4_096;
/** Bytes of one entry in git's index, without its path (gitformat-index(5)). */
const indexEntryBytes = 72;

/**
 * Adds what a checkout of a commit would write, before anything is written: a few hundred bytes of git objects can mean
 * any number of files. The listing stops at the bound, since it may be endless.
 * @param written what the session's other repositories write; this commit's sizes are added to it
 * @param mirror path of a repository that has the commit
 * @param sparse folders that the checkout has; none: everything
 * @throws SessionError resources_exhausted if the sum exceeds the bounds
 */
export async function addCheckout(
  written: WrittenFiles,
  mirror: string,
  sha: string,
  bounds: DiskBounds,
  signal: AbortSignal,
  sparse: readonly string[] = [],
): Promise<void> {
  const has = sparseHas(sparse);
  const isThere = (entry: string): boolean => sparse.length === 0 || has(pathIn(entry));
  const tooMuch = new AbortController();
  const onOutput = entriesOf((entry) => {
    addEntry(written, entry, isThere(entry));
    if (isTooLarge(written, bounds)) tooMuch.abort(tooLarge(bounds));
  });
  // Folders are listed too (-t): each takes an inode.
  await mustGit(["ls-tree", "-r", "-t", "-l", "-z", "--full-tree", sha], {
    cwd: mirror,
    signal: AbortSignal.any([signal, tooMuch.signal]),
    onOutput,
  });
}

/**
 * Adds one entry of `ls-tree -l`: mode, type, object, size or `-`, a tab, and the path.
 * @param isThere whether it is checked out; if not, only the index has it
 */
function addEntry(written: WrittenFiles, entry: string, isThere: boolean): void {
  const tab = entry.indexOf("\t");
  written.bytes += indexEntryBytes + (entry.length - tab);
  if (!isThere) return;
  const size = Number(entry.slice(0, tab).trimEnd().split(" ").at(-1));
  written.files += 1;
  written.bytes += Number.isNaN(size) ? blockBytes : bytesOnDisk(size);
}

/** The space that a file of this size takes. */
export function bytesOnDisk(size: number): number {
  return Math.ceil(size / blockBytes) * blockBytes;
}

/**
 * Adds sizes that are known.
 * @param written as of `addCheckout`
 * @throws SessionError resources_exhausted if the sum exceeds the bounds
 */
export function addWritten(written: WrittenFiles, { bytes, files }: Readonly<WrittenFiles>, bounds: DiskBounds): void {
  written.bytes += bytes;
  written.files += files;
  if (isTooLarge(written, bounds)) throw tooLarge(bounds);
}

/**
 * Runs `work`, and stops it if a folder exceeds the bounds. A repository's attributes can make a checkout write a file with
 * other line ends or in another encoding, larger than its object.
 * @throws SessionError resources_exhausted; what `work` throws otherwise
 */
export async function whileWithin(
  folder: string,
  bounds: DiskBounds,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const tooMuch = new AbortController();
  const watch = watchUsage({
    limits: bounds,
    folders: [folder],
    disk: folder,
    pids: null,
    onExceeded: () => tooMuch.abort(tooLarge(bounds)),
  });
  try {
    await work(AbortSignal.any([signal, tooMuch.signal]));
  } catch (error) {
    // git is ended by the kernel at the file size limit (SIGXFSZ), and then prints nothing.
    const used = signal.aborted ? null : await diskUsage([folder], null);
    throw used !== null && isTooLarge({ ...used, bytes: used.bytes + blockBytes }, bounds) ? tooLarge(bounds) : error;
  } finally {
    watch.stop();
  }
  // Measure once more: the watch may have missed the last writes.
  const used = await diskUsage([folder], null);
  if (used !== null && isTooLarge(used, bounds)) throw tooLarge(bounds);
}

function isTooLarge({ bytes, files }: WrittenFiles, { diskBytes, files: mostFiles = Infinity }: DiskBounds): boolean {
  return bytes > diskBytes || files > mostFiles;
}

/** The failure of a session whose repositories are larger than its bounds. */
function tooLarge({ diskBytes, files }: DiskBounds): SessionError {
  const mostFiles = files === undefined ? "" : ` or ${files} files and folders`;
  return new SessionError({
    code: "resources_exhausted",
    reason: `The session's repositories, checked out, take more than ${Math.floor(diskBytes / 1024 ** 2)} MB${mostFiles}, the limit of a sandbox.`,
    retryable: false,
    remedy:
      "Name a branch or a repository with less in it, or raise OFFSTAGE_SANDBOX_DISK_MB or OFFSTAGE_SANDBOX_FILES; a setup script works in a second clone.",
  });
}
