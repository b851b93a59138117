import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Database, Queryable } from "../database/database.ts";
import { ConflictError } from "../domain/errors.ts";
import { openBytes, sealBytes } from "./cipher.ts";
import { holdClaim, type Claim } from "./claims.ts";
import { wasOverFor } from "./retention.ts";
import { sealing } from "./rotation.ts";
import type { Sealed, Vault } from "./vault.ts";

/** One repository of a session as a checkpoint has it. */
export interface CheckpointRepository {
  /** Folder in the workspace. */
  readonly directory: string;
  /** Where the session started, as `prepare` found it. */
  readonly start: { readonly baseSha: string; readonly headSha: string; readonly targetBranch: string };
  /** The agent's own HEAD. */
  readonly head: string;
  /** A commit on top of it with everything that was not committed. */
  readonly commit: string;
  /** Its tree, by which the next checkpoint sees whether anything changed. */
  readonly tree: string;
  /** Pieces that hold git packs, each up to a commit; a later one needs those before it and what the session started from. */
  readonly packs: readonly { readonly piece: string; readonly commit: string }[];
}

export interface Checkpoint {
  /** Folders as the harness saw them: what it remembers speaks of them. */
  readonly madeAt: { readonly workspace: string; readonly home: string };
  readonly repositories: readonly CheckpointRepository[];
  /** Piece with the files of a session without a repository, as a gzipped tar. */
  readonly files: string | null;
  /** Names the state of all files: what has another one has changed. */
  readonly state: string;
  /** Piece with what the harness keeps of the conversation, as a gzipped tar. */
  readonly harness: { readonly provider: string; readonly piece: string } | null;
}

export interface StoredCheckpoint extends Checkpoint {
  readonly takenAt: Date;
}

const chunkBytes = 1024 * 1024;

function piecesOf({ repositories, files, harness }: Checkpoint): string[] {
  const packs = repositories.flatMap((repository) => repository.packs.map(({ piece }) => piece));
  return [...packs, files, harness?.piece ?? null].filter((id) => id !== null);
}

/**
 * Puts a checkpoint in the place of the session's last one, all or nothing. What it holds may show secrets, so it is sealed.
 * @param taken.fresh files of the pieces that are not stored yet, by id
 * @throws LeaseLostError
 */
export async function saveCheckpoint(
  database: Database,
  vault: Vault,
  claim: Claim,
  taken: {
    readonly checkpoint: Checkpoint;
    readonly fresh: ReadonlyMap<string, string>;
  },
): Promise<void> {
  const { checkpoint, fresh } = taken;
  await sealing(database, async (transaction) => {
    const key = await sessionKey(transaction, vault, claim.sessionId);
    for (const [id, file] of fresh) await writePiece(transaction, claim.sessionId, key.plain, id, file);
    await holdClaim(transaction, claim);
    const before = await transaction.query<{ state: string }>(
      "select content ->> 'state' as state from checkpoint where session_id = $1",
      [claim.sessionId],
    );
    await transaction.query("delete from checkpoint_piece where session_id = $1 and not id = any($2::uuid[])", [
      claim.sessionId,
      piecesOf(checkpoint),
    ]);
    await transaction.query(
      `insert into checkpoint (session_id, content, sealed_key, master_key, bytes)
       select $1, $2, $3, $4, coalesce(sum(octet_length(sealed)), 0) from checkpoint_piece where session_id = $1
       on conflict (session_id) do update set content = excluded.content, bytes = excluded.bytes, taken_at = now()`,
      [claim.sessionId, JSON.stringify(checkpoint), key.sealed.sealed, key.sealed.masterKey],
    );
    // The harness's memory alone is no progress: a session that kills its worker again and again is given up.
    if (before.rows[0]?.state === checkpoint.state) return;
    await transaction.query("update session set claims_without_progress = 0 where id = $1", [claim.sessionId]);
  });
}

/** The session's last checkpoint; null where there is none. */
export async function readCheckpoint(database: Database, sessionId: string): Promise<StoredCheckpoint | null> {
  const { rows } = await database.pool.query<{ content: Checkpoint; taken_at: Date }>(
    "select content, taken_at from checkpoint where session_id = $1",
    [sessionId],
  );
  const [row] = rows;
  return row === undefined ? null : { ...row.content, takenAt: row.taken_at };
}

/** A piece's bytes, in order. @throws ConflictError where it can't be opened */
export async function* openPiece(
  database: Database,
  vault: Vault,
  sessionId: string,
  id: string,
): AsyncGenerator<Buffer> {
  const { plain } = await sessionKey(database.pool, vault, sessionId);
  for (let position = 0; ; position += 1) {
    const { rows } = await database.pool.query<{ sealed: Buffer }>(
      "select sealed from checkpoint_piece where session_id = $1 and id = $2 and position = $3",
      [sessionId, id, position],
    );
    if (rows[0] === undefined) {
      if (position === 0) throw new ConflictError(`the piece ${id} of a checkpoint is gone`);
      return;
    }
    const changed = "a checkpoint was changed behind Offstage's back";
    yield openBytes(plain, chunkPlace(id, position), rows[0].sealed, changed);
  }
}

/** Removes the checkpoints of sessions that were over for so many days. @returns how many */
export async function pruneCheckpoints(database: Database, days: number): Promise<number> {
  const { rowCount } = await database.pool.query(
    `with over as (
       select session.id from checkpoint join session on session.id = checkpoint.session_id
       where ${wasOverFor("$1")}
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

/** The key of the session's pieces: that of its checkpoint, else a new one. */
async function sessionKey(queryable: Queryable, vault: Vault, sessionId: string): Promise<SessionKey> {
  const { rows } = await queryable.query<Sealed>(
    `select sealed_key as sealed, master_key as "masterKey" from checkpoint where session_id = $1`,
    [sessionId],
  );
  if (rows[0] !== undefined)
    return { sealed: rows[0], plain: Buffer.from(await vault.open(sessionId, rows[0]), "base64") };
  const plain = randomBytes(32);
  return { plain, sealed: await vault.seal(sessionId, plain.toString("base64")) };
}

async function writePiece(
  transaction: Queryable,
  sessionId: string,
  key: Buffer,
  id: string,
  file: string,
): Promise<void> {
  let position = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: chunkBytes }) as AsyncIterable<Buffer>) {
    await transaction.query("insert into checkpoint_piece (session_id, id, position, sealed) values ($1, $2, $3, $4)", [
      sessionId,
      id,
      position,
      sealBytes(key, chunkPlace(id, position), chunk),
    ]);
    position += 1;
  }
}

/** What a chunk is sealed for: it can't be put in another's place. */
const chunkPlace = (id: string, position: number): string => `${id} ${position}`;
