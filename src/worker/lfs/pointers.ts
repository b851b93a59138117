import { firstOf } from "../../domain/fields/text.ts";
import { parsePointer, pointerBytes, workUsesLfs, type LfsPointer } from "../git/lfs/lfs.ts";
import { pushedObjects, type ObjectsOptions } from "../git/pushed-objects.ts";

/** A file in LFS that a session's commits bring. */
export interface LfsFile extends LfsPointer {
  /** Path in its commit, as bytes in Latin-1; up to the first line break in it. */
  readonly path: string;
  readonly commit: string;
}

/** A file of a session's commits that is in git itself. */
export type FileInGit = Pick<LfsFile, "path" | "commit"> & { readonly sha: string };

/** A file that belongs in LFS and is larger than this is not pushed into git itself, in bytes. */
const largestInGit = 1024 * 1024;

/**
 * The files in LFS that commits bring, each content once, and the large files that they bring in git itself. Both are empty if no
 * attributes of the commits put files into LFS.
 * @param head newest of the commits
 * @param known commits that are not looked at, nor what they have
 * @throws ObjectsError
 */
export async function newLfsFiles(
  head: string,
  known: readonly string[],
  { cwd, signal }: ObjectsOptions,
): Promise<{ readonly files: readonly LfsFile[]; readonly large: readonly FileInGit[] }> {
  const files = new Map<string, LfsFile>();
  const large: FileInGit[] = [];
  if (!(await workUsesLfs(cwd, head, known, signal))) return { files: [], large };
  for await (const { type, sha, path, commit, bytes, content } of pushedObjects(head, known, { cwd, signal })) {
    if (type !== "blob") continue;
    if (bytes > largestInGit) large.push({ sha, path, commit });
    if (bytes >= pointerBytes) continue;
    const parts: Uint8Array[] = [];
    for await (const part of content) parts.push(Buffer.from(part));
    const pointer = parsePointer(Buffer.concat(parts).toString("utf8"));
    if (pointer !== null) files.set(pointer.oid, { ...pointer, path, commit });
  }
  return { files: [...files.values()], large };
}

/** Most files, and most characters of each name, in a sentence. */
const namedFiles = 5;
const nameLength = 200;

/** Names of files for a sentence: the first few. @param paths as bytes in Latin-1 */
export function listed(paths: readonly string[]): string {
  const names = paths.map((path) => Buffer.from(path, "latin1").toString("utf8").slice(0, nameLength));
  return firstOf(names, namedFiles);
}
