import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { setImmediate as pause } from "node:timers/promises";
import { formatOf } from "../git/object-format.ts";

/** Offsets in an entry of git's index (gitformat-index(5)): ten numbers of 32 bits, the object's name, and the flags. */
const uidAt = 28;
const objectAt = 40;
const headerBytes = 12;
/** In the flags: the name's length, or the largest there is room for; and whether there are more flags. */
const lengthMask = 0xfff;
const extended = 0x4000;
/** Entries that are read without a pause: an index has one for each file. */
const atOnce = 10_000;
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
  const version = index.readUInt32BE(4);
  if (index.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 3)
    throw new Error(`the index ${from} has the form ${version}`);
  const format = formatOf(sha);
  const objectBytes = format === "sha256" ? 32 : 20;
  const flagsAt = objectAt + objectBytes;
  const count = index.readUInt32BE(8);
  let entry = headerBytes;
  for (let number = 1; number <= count; number += 1) {
    index.writeUInt32BE(owner.uid, entry + uidAt);
    index.writeUInt32BE(owner.gid, entry + uidAt + 4);
    const flags = index.readUInt16BE(entry + flagsAt);
    const nameAt = entry + flagsAt + ((flags & extended) === 0 ? 2 : 4);
    const short = flags & lengthMask;
    const end = short === lengthMask ? index.indexOf(0, nameAt) : nameAt + short;
    // One to eight zero bytes end the name, so that the entry's length is a multiple of eight.
    entry += (end - entry + 8) & ~7;
    if (number % atOnce === 0) await pause();
  }
  const hash = createHash(format);
  const content = index.subarray(0, index.length - objectBytes);
  for (let at = 0; at < content.length; at += hashedAtOnce) {
    hash.update(content.subarray(at, at + hashedAtOnce));
    await pause();
  }
  hash.digest().copy(index, content.length);
  await writeFile(to, index);
}
