import { randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable, type Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { syncFolder } from "../../atomic-file.ts";
import { ConflictError, InvalidInputError } from "../../domain/errors/errors.ts";
import type { DumpPart } from "./dump.ts";
import { damaged, decodeDump, encodeDump } from "./format.ts";

/** Gzip, because every machine can read it; a fast level, because the rows are repetitive and compress well anyway. */
const compression = { level: 3 };

/**
 * Writes a dump to a file that only its owner can read. The file gets its name only when it is complete and on the
 * disk.
 * @returns the file's size in bytes
 * @throws ConflictError if the file exists already
 * @throws InvalidInputError if its folder does not exist
 */
export function writeBackup(
  path: string,
  parts: AsyncIterable<DumpPart>,
  signal: AbortSignal,
): Promise<{ readonly bytes: number }> {
  return writeNewFile(path, [Readable.from(encodeDump(parts)), createGzip(compression)], signal);
}

/** Codes of files that can't be written, for a reason that the caller can fix. */
const unwritable: ReadonlySet<string> = new Set([
  "EACCES",
  "EPERM",
  "ENOTDIR",
  "ENAMETOOLONG",
  "EROFS",
  "ENOSPC",
  "EDQUOT",
]);

/**
 * Writes a file that only its owner can read, and that is there only when it is complete and on the disk.
 * @param content what is written: a source, and what it goes through
 * @returns the file's size in bytes
 * @throws ConflictError if the file exists already
 * @throws InvalidInputError if its folder does not exist, or nothing can be written there
 */
export async function writeNewFile(
  path: string,
  content: readonly (Readable | Duplex)[],
  signal: AbortSignal,
): Promise<{ readonly bytes: number }> {
  if ((await stat(path).catch(() => null)) !== null) {
    throw new ConflictError(`${path} already exists: choose another name, or remove it first`);
  }
  const unfinished = `${path}.${randomBytes(6).toString("hex")}.unfinished`;
  try {
    const file = createWriteStream(unfinished, { flags: "wx", mode: 0o600, flush: true });
    await pipeline([...content, file], { signal });
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => undefined);
    if (signal.aborted) throw interrupted();
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT")
      throw new InvalidInputError(`the folder ${dirname(path)} does not exist: create it first`, { cause: error });
    if (unwritable.has(code))
      throw new InvalidInputError(`${path} can't be written (${code}): name another file`, { cause: error });
    throw error;
  }
  await syncFolder(dirname(path));
  return { bytes: (await stat(path)).size };
}

/** The error of an interrupted backup or restore, whose changes are undone. */
export function interrupted(): ConflictError {
  return new ConflictError("interrupted: nothing was kept");
}

/**
 * Reads a whole backup to verify its checksum.
 * @throws InvalidInputError if it is damaged, truncated, or not a backup
 */
export async function checkBackup(path: string, signal: AbortSignal): Promise<void> {
  for await (const part of readBackup(path, signal)) void part;
}

/**
 * Reads a file of `writeBackup`.
 * @throws InvalidInputError as `checkBackup`, but only when the problem is reached
 */
export async function* readBackup(path: string, signal: AbortSignal): AsyncGenerator<DumpPart, void, void> {
  const file = createReadStream(path);
  const opened = createGunzip();
  const passed = pipeline(file, opened, { signal });
  // The error is handled below, or by the reader of `opened`.
  passed.catch(() => undefined);
  try {
    yield* decodeDump(opened);
    await passed;
  } catch (error) {
    if (signal.aborted) throw interrupted();
    throw readable(path, error as NodeJS.ErrnoException);
  } finally {
    file.destroy();
    opened.destroy();
  }
}

function readable(path: string, error: NodeJS.ErrnoException): Error {
  const { code } = error;
  if (code === "ENOENT" || code === "ENOTDIR" || code === "EISDIR" || code === "EACCES") {
    return new InvalidInputError(`${path} can't be read: give the path of a backup`, { cause: error });
  }
  if (code === "Z_DATA_ERROR" || code === "Z_BUF_ERROR") {
    return error.message === "incorrect header check"
      ? new InvalidInputError(`${path} is not an Offstage backup`, { cause: error })
      : damaged(error.message);
  }
  return error;
}
