import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { programText } from "../../programs/program-text.ts";
import { changesVariables, type OverlayChanges } from "../checkouts/changes.ts";
import { mergeStateFunctions } from "../export/merge-state.ts";
import { stageAllFunction } from "../export/stage-all.ts";
import { authorVariables } from "../git/git.ts";
import { filterCommand } from "../git/lfs/lfs.ts";
import { sparseVariables } from "../git/sparse-checkout.ts";
import { limitBytes } from "../sandboxed/byte-limit.ts";
import { runCommand, type SandboxCommand, type SandboxFolders, type SandboxedRun } from "../sandboxed/run-command.ts";

/** The dependencies for making a checkpoint's pieces. */
export interface PieceRun extends SandboxedRun {
  /** Most bytes of one piece. */
  readonly checkpointBytes: number;
}

const sizeLimit = ({ checkpointBytes }: PieceRun) => limitBytes(checkpointBytes, "OFFSTAGE_CHECKPOINT_MB");

/** The base of a repository's checkpoint. */
export interface PackRequest {
  /**
   * Outside the clone: the mirror's path, and the object folder of the earlier checkpoints. `known` are the commits in them.
   */
  readonly mirror: string;
  readonly checkpoints: string;
  readonly known: readonly string[];
  readonly baseSha: string;
  /** The commit where the work began: taken for HEAD if the agent's HEAD does not share this history. */
  readonly headSha: string;
  /** Folders that the clone was made with; everything, if omitted. */
  readonly sparse?: readonly string[];
  /** The changes in the clone's overlay; null if it is a plain folder, or they are not known. */
  readonly changes: OverlayChanges | null;
  /** The session's commit in a join that the agent is to do by hand; null if there is none. */
  readonly ours: string | null;
  /** The last checkpoint; nothing is packed if HEAD, tree and the state of a merge are still the same. */
  readonly last: { readonly head: string; readonly tree: string; readonly merge?: string | null } | null;
}

/**
 * Commits and tree of a packed checkpoint: the agent's HEAD, the commit on top of it with all files, and that commit's tree.
 */
export interface PackedWork {
  readonly head: string;
  readonly commit: string;
  readonly tree: string;
  /** The commit with the state of a merge that is under way (pack-work.sh); null if none is. */
  readonly merge: string | null;
}

/**
 * Packs what a repository's folder has beyond the known commits into `file`; null if nothing changed.
 * @throws TooLargeError if the pack exceeds OFFSTAGE_CHECKPOINT_MB
 * @throws SessionError resources_exhausted; Error if the script fails
 */
export async function packWork(
  run: PieceRun,
  folders: SandboxFolders,
  request: PackRequest,
  file: string,
): Promise<PackedWork | null> {
  const environment = {
    ...authorVariables({ name: "Offstage", email: "offstage@localhost" }),
    OFFSTAGE_BASE: request.baseSha,
    OFFSTAGE_BEFORE: request.headSha,
    OFFSTAGE_KNOWN: request.known.join(" "),
    OFFSTAGE_MIRROR: join(request.mirror, "objects"),
    OFFSTAGE_LFS_FILTER: filterCommand(request.mirror),
    OFFSTAGE_CHECKPOINTS: request.checkpoints,
    ...sparseVariables(request.sparse ?? []),
    ...changesVariables(request.changes),
    OFFSTAGE_LAST:
      request.last === null ? "" : `${request.last.head} ${request.last.tree} ${request.last.merge ?? "none"}`,
    OFFSTAGE_OURS: request.ours ?? "",
  };
  const program = [stageAllFunction(), mergeStateFunctions(), programText(import.meta.url, "pack-work.sh")].join("\n");
  const command = { command: "sh", arguments: ["-c", program], environment };
  const output = await runCommand(run, folders, command, (child) => {
    child.stdin.end(request.changes?.list);
    return pipeline(child.stdout, sizeLimit(run), createWriteStream(file, { mode: 0o600 }));
  });
  const name = "([0-9a-f]{40,64})";
  const report = new RegExp(`^offstage-checkpoint ${name} ${name} ${name} (?:${name}|none)$`, "mu").exec(output);
  const [, head, commit, tree, merge = null] = report ?? [];
  return head === undefined || commit === undefined || tree === undefined ? null : { head, commit, tree, merge };
}

/**
 * Writes the files of a harness's memory into `file`, as a gzipped tar.
 * @param state paths below the home whose last part may contain `*`
 * @returns the SHA-256 of the tar
 */
export function archiveState(
  run: PieceRun,
  folders: SandboxFolders,
  state: readonly string[],
  file: string,
): Promise<string> {
  const parameters = ["--no-warnings", "-e", programText(import.meta.url, "archive-memory.cjs"), "--", ...state];
  return archive(run, folders, { command: process.execPath, arguments: parameters }, file);
}

/** Writes all files of a workspace without a repository into `file`, as a gzipped tar. @returns the SHA-256 of the tar */
export function archiveFiles(run: PieceRun, folders: SandboxFolders, file: string): Promise<string> {
  const parameters = ["-c", programText(import.meta.url, "archive-files.sh")];
  return archive(run, folders, { command: "sh", arguments: parameters }, file);
}

async function archive(run: PieceRun, folders: SandboxFolders, command: SandboxCommand, file: string): Promise<string> {
  const hash = createHash("sha256");
  await runCommand(run, folders, command, (child) => {
    child.stdout.on("data", (chunk: Buffer) => hash.update(chunk));
    return pipeline(child.stdout, sizeLimit(run), createGzip({ level: 1 }), createWriteStream(file, { mode: 0o600 }));
  });
  return hash.digest("hex");
}

/**
 * Unpacks a gzipped tar into the home or the workspace. It runs inside the sandbox, where it can overwrite only the session's
 * own files.
 */
export async function unpackArchive(
  run: SandboxedRun,
  folders: SandboxFolders,
  content: NodeJS.ReadableStream,
  into: "home" | "workspace",
): Promise<void> {
  const parameters = ["--extract", "--file=-", "--no-same-owner", `--directory=${folders[into]}`];
  await runCommand(run, folders, { command: "tar", arguments: parameters }, async (child) => {
    child.stdout.resume();
    await pipeline(content, createGunzip(), child.stdin).catch((error: NodeJS.ErrnoException) => {
      // tar may end before it has read the padding; its exit code says whether it failed.
      if (error.code !== "EPIPE" && error.code !== "ECONNRESET" && error.code !== "ERR_STREAM_PREMATURE_CLOSE")
        throw error;
    });
  });
}
