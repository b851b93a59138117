import { basename, dirname, join } from "node:path";

/**
 * What the sandbox sees of the Node that runs us: the program, and the libraries, headers and packages that came with it.
 * Not the whole folder that it was installed in: where that is `~/.local` or the home itself, all else is there too.
 */
export function nodeFolders(program: string): string[] {
  const folder = dirname(program);
  if (basename(folder) !== "bin") return [program];
  return [folder, join(folder, "../lib"), join(folder, "../include")];
}
