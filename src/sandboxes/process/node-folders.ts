import { basename, dirname, join } from "node:path";

/**
 * Folders of the server's own Node that the sandbox sees: the program, and the libraries, headers and packages that
 * came with it. Not the whole installation folder: if that is `~/.local` or the home itself, it contains everything
 * else too.
 * @param program path of the node program
 */
export function nodeFolders(program: string): string[] {
  const folder = dirname(program);
  if (basename(folder) !== "bin") return [program];
  return [folder, join(folder, "../lib"), join(folder, "../include")];
}
