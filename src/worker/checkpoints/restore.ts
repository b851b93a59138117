import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isConnectionError } from "../../database/connection-errors.ts";
import { messageOf, ObjectStoreError, OffstageError, SessionError } from "../../domain/errors/errors.ts";
import { programText } from "../../programs/program-text.ts";
import { openPiece, readCheckpoint, type StoredCheckpoint } from "../../store/checkpoints/checkpoints.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import type { PendingRestore } from "../clones/checkpoint-repository.ts";
import type { Clone } from "../clones/clone.ts";
import { completeClones, type CheckpointContent } from "../clones/clones.ts";
import { gitlinkFunctions } from "../clones/each-gitlink.ts";
import { isDiskFull } from "../disk/disk-full.ts";
import type { CheckpointWork } from "../git/remote-repository.ts";
import { runCommand, type SandboxFolders } from "../sandboxed/run-command.ts";
import { countUnrestored } from "./measure.ts";
import { unpackArchive } from "./make-pieces.ts";
import { restoreLfs } from "./restore-lfs.ts";

/** A session's last checkpoint, whose packs have been fetched to this machine. */
export interface FetchedCheckpoint extends CheckpointContent {
  readonly stored: StoredCheckpoint;
}

/** A fetched checkpoint, and the parts of it that the clones made for it can continue from. */
export interface RestorableCheckpoint {
  readonly fetched: FetchedCheckpoint;
  readonly pending: readonly PendingRestore[];
}

/** Services of the worker for fetching or taking a checkpoint; restoring one needs the mirrors and checkouts of its clones too. */
export type FetchCheckpointServices = Pick<
  AttemptServices,
  "database" | "vault" | "objects" | "metrics" | "folders" | "sandbox"
>;
/** See `FetchCheckpointServices`. */
export type RestoreServices = FetchCheckpointServices & Pick<AttemptServices, "mirrors" | "checkouts" | "limits">;

/**
 * Fetches the last checkpoint of a session that has no folders on this worker. The packs are in the session's folder for incoming
 * files, which the caller removes when the clones are made.
 * @returns null if there is none, or it is unusable, which a notice says: the turn then starts again from the remote
 * @throws ObjectStoreError and other errors that may pass, so that the checkpoint stays for the next attempt
 */
export async function fetchCheckpoint(
  attempt: Attempt,
  services: FetchCheckpointServices,
): Promise<FetchedCheckpoint | null> {
  const { database, folders, sandbox } = services;
  const { sessionId } = attempt.session;
  const stored = await readCheckpoint(database, sessionId);
  if (stored === null) return null;
  try {
    const folder = await folders.incomingFolder(sessionId);
    const work = new Map<string, CheckpointWork>();
    for (const {
      directory,
      start,
      exported = null,
      head,
      commit,
      merge = null,
      held = null,
      packs,
    } of stored.repositories) {
      const files: { file: string; commit: string }[] = [];
      const bring = async (piece: string): Promise<string> => {
        const file = join(folder, piece);
        await pipeline(pieceOf(attempt, services, piece), createWriteStream(file, { mode: 0o600 }));
        return file;
      };
      for (const { piece, commit: upTo } of packs) files.push({ file: await bring(piece), commit: upTo });
      const remote = held === null ? null : { file: await bring(held.piece), commits: held.commits };
      work.set(directory, { start, exported, head, commit, merge, held: remote, packs: files });
    }
    // Without a sandbox a harness can't see its folders at their former paths.
    const isShown = sandbox.isolates && stored.harness !== null;
    return { stored, work, originalPaths: isShown ? stored.originalPaths : null };
  } catch (error) {
    await reportUnusable(attempt, services, error);
    return null;
  }
}

/**
 * Reports on the session, and counts, that its checkpoint can't be used.
 * @param error why
 * @throws the error itself if it may pass, or the reason of the attempt's signal: the checkpoint stays, and the next attempt
 *   tries again
 */
export async function reportUnusable(
  attempt: Attempt,
  { metrics }: Pick<AttemptServices, "metrics">,
  error: unknown,
): Promise<void> {
  const isPassing = error instanceof ObjectStoreError || (error instanceof SessionError && error.passing);
  const mayPass = !(error instanceof OffstageError) || isPassing || isDiskFull(error);
  countUnrestored(metrics, attempt.signal, error, mayPass ? "failed" : "unusable");
  attempt.signal.throwIfAborted();
  if (mayPass) throw error;
  attempt.logger.warn({ err: error }, "could not continue from a checkpoint; starts again without it");
  const reason = messageOf(error);
  await notice(attempt, "warning", `The work of the previous worker could not be restored: ${reason}`);
}

/**
 * Source of the work so far: the checkpoint, the checkpoint without contents of files in LFS, or the remote alone.
 */
export type RestoredFrom = "checkpoint" | "checkpoint without contents" | "remote";

/**
 * Restores a checkpoint into the clones that were made for it. To be called after the setup, which must see neither the agent's
 * code nor its memory.
 * @returns from where the agent's work was restored; a notice explains what was not
 * @throws ObjectStoreError and other errors that may pass
 */
export async function restoreCheckpoint(
  attempt: Attempt,
  services: RestoreServices,
  clones: readonly Clone[],
  checkpoint: RestorableCheckpoint,
): Promise<RestoredFrom> {
  const from = await restoreParts(attempt, services, checkpoint);
  // Only now are the folders complete: before, neither saving the diff nor a later attempt may use them.
  await completeClones(services, attempt.session.sessionId, clones);
  return from;
}

async function restoreParts(
  attempt: Attempt,
  services: RestoreServices,
  { fetched: { stored }, pending }: RestorableCheckpoint,
): Promise<RestoredFrom> {
  const { sandbox, metrics } = services;
  const { session } = attempt;
  let remembers = true;
  let hasContents = true;
  try {
    for (const work of pending) {
      const { directory, name } = work.clone.repository;
      const folders = commandFoldersOf(session, services, directory);
      const part = stored.repositories.find((repository) => repository.directory === directory);
      if (part === undefined) throw new Error(`the checkpoint has nothing of ${name}`);
      const pieces = (part.lfs ?? []).map((piece) => pieceOf(attempt, services, piece));
      const problem = await restoreLfs({ ...services, signal: attempt.signal }, folders, work, pieces);
      await restoreWork(attempt, services, folders, work);
      if (problem === null) continue;
      hasContents = false;
      const text = `Not all files in LFS of ${name} could be restored: the agent sees pointers in their place. ${problem}`;
      await notice(attempt, "warning", text.slice(0, 2_000));
    }
    if (stored.files !== null) await unpack(attempt, services, stored.files, "workspace");
    if (stored.harness !== null) {
      const { piece } = stored.harness;
      remembers = sandbox.isolates && (await restoreMemory(attempt, services, piece));
    }
  } catch (error) {
    await reportUnusable(attempt, services, error);
    return "remote";
  }
  metrics.checkpointRestored(remembers ? "restored" : "withoutMemory");
  if (pending.length === 0 && stored.files === null) return "remote";
  await notice(attempt, "info", `This worker continues from what another had done by ${stored.takenAt.toISOString()}.`);
  return hasContents ? "checkpoint" : "checkpoint without contents";
}

/**
 * Restores a checkpoint's files into the session's clone as the agent left them: uncommitted, on its own HEAD. It runs inside
 * the sandbox, since a setup script may have run in the clone.
 */
async function restoreWork(
  { session, mask, signal }: Pick<Attempt, "session" | "mask" | "signal">,
  services: Pick<AttemptServices, "sandbox" | "limits">,
  folders: SandboxFolders,
  work: PendingRestore,
): Promise<void> {
  const environment = {
    OFFSTAGE_CHECKPOINTS: work.path,
    OFFSTAGE_COMMIT: work.commit,
    OFFSTAGE_HEAD: work.head,
    OFFSTAGE_STATE: work.merge ?? "",
    OFFSTAGE_MESSAGE: mask.text(session.title),
  };
  const program = `${gitlinkFunctions()}\n${programText(import.meta.url, "restore-work.sh")}`;
  const command = { command: "sh", arguments: ["-c", program], environment };
  const seen = { ...folders, readOnly: [...folders.readOnly, work.path] };
  await runCommand({ ...services, signal }, seen, command, (child) => void child.stdout.resume());
}

/** Restores a harness's memory. If that fails, the agent gets the transcript instead. @returns whether it succeeded */
async function restoreMemory(attempt: Attempt, services: RestoreServices, piece: string): Promise<boolean> {
  const { signal, logger } = attempt;
  try {
    await unpack(attempt, services, piece, "home");
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (isConnectionError(error) || error instanceof ObjectStoreError) throw error;
    logger.warn({ err: error }, "could not restore a harness's memory");
    return false;
  }
}

function unpack(
  attempt: Pick<Attempt, "session" | "signal">,
  services: RestoreServices,
  piece: string,
  into: "home" | "workspace",
): Promise<void> {
  const { session, signal } = attempt;
  const folders = commandFoldersOf(session, services, ".");
  return unpackArchive({ ...services, signal }, folders, pieceOf(attempt, services, piece), into);
}

function pieceOf(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  services: Pick<AttemptServices, "database" | "vault" | "objects">,
  piece: string,
): Readable {
  return Readable.from(openPiece(services, session.sessionId, piece, signal));
}

function notice({ emit }: Pick<Attempt, "emit">, level: "info" | "warning", text: string): Promise<void> {
  return emit({ type: "notice", data: { level, text } });
}
