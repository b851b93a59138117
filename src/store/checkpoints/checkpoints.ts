import { randomBytes } from "node:crypto";
import type { Database, Queryable } from "../../database/database.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import type { ObjectStore } from "../../objects/object-store.ts";
import { endedBefore } from "../prune.ts";
import { holdClaim, type Claim } from "../queue/lease.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Sealed, Vault } from "../secrets/vault.ts";
import { forgetOwnDoing } from "../sessions/transition.ts";
import { readPiece, uploadPieces, writePieces, writeUploaded, type PieceFiles } from "./pieces.ts";

/** One repository of a session in a checkpoint. */
export interface CheckpointedRepository {
  /** Folder of the clone in the workspace. */
  readonly directory: string;
  /** The commit at which the session's work started, as the step `prepare` found it. */
  readonly start: {
    readonly baseSha: string;
    readonly headSha: string;
    readonly targetBranch: string;
    /** The commit that the setup may run with secrets, if there is one; earlier versions of Offstage omitted it. */
    readonly trusted?: { readonly sha: string; readonly branch: string; readonly isDefault: boolean } | null;
  };
  /**
   * The commit that the session had last exported when the attempt began which took the checkpoint; null if there was none.
   * Earlier versions of Offstage omitted it.
   */
  readonly exported?: string | null;
  /** HEAD of the agent's clone. */
  readonly head: string;
  /** A commit on top of `head` with everything that was not committed. */
  readonly commit: string;
  /** The tree of `commit`: if the next checkpoint has the same tree, nothing changed. */
  readonly tree: string;
  /**
   * A commit with the state of a merge that was under way in the clone; null if none was. Earlier versions of Offstage omitted it.
   */
  readonly merge?: string | null;
  /**
   * A piece with commits of the remote that the packs need in addition to the base, which the remote may have lost since; null if there
   * are none, or too many. Earlier versions of Offstage omitted it.
   */
  readonly held?: { readonly piece: string; readonly baseSha: string; readonly commits: readonly string[] } | null;
  /**
   * Pieces that hold git packs, each up to a commit. A pack needs the packs before it and the commits that the
   * session started from.
   */
  readonly packs: readonly { readonly piece: string; readonly commit: string }[];
  /**
   * Pieces that hold contents of files in LFS which the server did not have: for each a line `<oid> <bytes>` with the content after
   * it. Omitted if there are none.
   */
  readonly lfs?: readonly string[];
}

/** The data for continuing a session on another worker. */
export interface Checkpoint {
  /** Absolute paths of the folders as the harness saw them: its saved conversation refers to these paths. */
  readonly originalPaths: { readonly workspace: string; readonly home: string };
  readonly repositories: readonly CheckpointedRepository[];
  /** Piece with the files of a session that has no repository, as a gzipped tar archive. */
  readonly files: string | null;
  /** Hash of all files and commits: it differs if any changed. */
  readonly contentHash: string;
  /** Piece with the harness's saved conversation, as a gzipped tar archive. */
  readonly harness: { readonly provider: string; readonly piece: string } | null;
}

/** A checkpoint as it is in the database, under the names that every version of Offstage reads. */
interface StoredContent extends Omit<Checkpoint, "originalPaths" | "contentHash"> {
  readonly madeAt: Checkpoint["originalPaths"];
  readonly state: string;
}

function contentOf({ originalPaths, contentHash, ...rest }: Checkpoint): StoredContent {
  return { madeAt: originalPaths, state: contentHash, ...rest };
}

/** A checkpoint that was read from the database, and when it was taken. */
export interface StoredCheckpoint extends Checkpoint {
  readonly takenAt: Date;
}

/** Where checkpoints are stored. */
export interface CheckpointStore {
  readonly database: Database;
  readonly vault: Vault;
  /** Null: there is no object store, and checkpoints are wholly in the database. */
  readonly objects: ObjectStore | null;
}

function piecesOf({ repositories, files, harness }: Checkpoint): string[] {
  const ofWork = repositories.flatMap(({ packs, lfs = [], held }) => [
    ...packs.map(({ piece }) => piece),
    ...lfs,
    ...(held == null ? [] : [held.piece]),
  ]);
  return [...ofWork, files, harness?.piece ?? null].filter((id) => id !== null);
}

/**
 * Replaces the session's last checkpoint, all or nothing. Checkpoints may contain secrets, so they are encrypted.
 * @param taken.fresh files of the pieces that are not stored yet, by piece id
 * @param signal aborts uploads to the object store
 * @throws LeaseLostError
 * @throws ConflictError if the session's key changed meanwhile, or an uploaded object was removed as unused
 * @throws ObjectStoreError if an upload fails
 */
export async function saveCheckpoint(
  { database, vault, objects }: CheckpointStore,
  claim: Claim,
  taken: {
    readonly checkpoint: Checkpoint;
    readonly fresh: PieceFiles;
  },
  signal: AbortSignal,
): Promise<void> {
  const { checkpoint, fresh } = taken;
  // Uploads may take long: no transaction holds locks on rows meanwhile.
  const sent = objects === null ? null : await send({ database, vault, objects }, claim.sessionId, fresh, signal);
  await sealing(database, async (transaction) => {
    const key = await sessionKey(transaction, vault, claim.sessionId, sent?.key);
    if (sent === null) await writePieces(transaction, claim.sessionId, key.plain, fresh);
    else await writeUploaded(transaction, claim.sessionId, sent.pieces);
    await holdClaim(transaction, claim);
    if (sent !== null && !sent.key.equals(key.plain)) throw new ConflictError("the session's key is another by now");
    const before = await transaction.query<{ contentHash: string }>(
      `select content ->> 'state' as "contentHash" from checkpoint where session_id = $1`,
      [claim.sessionId],
    );
    await transaction.query("delete from checkpoint_piece where session_id = $1 and not id = any($2::uuid[])", [
      claim.sessionId,
      piecesOf(checkpoint),
    ]);
    await transaction.query(
      `insert into checkpoint (session_id, content, sealed_key, master_key, bytes)
       select $1, $2, $3, $4, coalesce(sum(coalesce(octet_length(sealed), stored_object.bytes)), 0)
       from checkpoint_piece left join stored_object on stored_object.key = object_key where session_id = $1
       on conflict (session_id) do update set content = excluded.content, bytes = excluded.bytes, taken_at = now()`,
      [claim.sessionId, JSON.stringify(contentOf(checkpoint)), key.sealed.sealed, key.sealed.masterKey],
    );
    // A change of the harness's conversation alone is not progress: a session that crashes its worker or itself again and
    // again must fail in the end.
    if (before.rows[0]?.contentHash === checkpoint.contentHash) return;
    await forgetOwnDoing(transaction, claim.sessionId);
  });
}

/** The session's last checkpoint; null if there is none. */
export async function readCheckpoint(database: Database, sessionId: string): Promise<StoredCheckpoint | null> {
  const { rows } = await database.pool.query<{ content: StoredContent; taken_at: Date }>(
    "select content, taken_at from checkpoint where session_id = $1",
    [sessionId],
  );
  const [row] = rows;
  if (row === undefined) return null;
  const { madeAt, state, ...rest } = row.content;
  return { ...rest, originalPaths: madeAt, contentHash: state, takenAt: row.taken_at };
}

/** @throws ObjectStoreError */
async function send(
  { database, vault, objects }: CheckpointStore & { readonly objects: ObjectStore },
  sessionId: string,
  files: PieceFiles,
  signal: AbortSignal,
) {
  const { plain: key } = await sealing(database, (transaction) => sessionKey(transaction, vault, sessionId));
  return { key, pieces: await uploadPieces(database, objects, { sessionId, key, files }, signal) };
}

/**
 * Reads a piece's bytes, in order.
 * @throws ConflictError if the piece no longer exists or can't be decrypted
 * @throws ObjectStoreError if the object store that has it does not answer
 */
export async function* openPiece(
  { database, vault, objects }: CheckpointStore,
  sessionId: string,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const { plain: key } = await sessionKey(database.pool, vault, sessionId);
  yield* readPiece(database, objects, { sessionId, key, id }, signal);
}

/**
 * Removes the checkpoints of sessions that ended more than `days` days ago.
 * @returns how many checkpoints were removed
 */
export async function pruneCheckpoints(database: Database, days: number): Promise<number> {
  const { rowCount } = await database.pool.query(
    `with over as (
       select session.id from checkpoint join session on session.id = checkpoint.session_id
       where ${endedBefore("$1")}
       for update of session skip locked),
     pieces as (delete from checkpoint_piece using over where checkpoint_piece.session_id = over.id)
     delete from checkpoint using over where checkpoint.session_id = over.id`,
    [days],
  );
  return rowCount ?? 0;
}

interface SessionKey {
  readonly plain: Buffer;
  readonly sealed: Sealed;
}

/** The key of the session's pieces: that of its checkpoint, or `fresh` if it has no checkpoint. */
async function sessionKey(
  queryable: Queryable,
  vault: Vault,
  sessionId: string,
  fresh: Buffer = randomBytes(32),
): Promise<SessionKey> {
  const { rows } = await queryable.query<Sealed>(
    `select sealed_key as sealed, master_key as "masterKey" from checkpoint where session_id = $1`,
    [sessionId],
  );
  if (rows[0] !== undefined)
    return { sealed: rows[0], plain: Buffer.from(await vault.open(sessionId, rows[0]), "base64") };
  return { plain: fresh, sealed: await vault.seal(sessionId, fresh.toString("base64")) };
}
