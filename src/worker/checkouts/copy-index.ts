import { readFile, writeFile } from "node:fs/promises";
import { formatOf } from "../git/object-format.ts";
import { indexEntries, ownerAt, sealIndex } from "./index-entries.ts";

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
  await sealIndex(index, format);
  await writeFile(to, index);
}
