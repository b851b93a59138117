import { isUtf8 } from "node:buffer";
import type { Mirror } from "./mirror.ts";
import { git, GitError, mustGit, type GitOptions } from "../git.ts";

/** A file of a commit, as git's tree has it. */
export interface TreeFile {
  /** From the repository's root. */
  readonly path: string;
  /** git's id of its content. */
  readonly blob: string;
  /** Null: it is no plain file, but a link or a submodule. */
  readonly bytes: number | null;
}

/** Bytes of a folder's list. */
const longestList = 1024 * 1024;

/**
 * Lists the files directly in a folder of a commit, without a checkout.
 * @returns null if the folder has more than fit into 1 MiB
 */
export async function listFolder(
  mirror: Mirror,
  { commit, folder, signal }: { readonly commit: string; readonly folder: string; readonly signal: AbortSignal },
): Promise<TreeFile[] | null> {
  const options: GitOptions = { cwd: mirror.path, signal, maximumOutput: longestList };
  const { stdout, truncated, code, stderr } = await git(["ls-tree", "-z", "-l", commit, `${folder}/`], options);
  if (truncated) return null;
  if (code !== 0) throw new GitError("ls-tree", stderr);
  return stdout
    .split("\0")
    .filter((line) => line !== "")
    .flatMap((line) => {
      const [, mode = "", type, blob = "", size = "", path = ""] =
        /^(\d+) (\w+) ([0-9a-f]+) +(\S+)\t([^]*)$/u.exec(line) ?? [];
      if (type === "tree") return [];
      return [{ path, blob, bytes: type === "blob" && mode.startsWith("100") ? Number(size) : null }];
    });
}

/**
 * Reads a file's content from git's objects, of which git has said how large it is.
 * @returns null if it is not UTF-8
 */
export async function readText(
  mirror: Mirror,
  { blob, signal }: { readonly blob: string; readonly signal: AbortSignal },
): Promise<string | null> {
  const chunks: Buffer[] = [];
  const onOutput = (chunk: Buffer): void => void chunks.push(chunk);
  await mustGit(["cat-file", "blob", blob], { cwd: mirror.path, signal, onOutput });
  const content = Buffer.concat(chunks);
  return isUtf8(content) ? new TextDecoder().decode(content) : null;
}
