import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SessionError } from "../../domain/errors/errors.ts";
import { programText } from "../../programs/program-text.ts";
import { diskUsage } from "../../sandboxes/process/disk-usage.ts";
import { watchUsage } from "../../sandboxes/process/watch.ts";
import { git, mustGit, remoteError, tooSlow, withinMs, type GitOptions, type GitResult } from "./git.ts";
import { remoteOptions, transferLimits, type Mirror } from "./mirror.ts";

/** What git stores in place of a file's content (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md). */
export interface LfsPointer {
  /** SHA-256 of the content, in hexadecimal. */
  readonly oid: string;
  /** Bytes of the content. */
  readonly size: number;
}

/** A pointer is shorter than this, in bytes. */
export const pointerBytes = 1024;

/** Reads a pointer; null if the text is none. */
export function parsePointer(text: string): LfsPointer | null {
  if (!text.startsWith("version https://git-lfs.github.com/spec/v1\n")) return null;
  const oid = /^oid sha256:([0-9a-f]{64})$/mu.exec(text)?.[1];
  const size = /^size (\d{1,15})$/mu.exec(text)?.[1];
  return oid === undefined || size === undefined ? null : { oid, size: Number(size) };
}

/** Folder of a mirror with the contents of its files in LFS, which all its clones read. */
export function lfsStore(mirror: string): string {
  return join(mirror, "lfs");
}

/** Path of a content in a store. */
export function lfsPath(store: string, oid: string): string {
  return join(store, "objects", oid.slice(0, 2), oid.slice(2, 4), oid);
}

/**
 * Makes a fresh clone ready for files in LFS, if the commit has any: fetches their contents into the mirror's store, and sets the
 * filter by which the next checkout writes them into the folder, and by which git stores pointers for what an agent changes.
 * @param clone path of the clone, in which nothing is checked out yet
 * @returns why the folder will have pointers instead of contents, as a sentence; null if it will have the contents, or if no file
 *   of the commit is in LFS
 */
export async function prepareLfs(
  mirror: Mirror,
  clone: string,
  sha: string,
  signal: AbortSignal,
): Promise<string | null> {
  if (!(await usesLfs(mirror.path, sha, signal))) return null;
  await setFilter(mirror.path, { cwd: clone, signal });
  try {
    await fetchContents(mirror, sha, signal);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    // What passes is waited for: the agent would work on pointers.
    if (!(error instanceof SessionError) || error.passing) throw error;
    return `${error.message} ${error.remedy}`;
  }
}

/** Whether a commit's attributes put files into LFS. */
export async function usesLfs(mirror: string, sha: string, signal: AbortSignal): Promise<boolean> {
  const attributes = [":(glob).gitattributes", ":(glob)**/.gitattributes"];
  const { code } = await git(["grep", "--quiet", "-I", "--fixed-strings", "filter=lfs", sha, "--", ...attributes], {
    cwd: mirror,
    signal,
  });
  return code === 0;
}

/** Sets git's filter in a clone that no agent has seen yet. */
async function setFilter(mirror: string, clone: GitOptions): Promise<void> {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  const program = `sh -c ${quoted(programText(import.meta.url, "lfs-filter.sh"))} lfs-filter`;
  for (const direction of ["clean", "smudge"]) {
    const command = `${program} ${direction} ${quoted(lfsStore(mirror))}`;
    // git replaces %f by the file's path, and %% by %.
    await mustGit(["config", `filter.lfs.${direction}`, command.replaceAll("%", "%%")], clone);
  }
  // Without its filter git would store the whole content.
  await mustGit(["config", "filter.lfs.required", "true"], clone);
}

/**
 * Downloads the contents of a commit's files by git-lfs.
 * @throws SessionError repository_*, resources_exhausted
 */
export async function fetchContents(mirror: Mirror, sha: string, signal: AbortSignal): Promise<void> {
  const options = await lfsOptions(mirror, signal);
  const store = lfsStore(mirror.path);
  await mkdir(store, { recursive: true });
  const before = (await diskUsage([store], null)) ?? { bytes: 0, files: 0 };
  const { bytes, ms } = transferLimits(mirror);
  const tooMuch = new AbortController();
  const watch = watchUsage({
    limits: { diskBytes: before.bytes + bytes },
    folders: [store],
    pids: null,
    onExceeded: () => tooMuch.abort(tooLarge(mirror.url, bytes)),
  });
  try {
    const { code, stdout, stderr } = await withinMs(
      ms,
      { ...options, signal: AbortSignal.any([options.signal, tooMuch.signal]), fileBytes: bytes },
      () => tooSlow(mirror.url, "download of files in LFS from", ms),
      (bounded) => git(["lfs", "fetch", "origin", sha], bounded),
    );
    if (code !== 0) throw remoteError(mirror.url, `${stdout}\n${stderr}`);
  } finally {
    watch.stop();
  }
}

/**
 * Uploads contents from the mirror's store by git-lfs.
 * @throws SessionError push_rejected, repository_*
 */
export async function uploadContents(mirror: Mirror, oids: readonly string[], signal: AbortSignal): Promise<void> {
  const { ms } = transferLimits(mirror);
  await withinMs(
    ms,
    await lfsOptions(mirror, signal),
    () => tooSlow(mirror.url, "upload of files in LFS to", ms),
    async (bounded) => {
      for (let start = 0; start < oids.length; start += uploadedAtOnce) {
        const some = oids.slice(start, start + uploadedAtOnce);
        const result = await git(["lfs", "push", "--object-id", "origin", ...some], bounded);
        if (result.code !== 0) throw uploadError(mirror.url, result);
      }
    },
  );
}

/** How many contents one command line names. */
const uploadedAtOnce = 500;

function uploadError(url: string, { stdout, stderr }: GitResult): SessionError {
  const said = `${stdout}\n${stderr}`.trim();
  const error = remoteError(url, said);
  if (error.code !== "repository_unreachable" || !/\b4\d\d\b|quota|locked|denied/iu.test(said)) return error;
  return new SessionError({
    code: "push_rejected",
    reason: `The server refused the upload of files in LFS: ${said.slice(-700)}`,
    retryable: false,
    remedy: "Raise the quota of LFS, or remove what refuses the upload, then retry.",
  });
}

/**
 * How git-lfs runs: what the repository's `.lfsconfig` says is not followed, nor any setting by which git-lfs would start
 * another program, since strangers wrote it. It gets the remote's credentials for the remote's origin alone.
 * @throws SessionError repository_unreachable if git-lfs is not installed, or the operator did not name the host
 */
async function lfsOptions(mirror: Mirror, signal: AbortSignal): Promise<GitOptions> {
  const installed = await git(["lfs", "version"], { cwd: mirror.path, signal });
  if (installed.code !== 0) throw unavailable("git-lfs is not installed on the worker.", "Install git-lfs there.");
  if (!mirror.named && !mirror.local) {
    const reason =
      "Files in LFS are fetched only from hosts that the operator has named, since their servers name others.";
    throw unavailable(reason, "Add the host to OFFSTAGE_FORGES (docs/forges.md).");
  }
  const isHttp = /^https?:/u.test(mirror.url);
  const address = mirror.local ? `file://${encodeURI(mirror.url)}` : mirror.url;
  return {
    ...(await remoteOptions(mirror, signal)),
    settings: {
      "remote.origin.url": address,
      "lfs.storage": lfsStore(mirror.path),
      "lfs.locksverify": "false",
      "lfs.transfer.maxretries": "3",
      "lfs.skipdownloaderrors": "false",
      "lfs.tustransfers": "false",
      ...(isHttp && {
        "lfs.url": `${mirror.url.replace(/\.git$/u, "")}.git/info/lfs`,
        "lfs.pushurl": `${mirror.url.replace(/\.git$/u, "")}.git/info/lfs`,
        "lfs.basictransfersonly": "true",
      }),
    },
  };
}

/** What only the operator can change. */
function unavailable(reason: string, remedy: string): SessionError {
  return new SessionError({ code: "repository_unreachable", reason, retryable: true, passing: false, remedy });
}

function tooLarge(url: string, bytes: number): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `The files in LFS of the repository ${url} take more than ${Math.floor(bytes / 1024 ** 2)} MB, and their download was stopped.`,
    retryable: false,
    remedy: "If they are really that large, raise OFFSTAGE_FETCH_MB.",
  });
}
