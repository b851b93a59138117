import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, ObjectStoreError } from "../../domain/errors/errors.ts";
import type { ObjectStore } from "../../objects/object-store.ts";
import { openBytes, sealBytes } from "../secrets/cipher.ts";
import { holdObjects, putObjects, type NewObject } from "./objects.ts";

// The parts of checkpoints: files that are cut into chunks, each encrypted for its position. Chunks are rows of the
// database; if there is an object store, large chunks are objects there, and their rows name them.

/** Paths of the files of pieces, by piece id. */
export type PieceFiles = ReadonlyMap<string, string>;

const rowBytes = 1024 * 1024;
const objectBytes = 4 * 1024 * 1024;
/** A smaller chunk stays in its row, which saves a request: most checkpoints are this small. */
const smallBytes = 64 * 1024;
/** At most this many chunks are in memory at once. */
const uploadsAtOnce = 4;

interface Chunk {
  readonly pieceId: string;
  readonly position: number;
  /** Null if an object has it. */
  readonly sealed: Buffer | null;
  readonly objectKey: string | null;
}

/** Pieces with their large chunks in the object store. No row refers to the objects yet. */
export type UploadedPieces = readonly Chunk[];

/**
 * Uploads the large chunks of pieces.
 * @param key encryption key of the session's pieces
 * @throws ObjectStoreError
 */
export async function uploadPieces(
  database: Database,
  objects: ObjectStore,
  { sessionId, key, files }: { readonly sessionId: string; readonly key: Buffer; readonly files: PieceFiles },
  signal: AbortSignal,
): Promise<UploadedPieces> {
  const chunks: Chunk[] = [];
  let waiting: NewObject[] = [];
  for await (const { pieceId, position, sealed } of sealedChunks(key, files, objectBytes)) {
    if (sealed.length < smallBytes) {
      chunks.push({ pieceId, position, sealed, objectKey: null });
      continue;
    }
    const objectKey = objects.keyOf(`checkpoints/${sessionId}/${randomUUID()}`);
    chunks.push({ pieceId, position, sealed: null, objectKey });
    waiting.push({ key: objectKey, content: sealed });
    if (waiting.length < uploadsAtOnce) continue;
    await putObjects(database, objects, waiting, signal);
    waiting = [];
  }
  await putObjects(database, objects, waiting, signal);
  return chunks;
}

/**
 * Adds uploaded pieces to the session.
 * @throws ConflictError if an uploaded object was removed as unused meanwhile
 */
export async function writeUploaded(
  transaction: Queryable,
  sessionId: string,
  uploaded: UploadedPieces,
): Promise<void> {
  const keys = uploaded.flatMap(({ objectKey }) => objectKey ?? []);
  await holdObjects(transaction, keys);
  for (const chunk of uploaded) await writeChunk(transaction, sessionId, chunk);
}

/**
 * Writes pieces into rows of the database only.
 * @param key encryption key of the session's pieces
 */
export async function writePieces(
  transaction: Queryable,
  sessionId: string,
  key: Buffer,
  files: PieceFiles,
): Promise<void> {
  for await (const chunk of sealedChunks(key, files, rowBytes)) {
    await writeChunk(transaction, sessionId, { ...chunk, objectKey: null });
  }
}

async function* sealedChunks(key: Buffer, files: PieceFiles, chunkBytes: number) {
  for (const [pieceId, file] of files) {
    let position = 0;
    for await (const chunk of createReadStream(file, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>) {
      yield { pieceId, position, sealed: sealBytes(key, chunkContext(pieceId, position), chunk) };
      position += 1;
    }
  }
}

async function writeChunk(transaction: Queryable, sessionId: string, chunk: Chunk): Promise<void> {
  await transaction.query(
    "insert into checkpoint_piece (session_id, id, position, sealed, object_key) values ($1, $2, $3, $4, $5)",
    [sessionId, chunk.pieceId, chunk.position, chunk.sealed, chunk.objectKey],
  );
}

/**
 * Reads a piece's bytes, in order.
 * @param key encryption key of the session's pieces
 * @throws ConflictError if the piece no longer exists or was changed
 * @throws ObjectStoreError if the object store does not answer, or this server has no settings for the piece's bucket
 */
export async function* readPiece(
  database: Database,
  objects: ObjectStore | null,
  { sessionId, key, id }: { readonly sessionId: string; readonly key: Buffer; readonly id: string },
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  for (let position = 0; ; position += 1) {
    const { rows } = await database.pool.query<StoredChunk>(
      `select sealed, object_key as "objectKey", bucket, bytes
       from checkpoint_piece left join stored_object on stored_object.key = object_key
       where session_id = $1 and id = $2 and position = $3`,
      [sessionId, id, position],
    );
    const [chunk] = rows;
    if (chunk === undefined && position > 0) return;
    const sealed = chunk === undefined ? null : await contentOf(chunk, objects, signal);
    if (sealed === null) throw new ConflictError(`the piece ${id} of a checkpoint is gone`);
    yield openBytes(key, chunkContext(id, position), sealed, "a checkpoint was changed outside Offstage");
  }
}

type StoredChunk =
  | { readonly sealed: Buffer; readonly objectKey: null }
  | { readonly sealed: null; readonly objectKey: string; readonly bucket: string; readonly bytes: number };

/** Null if the chunk's object does not exist. */
async function contentOf(chunk: StoredChunk, objects: ObjectStore | null, signal: AbortSignal): Promise<Buffer | null> {
  if (chunk.objectKey === null) return chunk.sealed;
  const { objectKey, bucket, bytes: maximumBytes } = chunk;
  if (objects === null || objects.bucket !== bucket) {
    const problem = `the work so far is in the bucket ${bucket} of an object store that this worker has no settings for`;
    throw new ObjectStoreError(`${problem}: give it the same OFFSTAGE_S3_ settings as the others`, false);
  }
  return objects.get(objectKey, { maximumBytes, signal });
}

/** The context that a chunk is encrypted for: a chunk can't be moved to another position. */
const chunkContext = (id: string, position: number): string => `${id} ${position}`;
