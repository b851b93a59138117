import { createReadStream, existsSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import type { LfsPointer } from "../git/lfs/lfs.ts";
import { isOnServer, lfsPath } from "../git/lfs/store.ts";
import { verified, contentsThere, headerOf, takeContents } from "../lfs/contents.ts";
import type { LfsFile } from "../lfs/pointers.ts";
import type { SandboxedRun, SandboxFolders } from "../sandboxed/run-command.ts";

/** One piece of a checkpoint with contents of files in LFS, as a stream of `worker/lfs/contents.ts`. */
export interface LfsPiece {
  readonly piece: string;
  readonly contents: readonly LfsPointer[];
}

/** Contents of a clone's files in LFS, and the pieces that hold them. */
export interface KeptLfs {
  readonly pieces: readonly LfsPiece[];
  /** Files whose contents are in none, since they are too large. */
  readonly tooLarge: readonly LfsFile[];
}

/** Pieces of one clone, above which everything is stored again in one. */
const mostPieces = 16;

/** The contents of a clone to store, and the services for it. */
export interface LfsRequest {
  /** Files in LFS of the work. */
  readonly files: readonly LfsFile[];
  /** The mirror's store. */
  readonly store: string;
  /** The pieces of the last checkpoint. */
  readonly before: readonly LfsPiece[];
  /** Most bytes of the contents that the checkpoint has of this clone then. */
  readonly room: number;
  /** Folders whose working directory is the clone. */
  readonly folders: SandboxFolders;
  /** Id of a new piece, and the file to write it into: it is made only if there is something to store. */
  readonly newPiece: { readonly id: string; readonly file: string };
}

/**
 * Stores the contents that the server does not have in a piece, each checked against its pointer: those that the last checkpoint
 * lacks. What is nowhere is left out: the push says so, unless the server has it.
 * @returns what the checkpoint has then; `fresh` is the file of the new piece, null if there is none
 */
export async function packLfs(
  run: SandboxedRun,
  request: LfsRequest,
): Promise<KeptLfs & { readonly fresh: { readonly id: string; readonly file: string } | null }> {
  const { files, store, folders, newPiece: fresh } = request;
  const wanted = files.filter(({ oid }) => !isOnServer(store, oid));
  const kept = keptPieces(request, wanted);
  const has = new Set(kept.flatMap(({ contents }) => contents.map(({ oid }) => oid)));
  const { chosen, larger } = choose(
    wanted.filter(({ oid }) => !has.has(oid)),
    request.room - bytesOf(kept.flatMap(({ contents }) => contents)),
  );
  // A pointer may name any size.
  const there = larger.length === 0 ? new Set() : await contentsThere(run, folders, larger);
  const tooLarge = larger.filter(({ oid }) => there.has(oid) || existsSync(lfsPath(store, oid)));
  if (chosen.length === 0) return { pieces: kept, tooLarge, fresh: null };
  const contents = await writePiece(run, folders, { store, chosen, file: fresh.file });
  if (contents.length === 0) return { pieces: kept, tooLarge, fresh: null };
  return { pieces: [...kept, { piece: fresh.id, contents }], tooLarge, fresh };
}

/** The pieces of the last checkpoint that stay; none if storing everything again takes less. */
function keptPieces({ before, room }: LfsRequest, wanted: readonly LfsFile[]): readonly LfsPiece[] {
  const names = new Set(wanted.map(({ oid }) => oid));
  const useful = before.filter(({ contents }) => contents.some(({ oid }) => names.has(oid)));
  const stored = useful.flatMap(({ contents }) => contents);
  const unused = bytesOf(stored.filter(({ oid }) => !names.has(oid)));
  const has = new Set(stored.map(({ oid }) => oid));
  const missing = wanted.filter(({ oid }) => !has.has(oid));
  if (missing.length > 0 && useful.length >= mostPieces) return [];
  return unused > 0 && bytesOf(stored) + bytesOf(missing) > room ? [] : useful;
}

/** The small ones first, so that one large file does not keep the others out. */
function choose(files: readonly LfsFile[], room: number) {
  const chosen: LfsFile[] = [];
  const larger: LfsFile[] = [];
  let left = room;
  for (const file of files.toSorted((one, other) => one.size - other.size)) {
    if (file.size > left) larger.push(file);
    else {
      chosen.push(file);
      left -= file.size;
    }
  }
  return { chosen, larger };
}

function bytesOf(contents: readonly LfsPointer[]): number {
  return contents.reduce((sum, { size }) => sum + size, 0);
}

/** @returns those that are in the file: each has the SHA-256 that its pointer names */
async function writePiece(
  run: SandboxedRun,
  folders: SandboxFolders,
  { store, chosen, file }: { readonly store: string; readonly chosen: readonly LfsFile[]; readonly file: string },
): Promise<LfsPointer[]> {
  const written: LfsPointer[] = [];
  const piece = await open(file, "wx", 0o600);
  try {
    let end = 0;
    const append = async (pointer: LfsPointer, content: AsyncIterable<Buffer>): Promise<void> => {
      const next = await appendChecked(piece, end, pointer, content);
      if (next === null) return piece.truncate(end);
      end = next;
      written.push({ oid: pointer.oid, size: pointer.size });
    };
    // Another session has made the same content, and it is not uploaded yet.
    const shared = chosen.filter(({ oid }) => existsSync(lfsPath(store, oid)));
    for (const pointer of shared) {
      await append(pointer, createReadStream(lfsPath(store, pointer.oid)) as AsyncIterable<Buffer>);
    }
    const has = new Set(written.map(({ oid }) => oid));
    const own = chosen.filter(({ oid }) => !has.has(oid));
    if (own.length > 0) await takeContents(run, folders, own, append);
  } finally {
    await piece.close();
  }
  return written;
}

/** Writes a content after `start`. @returns where it ends; null if its hash is not its pointer's */
async function appendChecked(
  piece: FileHandle,
  start: number,
  pointer: LfsPointer,
  content: AsyncIterable<Buffer>,
): Promise<number | null> {
  const header = Buffer.from(headerOf(pointer));
  let at = start;
  const write = async (bytes: Buffer): Promise<void> => {
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await piece.write(bytes, done, bytes.length - done, at);
      done += bytesWritten;
      at += bytesWritten;
    }
  };
  await write(header);
  const seen = verified(content, pointer);
  for await (const part of seen.content()) await write(part);
  return seen.isRight() && at === start + header.length + pointer.size ? at : null;
}
