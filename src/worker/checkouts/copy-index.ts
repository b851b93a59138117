import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { setImmediate as pause } from "node:timers/promises";
import { formatOf } from "../git/object-format.ts";
import { indexEntries, ownerAt } from "./index-entries.ts";

/** Bytes that are hashed without a pause. */
const hashedAtOnce = 4 * 1024 ** 2;

/**
 * Copies git's index, with another owner of all files. git compares a file's owner, like its times and its number, with what the index
 * says of it, and would take each for one that may have changed: it would read them all.
 * @param from an index that git wrote for the server's user
 * @param sha name of an object of the repository
 * @throws Error if it has another form than versions 2 and 3, which git writes unless it is told otherwise
 */
export async function copyIndex(
  from: string,
  to: string,
  owner: { readonly uid: number; readonly gid: number },
  sha: string,
): Promise<void> {
  const index = await readFile(from);
  const format = formatOf(sha);
  for await (const { at } of indexEntries(index, format)) ownerAt(index, at, owner);
  const hash = createHash(format);
  const content = index.subarray(0, index.length - (format === "sha256" ? 32 : 20));
  for (let at = 0; at < content.length; at += hashedAtOnce) {
    hash.update(content.subarray(at, at + hashedAtOnce));
    await pause();
  }
  hash.digest().copy(index, content.length);
  await writeFile(to, index);
}
