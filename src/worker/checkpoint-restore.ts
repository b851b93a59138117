import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { openPiece, readCheckpoint, type StoredCheckpoint } from "../store/checkpoints.ts";
import { unpackArchive } from "./checkpoint-pieces.ts";
import type { InsidePlace } from "./inside.ts";
import type { Run } from "./run.ts";
import type { KeptCheckpoint, MadeAt } from "./workspace.ts";

/** A checkpoint whose packs are on this machine. */
export interface FetchedCheckpoint {
  readonly keptWork: ReadonlyMap<string, KeptCheckpoint>;
  /** Null where the harness can't be shown the folders where they were. */
  readonly madeAt: MadeAt | null;
}

/**
 * Lays out a session that this worker has no folders of: from its last checkpoint where there is one, else as it was pushed.
 * A checkpoint that can't be used ends nothing: the turn is begun anew.
 */
export async function withLastCheckpoint<T extends { readonly from: string }>(
  run: Run,
  layOut: (checkpoint: FetchedCheckpoint | null) => Promise<T>,
): Promise<T> {
  const { database, logger } = run.dependencies;
  const checkpoint = await readCheckpoint(database, run.session.sessionId);
  if (checkpoint === null) return layOut(null);
  try {
    return await goOnFrom(run, checkpoint, layOut);
  } catch (error) {
    run.signal.throwIfAborted();
    logger.warn({ err: error }, "could not go on from a checkpoint; begins anew");
    const reason = error instanceof Error ? error.message : String(error);
    await notice(run, "warning", `The work of the worker before could not be taken over: ${reason}`);
    await run.dependencies.workspaces.forget(run.session.sessionId);
    return layOut(null);
  }
}

async function goOnFrom<T extends { readonly from: string }>(
  run: Run,
  checkpoint: StoredCheckpoint,
  layOut: (checkpoint: FetchedCheckpoint) => Promise<T>,
): Promise<T> {
  const { sandbox, workspaces } = run.dependencies;
  const { sessionId } = run.session;
  const folder = await mkdtemp(join(tmpdir(), "offstage-checkpoint-"));
  try {
    const keptWork = new Map<string, KeptCheckpoint>();
    for (const { directory, start, head, commit, packs } of checkpoint.repositories) {
      const files: { file: string; commit: string }[] = [];
      for (const { piece, commit: upTo } of packs) {
        const file = join(folder, piece);
        await pipeline(pieceOf(run, piece), createWriteStream(file, { mode: 0o600 }));
        files.push({ file, commit: upTo });
      }
      keptWork.set(directory, { start, head, commit, packs: files });
    }
    const madeAt = sandbox.isolates && checkpoint.harness !== null ? checkpoint.madeAt : null;
    const laidOut = await layOut({ keptWork, madeAt });
    const place = workspaces.folders(sessionId, []);
    if (checkpoint.files !== null) await unpack(run, place, checkpoint.files, "workspace");
    if (madeAt !== null && checkpoint.harness !== null) await unpack(run, place, checkpoint.harness.piece, "home");
    const from = checkpoint.files === null ? laidOut.from : "checkpoint";
    if (from === "checkpoint") {
      const at = checkpoint.takenAt.toISOString();
      await notice(run, "info", `This worker goes on from what another had done by ${at}.`);
    }
    return { ...laidOut, from };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function pieceOf(run: Run, piece: string): Readable {
  const { database, vault } = run.dependencies;
  return Readable.from(openPiece(database, vault, run.session.sessionId, piece));
}

function unpack(run: Run, place: InsidePlace, piece: string, into: "home" | "workspace"): Promise<void> {
  return unpackArchive(run, place, pieceOf(run, piece), into);
}

function notice(run: Run, level: "info" | "warning", text: string): Promise<void> {
  return run.emit({ type: "notice", data: { level, text } });
}
