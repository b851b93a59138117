import { RunError } from "../../domain/errors.ts";
import { diskUsage } from "../../sandboxes/process/disk-usage.ts";
import { watchUsage } from "../../sandboxes/process/watch.ts";
import type { Limits } from "../../sandboxes/sandbox.ts";
import { mustGit } from "../git/git.ts";

/** The bounds that everything of one session's folders has together. */
export type DiskBounds = Pick<Limits, "diskBytes" | "files">;

/** What is about to be written into a session's folders, of all its repositories. */
export interface Written {
  bytes: number;
  files: number;
}

/** As most file systems count: a file of one byte takes a block. */
const blockBytes = 4_096;
/** Of one file in git's index, beside its path (gitformat-index(5)). */
const indexEntryBytes = 72;

/**
 * Adds what a checkout of a commit would write, before any of it is written: a few hundred bytes of a repository can stand for
 * any number of files. The listing is cut off at the bound, for it may have no end itself.
 * @param mirror path of a repository that has the commit
 * @param written what other repositories of the session write; the sum is added to it
 * @throws RunError resources_exhausted if that is more than a sandbox may have
 */
export async function addCheckout(
  written: Written,
  mirror: string,
  sha: string,
  bounds: DiskBounds,
  signal: AbortSignal,
): Promise<void> {
  const tooMuch = new AbortController();
  let rest = "";
  const onOutput = (chunk: Buffer): void => {
    const entries = `${rest}${chunk.toString("latin1")}`.split("\0");
    rest = entries.pop() ?? "";
    for (const entry of entries) addEntry(written, entry);
    if (isTooLarge(written, bounds)) tooMuch.abort(tooLarge(bounds));
  };
  // Folders are listed too (-t): each is a file of its own.
  await mustGit(["ls-tree", "-r", "-t", "-l", "-z", "--full-tree", sha], {
    cwd: mirror,
    signal: AbortSignal.any([signal, tooMuch.signal]),
    onOutput,
  });
}

/** One line of `ls-tree -l`: mode, type, object, size or `-`, a tab, and the path. */
function addEntry(written: Written, entry: string): void {
  const tab = entry.indexOf("\t");
  const size = Number(entry.slice(0, tab).trimEnd().split(" ").at(-1));
  const ofContent = Number.isNaN(size) ? blockBytes : Math.ceil(size / blockBytes) * blockBytes;
  written.files += 1;
  written.bytes += ofContent + indexEntryBytes + (entry.length - tab);
}

/**
 * Does `work`, and stops it if what it writes into a folder goes over the bounds: attributes of a repository let a checkout
 * write a file with other line ends or in another encoding, which is larger than its object.
 * @throws RunError resources_exhausted
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
    // The kernel ends git at a file of that size, which says nothing then.
    const used = signal.aborted ? null : await diskUsage([folder], null);
    throw used !== null && isTooLarge({ ...used, bytes: used.bytes + blockBytes }, bounds) ? tooLarge(bounds) : error;
  } finally {
    watch.stop();
  }
  // What was written between two looks.
  const used = await diskUsage([folder], null);
  if (used !== null && isTooLarge(used, bounds)) throw tooLarge(bounds);
}

function isTooLarge({ bytes, files }: Written, { diskBytes, files: mostFiles = Infinity }: DiskBounds): boolean {
  return bytes > diskBytes || files > mostFiles;
}

/** What stops a session whose repositories hold more than it may have. */
function tooLarge({ diskBytes, files }: DiskBounds): RunError {
  const mostFiles = files === undefined ? "" : ` or ${files} files and folders`;
  return new RunError({
    code: "resources_exhausted",
    reason: `The session's files with its repositories, checked out, are more than ${Math.floor(diskBytes / 1024 ** 2)} MB${mostFiles}, which a sandbox may not have.`,
    retryable: false,
    mend: "Name a branch or a repository with less in it, or raise OFFSTAGE_SANDBOX_DISK_MB or OFFSTAGE_SANDBOX_FILES; a setup script works in a second clone.",
  });
}
