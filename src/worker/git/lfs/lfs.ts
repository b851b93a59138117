import { shellQuote } from "../../../programs/shell-quote.ts";
import { SessionError } from "../../../domain/errors/errors.ts";
import { programText } from "../../../programs/program-text.ts";
import { git, mustGit, type GitOptions } from "../git.ts";
import { attributeFiles } from "../merge-attributes.ts";
import type { Mirror } from "../mirrors/mirror.ts";
import { sparseCommit } from "../sparse-checkout.ts";
import { noteUsed } from "./prune-contents.ts";
import { lfsStore } from "./store.ts";
import { fetchContents, pipeFunctions, type OnProgress } from "./transfers.ts";

/**
 * The pointer that git stores in place of a file's content (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
 */
export interface LfsPointer {
  /** SHA-256 of the content, in hexadecimal. */
  readonly oid: string;
  /** Bytes of the content. */
  readonly size: number;
}

/** A pointer is shorter than this, in bytes. */
export const pointerBytes = 1024;

/** Reads a pointer; null if the text is none. */
export function parsePointer(text: string): LfsPointer | null {
  if (!text.startsWith("version https://git-lfs.github.com/spec/v1\n")) return null;
  const oid = /^oid sha256:([0-9a-f]{64})$/mu.exec(text)?.[1];
  const size = /^size (\d{1,15})$/mu.exec(text)?.[1];
  return oid === undefined || size === undefined ? null : { oid, size: Number(size) };
}

/** Which contents a folder needs, besides its commit. */
interface FolderContents {
  /** Path of the repository that has the commit; the mirror itself if omitted. */
  readonly repository?: string;
  /** Folders that are checked out; everything if omitted or empty. Contents of other files are not fetched. */
  readonly sparse?: readonly string[];
  /** Files that are checked out besides. */
  readonly paths?: readonly string[];
  readonly onProgress?: OnProgress;
}

/**
 * Fetches the contents of a commit's files in LFS into the mirror's store, for a folder into which the commit is to be checked out:
 * the filter (`setFilter`) takes them from there.
 * @returns why the folder will have pointers instead of contents, as a sentence; null if it will have the contents, or if no file
 *   of the commit is in LFS
 * @throws SessionError repository_* that passes by itself
 */
export async function fetchForFolder(
  mirror: Mirror,
  sha: string,
  signal: AbortSignal,
  from: FolderContents = {},
): Promise<string | null> {
  if (!(await usesLfs(from.repository ?? mirror.path, [sha], signal))) return null;
  try {
    const { repository = mirror.path, sparse = [], paths = [] } = from;
    const wanted = await sparseCommit({ folders: sparse, paths }, sha, { cwd: repository, signal });
    await noteUsed(lfsStore(mirror.path), wanted, () => namesInLfs(repository, wanted, signal));
    await fetchContents(mirror, wanted, signal, from);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    // A passing failure is waited for: the agent would work on pointers.
    if (!(error instanceof SessionError) || error.passing) throw error;
    return `${error.message} ${error.remedy}`;
  }
}

/** Whether the attributes of one of the commits put files into LFS. @param repository its path */
export async function usesLfs(repository: string, commits: readonly string[], signal: AbortSignal): Promise<boolean> {
  const search = ["grep", "--quiet", "--text", "--fixed-strings", "filter=lfs", ...commits, "--", ...attributeFiles];
  return (await git(search, { cwd: repository, signal })).code === 0;
}

/** Most commits that are asked for their attributes. */
const mostAsked = 1_000;

/** Whether the attributes of a commit, of the known ones, or of one between them that changes attributes put files into LFS. */
export async function workUsesLfs(
  repository: string,
  head: string,
  known: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  if (await usesLfs(repository, [head, ...known], signal)) return true;
  const list = ["rev-list", "--full-history", `--max-count=${mostAsked}`, head, "--not", ...known];
  const changing = await mustGit([...list, "--", ...attributeFiles], { cwd: repository, signal });
  return changing !== "" && (await usesLfs(repository, changing.split("\n"), signal));
}

/**
 * Sets git's filter for files in LFS in a clone that no agent has seen yet. A repository without such files gets it too: the agent
 * may put some there.
 * @param mirror its path
 */
export async function setFilter(mirror: string, clone: GitOptions): Promise<void> {
  await mustGit(["config", "filter.lfs.process", filterCommand(mirror)], clone);
  // Without its filter git would store the whole content.
  await mustGit(["config", "filter.lfs.required", "true"], clone);
}

/**
 * The shell command of git's filter for files in LFS, to be set as `filter.lfs.process`. git prefers it to other filters: a git-lfs
 * that is installed for all users of an image (`git lfs install --system`) would ask the server, without a credential, for what the
 * mirror has.
 * @param mirror its path
 */
export function filterCommand(mirror: string): string {
  // An image may have its own Node, and this one may be gone after an upgrade.
  const node = `node=${shellQuote(process.execPath)}; [ -x "$node" ] || node=node; unset NODE_OPTIONS; exec "$node" --no-warnings`;
  const program = `${pipeFunctions()}\n${programText(import.meta.url, "filter.cjs")}`;
  return `${node} -e ${shellQuote(program)} -- ${shellQuote(lfsStore(mirror))}`;
}

/** The names of all contents that a commit's files have in LFS; null if git-lfs fails. @param repository its path */
export async function namesInLfs(repository: string, sha: string, signal: AbortSignal): Promise<string[] | null> {
  const { code, stdout } = await git(["lfs", "ls-files", "--long", sha], { cwd: repository, signal });
  return code === 0 ? [...stdout.matchAll(/^[0-9a-f]{64}(?= [*-] )/gmu)].map(([oid]) => oid) : null;
}
