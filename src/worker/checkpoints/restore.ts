import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isConnectionError } from "../../database/connection-errors.ts";
import { ObjectStoreError, OffstageError } from "../../domain/errors.ts";
import { openPiece, readCheckpoint, type StoredCheckpoint } from "../../store/checkpoints/checkpoints.ts";
import type { Run } from "../attempt/run.ts";
import { placeOf } from "../attempt/session-repositories.ts";
import type { WaitingWork } from "../clones/kept-work.ts";
import type { LaidOut } from "../clones/workspace.ts";
import { isDiskFull } from "../disk/disk-full.ts";
import type { MadeAt } from "../disk/session-folders.ts";
import type { KeptCheckpoint } from "../git/workspace-repository.ts";
import { inside, type InsidePlace } from "../sandboxed/inside.ts";
import { countUnrestored } from "./measure.ts";
import { unpackArchive } from "./pieces.ts";

/** A checkpoint whose packs have been fetched to this machine. */
export interface FetchedCheckpoint {
  /** The work of each repository, by its folder in the workspace. */
  readonly keptWork: ReadonlyMap<string, KeptCheckpoint>;
  /** Folders in which the checkpoint was made; null if the harness can't be shown the session's folders at those paths. */
  readonly madeAt: MadeAt | null;
}

type Restorable = LaidOut & { readonly restore: (() => Promise<boolean>) | null };

/**
 * Makes the clones of a session that has no folders on this worker, so that its last checkpoint, if there is one, can be
 * restored into them later. If the checkpoint is unusable, the clones start from the remote and the turn starts again.
 * @param layOut makes the clones; called a second time, with null, if the checkpoint turns out to be unusable
 * @returns the clones; `restore` puts the checkpoint into them and tells whether it could, null if there is none
 * @throws ObjectStoreError and other errors that may pass, so that the checkpoint stays for the next attempt
 */
export async function withLastCheckpoint(
  run: Run,
  layOut: (checkpoint: FetchedCheckpoint | null) => Promise<LaidOut>,
): Promise<Restorable> {
  const { database, workspaces } = run.dependencies;
  const checkpoint = await readCheckpoint(database, run.session.sessionId);
  if (checkpoint === null) return { ...(await layOut(null)), restore: null };
  try {
    return await layOutWith(run, checkpoint, layOut);
  } catch (error) {
    await tellUnusable(run, error);
    await workspaces.forget(run.session.sessionId);
    return { ...(await layOut(null)), restore: null };
  }
}

async function tellUnusable(run: Run, error: unknown): Promise<void> {
  // An error that may pass must not cost the work: the checkpoint stays, and the next attempt tries again.
  const mayPass = !(error instanceof OffstageError) || error instanceof ObjectStoreError || isDiskFull(error);
  countUnrestored(run, error, mayPass ? "failed" : "unusable");
  run.signal.throwIfAborted();
  if (mayPass) throw error;
  run.dependencies.logger.warn({ err: error }, "could not go on from a checkpoint; begins anew");
  const reason = error instanceof Error ? error.message : String(error);
  await notice(run, "warning", `The work of the previous worker could not be restored: ${reason}`);
}

/** Fetches the packs, and has the clones made at the commits where they start. */
async function layOutWith(
  run: Run,
  checkpoint: StoredCheckpoint,
  layOut: (checkpoint: FetchedCheckpoint) => Promise<LaidOut>,
): Promise<Restorable> {
  const folder = await run.dependencies.workspaces.incomingFolder(run.session.sessionId);
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
    const isShown = run.dependencies.sandbox.isolates && checkpoint.harness !== null;
    const laidOut = await layOut({ keptWork, madeAt: isShown ? checkpoint.madeAt : null });
    return {
      ...laidOut,
      // Only now are the folders marked as complete: before, neither saving the diff nor a later attempt may use them.
      restore: async () => {
        const isRestored = await restore(run, checkpoint, laidOut);
        await run.dependencies.workspaces.markStarted(run.session.sessionId, laidOut.repositories);
        return isRestored;
      },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function restore(run: Run, checkpoint: StoredCheckpoint, { waiting }: LaidOut): Promise<boolean> {
  const { sandbox, metrics } = run.dependencies;
  let remembers = true;
  try {
    for (const work of waiting) await restoreKeptWork(run, placeOf(run, work.directory), work);
    if (checkpoint.files !== null) await unpack(run, checkpoint.files, "workspace");
    // Without a sandbox a harness can't see its folders at their former paths.
    if (checkpoint.harness !== null)
      remembers = sandbox.isolates && (await restoreMemory(run, checkpoint.harness.piece));
  } catch (error) {
    await tellUnusable(run, error);
    return false;
  }
  metrics.checkpointRestored(remembers ? "restored" : "withoutMemory");
  if (waiting.length === 0 && checkpoint.files === null) return false;
  await notice(run, "info", `This worker continues from what another had done by ${checkpoint.takenAt.toISOString()}.`);
  return true;
}

const restoreScript = `
set -eu
objects="$(git rev-parse --path-format=absolute --git-path objects)"
mkdir -p "$objects/pack"
cp "$OFFSTAGE_KEPT"/objects/pack/pack-* "$objects/pack/"
git reset --quiet --hard "$OFFSTAGE_COMMIT"
git reset --quiet --mixed "$OFFSTAGE_HEAD"`;

/**
 * Restores a checkpoint's files into the session's clone as the agent left them: uncommitted, on its own HEAD. It runs inside
 * the sandbox, since a setup script may have run in the clone.
 */
async function restoreKeptWork(run: Run, place: InsidePlace, work: WaitingWork): Promise<void> {
  const environment = { OFFSTAGE_KEPT: work.path, OFFSTAGE_COMMIT: work.commit, OFFSTAGE_HEAD: work.head };
  const command = { command: "sh", arguments: ["-c", restoreScript], environment };
  await inside(run, { ...place, readOnly: [...place.readOnly, work.path] }, command, (child) => {
    child.stdout.resume();
  });
}

/** Restores a harness's memory. If that fails, the agent gets the transcript instead. @returns whether it succeeded */
async function restoreMemory(run: Run, piece: string): Promise<boolean> {
  try {
    await unpack(run, piece, "home");
    return true;
  } catch (error) {
    run.signal.throwIfAborted();
    if (isConnectionError(error) || error instanceof ObjectStoreError) throw error;
    run.dependencies.logger.warn({ err: error }, "could not bring a harness's memory back");
    return false;
  }
}

function pieceOf(run: Run, piece: string): Readable {
  return Readable.from(openPiece(run.dependencies, run.session.sessionId, piece, run.signal));
}

function unpack(run: Run, piece: string, into: "home" | "workspace"): Promise<void> {
  return unpackArchive(run, placeOf(run, "."), pieceOf(run, piece), into);
}

function notice(run: Run, level: "info" | "warning", text: string): Promise<void> {
  return run.emit({ type: "notice", data: { level, text } });
}
