import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** The hash function of a repository's objects (gitformat-hash-function-transition(5)). */
export type ObjectFormat = "sha1" | "sha256";

/** The object format in which a name of an object is written. */
export function formatOf(sha: string): ObjectFormat {
  return sha.length === 64 ? "sha256" : "sha1";
}

/**
 * The option of `git init` for a repository that borrows or fetches objects from a repository in which `sha` names one.
 */
export function initFormat(sha: string): string {
  return `--object-format=${formatOf(sha)}`;
}

/** The object format of a bare repository of Offstage's. @param path of it */
export async function formatIn(path: string): Promise<ObjectFormat> {
  const settings = await readFile(join(path, "config"), "utf8");
  return /^\s*objectformat\s*=\s*sha256\s*$/imu.test(settings) ? "sha256" : "sha1";
}
