import { Readable } from "node:stream";
import { bytesOnDisk, type WrittenFiles } from "../disk/checkout-size.ts";
import { entriesOf } from "../git/entries.ts";
import { git, mustGit } from "../git/git.ts";
import { sparseHas } from "../git/sparse-checkout.ts";
import { settleFiles } from "./settle-index.ts";

/** A file that two commits have differently. */
interface DifferentFile {
  /** Its bytes as Latin-1, since names need be no UTF-8. */
  readonly path: string;
  /** Mode in the second commit; `000000` if it has no such file. */
  readonly mode: string;
  /** Name of its object there. */
  readonly object: string;
}

/** How the commit of a clone differs from the one that is checked out. */
export interface Difference {
  readonly from: string;
  readonly to: string;
  readonly files: readonly DifferentFile[];
}

/** Most files in which a commit may differ from one that is checked out for a clone to begin there. */
const mostFiles = 500;
const submodule = "160000";
const gone = "000000";

/**
 * Compares two commits of a mirror.
 * @param mirror path of it
 * @returns null if they differ in too many files, or in what decides how files are checked out; or if the mirror lacks one
 */
export async function differenceOf(
  mirror: string,
  { from, to }: Pick<Difference, "from" | "to">,
  signal: AbortSignal,
): Promise<Difference | null> {
  if (from === to) return { from, to, files: [] };
  const tooMuch = new AbortController();
  const files: DifferentFile[] = [];
  let header = "";
  // For each file `:<mode> <mode> <object> <object> <status>` and its path, both ended by a zero byte.
  const onOutput = entriesOf((entry) => {
    if (header === "") header = entry;
    else {
      const [, mode = "", , object = ""] = header.split(" ");
      header = "";
      files.push({ path: entry, mode, object });
      if (files.length > mostFiles) tooMuch.abort();
    }
  });
  const compare = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", from, to];
  try {
    const { code } = await git(compare, { cwd: mirror, signal: AbortSignal.any([signal, tooMuch.signal]), onOutput });
    if (code !== 0) return null;
  } catch (error) {
    if (!tooMuch.signal.aborted) throw error;
    return null;
  }
  // Others' attributes decide how files are written that did not change.
  return files.some(({ path }) => /(?:^|\/)\.gitattributes$/u.test(path)) ? null : { from, to, files };
}

/** Whether a commit has submodules that the one before it had not, or had at other commits. */
export function changesSubmodules({ files }: Difference): boolean {
  return files.some(({ mode }) => mode === submodule);
}

/** The disk space for writing a difference. @param mirror path of it */
export async function differenceSize(
  mirror: string,
  { files }: Difference,
  sparse: readonly string[],
  signal: AbortSignal,
): Promise<WrittenFiles> {
  const written = writtenOf(files, sparse);
  if (written.length === 0) return { bytes: 0, files: 0 };
  const input = Readable.from([written.map(({ object }) => `${object}\n`).join("")]);
  const sizes = await mustGit(["cat-file", "--batch-check=%(objectsize)"], { cwd: mirror, signal, input });
  const bytes = sizes.split("\n").reduce((sum, size) => sum + bytesOnDisk(Number(size)), 0);
  return { bytes, files: written.length };
}

/**
 * Brings a clone from the commit that is checked out to another one, in files and index. What is written belongs to the server's user.
 * @param clone its path; no agent has seen it yet, and it may belong to another user
 * @param options.fileBytes as of `GitOptions`
 */
export async function writeDifference(
  clone: string,
  { from, to }: Difference,
  options: { readonly signal: AbortSignal; readonly fileBytes: number },
): Promise<void> {
  // With --reset git does not ask whether the files are as the index says: the index of a copy is of other files.
  await mustGit(["read-tree", "--reset", "-u", from, to], { ...options, cwd: clone, mayBeOthers: true });
}

/** Refreshes a clone's index for the files of a difference, which have another owner by now. */
export function refreshDifference(clone: string, { files }: Difference, sparse: readonly string[]): Promise<void> {
  return settleFiles(
    clone,
    writtenOf(files, sparse).map(({ path }) => path),
  );
}

/** The files that a difference writes. */
function writtenOf(files: readonly DifferentFile[], sparse: readonly string[]): DifferentFile[] {
  const has = sparseHas(sparse);
  return files.filter(
    ({ path, mode }) => mode !== gone && mode !== submodule && has(Buffer.from(path, "latin1").toString("utf8")),
  );
}
