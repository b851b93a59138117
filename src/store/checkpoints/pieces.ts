import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError, ObjectStoreError } from "../../domain/errors.ts";
import type { ObjectStore } from "../../objects/object-store.ts";
import { openBytes, sealBytes } from "../secrets/cipher.ts";
import { holdObjects, putObjects, type NewObject } from "./objects.ts";

/**
 * The parts of checkpoints: files that are cut into chunks, each sealed for its place. Chunks are rows; where there is an
 * object store, those that are large are objects, and their rows say which.
 */

/** Files of pieces, by id. */
export type PieceFiles = ReadonlyMap<string, string>;

const rowBytes = 1024 * 1024;
const objectBytes = 4 * 1024 * 1024;
/** What is smaller stays in its row, where it costs no request: most checkpoints of a turn are this small. */
const smallBytes = 64 * 1024;
/** So many are in memory at once. */
const uploadsAtOnce = 4;

interface Chunk {
  readonly pieceId: string;
  readonly position: number;
  /** Null where an object has it. */
  readonly sealed: Buffer | null;
  readonly objectKey: string | null;
}

/** Pieces of which everything large is in the object store, and nothing refers to it yet. */
export type UploadedPieces = readonly Chunk[];

/** @param key of the session's pieces @throws ObjectStoreError */
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

/** Makes uploaded pieces the session's. @throws ConflictError where what was uploaded is too old by now */
export async function writeUploaded(
  transaction: Queryable,
  sessionId: string,
  uploaded: UploadedPieces,
): Promise<void> {
  const keys = uploaded.flatMap(({ objectKey }) => objectKey ?? []);
  await holdObjects(transaction, keys);
  for (const chunk of uploaded) await writeChunk(transaction, sessionId, chunk);
}

/** Writes pieces whole into rows. @param key of the session's pieces */
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
      yield { pieceId, position, sealed: sealBytes(key, chunkPlace(pieceId, position), chunk) };
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
 * A piece's bytes, in order.
 * @param key of the session's pieces
 * @throws ConflictError where it is gone or was changed
 * @throws ObjectStoreError where the object store can't be asked just now, or this server is not set up for it
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
    yield openBytes(key, chunkPlace(id, position), sealed, "a checkpoint was changed outside Offstage");
  }
}

type StoredChunk =
  | { readonly sealed: Buffer; readonly objectKey: null }
  | { readonly sealed: null; readonly objectKey: string; readonly bucket: string; readonly bytes: number };

/** @returns null where its object is gone */
async function contentOf(chunk: StoredChunk, objects: ObjectStore | null, signal: AbortSignal): Promise<Buffer | null> {
  if (chunk.objectKey === null) return chunk.sealed;
  const { objectKey, bucket, bytes: maximumBytes } = chunk;
  if (objects === null || objects.bucket !== bucket) {
    const problem = `the work so far is in the bucket ${bucket} of an object store that this worker has no settings for`;
    throw new ObjectStoreError(`${problem}: give it the same OFFSTAGE_S3_ settings as the others`, false);
  }
  return objects.get(objectKey, { maximumBytes, signal });
}

/** What a chunk is sealed for: it can't be put in another's place. */
const chunkPlace = (id: string, position: number): string => `${id} ${position}`;
