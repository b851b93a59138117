import { readFile, realpath } from "node:fs/promises";

/** A mount of this process's namespace. */
export interface Mount {
  /** Real path of the place at which it is. */
  readonly at: string;
  /** Of its file system. */
  readonly type: string;
}

/**
 * Mounts at a folder and below it, the deepest first (proc_pid_mountinfo(5)).
 * @returns none if the folder does not exist, or the system does not list them
 */
export async function mountsBelow(folder: string): Promise<Mount[]> {
  const real = await realpath(folder).catch(() => null);
  if (real === null) return [];
  const listed = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
  return listed
    .split("\n")
    .map((line) => {
      // The fifth field is the place, and the type follows a lone dash.
      const fields = line.split(" ");
      return { at: unescaped(fields[4] ?? ""), type: fields[fields.indexOf("-") + 1] ?? "" };
    })
    .filter(({ at }) => at === real || at.startsWith(`${real}/`))
    .toSorted((one, other) => other.at.length - one.at.length);
}

/** A path as it is; the list has some characters as octal numbers. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/gu, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}
