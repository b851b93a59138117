import { readFile, writeFile } from "node:fs/promises";
import { formatOf } from "../git/object-format.ts";
import { indexEntries, ownerAt, sealIndex } from "./index-entries.ts";

/**
 * Copies git's index, with another owner of all files. git compares a file's owner, times and inode number with the
 * index, and would otherwise read every file as possibly changed.
 * @param from an index that git wrote for the server's user
 * @param sha name of an object of the repository
 * @throws Error if it has another form than versions 2 and 3, which git writes unless configured otherwise
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
