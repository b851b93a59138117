import type { BigIntStats } from "node:fs";
import { createHash } from "node:crypto";
import { setImmediate as pause } from "node:timers/promises";
import type { ObjectFormat } from "../git/object-format.ts";

// The form of git's index (gitformat-index(5)), in versions 2 and 3: those that git writes unless configured otherwise.

/** Offsets in an entry: ten numbers of 32 bits, the object's name, and the flags. */
const at = { ctime: 0, mtime: 8, dev: 16, ino: 20, uid: 28, gid: 32, size: 36, object: 40 } as const;
const headerBytes = 12;
/** In the flags: the name's length, or the largest there is room for; and whether there are more flags. */
const lengthMask = 0xfff;
const extended = 0x4000;
/** Entries that are read without a pause: an index has one for each file. */
const atOnce = 10_000;
/** Bytes that are hashed without a pause. */
const hashedAtOnce = 4 * 1024 ** 2;

/** Bytes of an object's name, and of the checksum at the end. */
const nameBytes = (format: ObjectFormat): number => (format === "sha256" ? 32 : 20);

/**
 * The entries of an index, each with its offset and the name of its file.
 * @throws Error if it has another form
 */
export async function* indexEntries(
  index: Buffer,
  format: ObjectFormat,
): AsyncGenerator<{ readonly at: number; readonly name: Buffer }> {
  const version = index.readUInt32BE(4);
  if (index.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 3)
    throw new Error(`an index of git has the form ${version}`);
  const flagsAt = at.object + nameBytes(format);
  const count = index.readUInt32BE(8);
  let entry = headerBytes;
  for (let number = 1; number <= count; number += 1) {
    const flags = index.readUInt16BE(entry + flagsAt);
    const nameAt = entry + flagsAt + ((flags & extended) === 0 ? 2 : 4);
    const short = flags & lengthMask;
    const end = short === lengthMask ? index.indexOf(0, nameAt) : nameAt + short;
    yield { at: entry, name: index.subarray(nameAt, end) };
    // One to eight zero bytes end the name, so that the entry's length is a multiple of eight.
    entry += (end - entry + 8) & ~7;
    if (number % atOnce === 0) await pause();
  }
}

/** Writes the owner of a file into its entry. */
export function ownerAt(index: Buffer, entry: number, owner: { readonly uid: number; readonly gid: number }): void {
  index.writeUInt32BE(owner.uid, entry + at.uid);
  index.writeUInt32BE(owner.gid, entry + at.gid);
}

/** Writes what the file system says of a file into its entry, each number cut to 32 bits as git does. */
export function statAt(index: Buffer, entry: number, stats: BigIntStats): void {
  const second = 1_000_000_000n;
  const put = (value: bigint, offset: number): void => {
    index.writeUInt32BE(Number(BigInt.asUintN(32, value)), entry + offset);
  };
  put(stats.ctimeNs / second, at.ctime);
  put(stats.ctimeNs % second, at.ctime + 4);
  put(stats.mtimeNs / second, at.mtime);
  put(stats.mtimeNs % second, at.mtime + 4);
  put(stats.dev, at.dev);
  put(stats.ino, at.ino);
  put(stats.uid, at.uid);
  put(stats.gid, at.gid);
  put(stats.size, at.size);
}

/** Writes the checksum of an index whose entries were changed. */
export async function sealIndex(index: Buffer, format: ObjectFormat): Promise<void> {
  const hash = createHash(format);
  const content = index.subarray(0, index.length - nameBytes(format));
  for (let from = 0; from < content.length; from += hashedAtOnce) {
    hash.update(content.subarray(from, from + hashedAtOnce));
    await pause();
  }
  hash.digest().copy(index, content.length);
}
