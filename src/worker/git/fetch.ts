import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RunError } from "../../domain/errors.ts";
import { watchUsage } from "../../sandboxes/process/watch.ts";
import { git, remoteError, wantedMemory, type GitOptions } from "./git.ts";

/** What one fetch from a repository's host may take. */
export interface FetchLimits {
  /** Of what is written to the disk. */
  readonly bytes: number;
  /** Of each process of git's: what was sent small may unpack to any size. */
  readonly memoryBytes: number;
  readonly ms: number;
}

/** Of a folder in a mirror in which a fetch keeps its objects until all are there. */
export const fetchPrefix = "offstage-fetch-";
/** A server that keeps to git's protocol sends one pack; one that does not may send each object as a file. */
const mostFiles = 200_000;

export interface Fetch {
  /** Path of the mirror. */
  readonly mirror: string;
  readonly url: string;
  /** With `refs/heads/` before it. */
  readonly ref: string;
  readonly limits: FetchLimits;
  /** Of the remote that is asked. */
  readonly options: GitOptions;
}

/**
 * Brings a branch's objects into the mirror, but no name of them. Its host decides what it sends and for how long, so it is
 * written into a folder of its own first: nothing is left of a fetch that was stopped, and nobody sees half of one.
 * @throws RunError resources_exhausted, repository_*
 */
export async function fetchObjects({ mirror, url, ref, limits, options }: Fetch): Promise<void> {
  const folder = join(mirror, `${fetchPrefix}${randomBytes(8).toString("hex")}`);
  const tooMuch = new AbortController();
  const overtime = AbortSignal.timeout(limits.ms);
  const watch = watchUsage({
    limits: { diskBytes: limits.bytes, files: mostFiles },
    folders: [folder],
    pids: null,
    onExceeded: () => tooMuch.abort(tooLarge(url, limits)),
  });
  try {
    await mkdir(join(folder, "pack"), { recursive: true });
    const { code, stderr } = await git(
      // One pack, however few objects: what is small as a pack may be endless as files of its own.
      ["-c", "fetch.unpackLimit=1", "fetch", "--no-tags", "--progress", "--no-write-fetch-head", url, ref],
      {
        ...options,
        signal: AbortSignal.any([options.signal, tooMuch.signal, overtime]),
        newObjects: folder,
        fileBytes: limits.bytes,
        memoryBytes: limits.memoryBytes,
      },
    );
    if (code !== 0) throw await fetchError(folder, stderr, { url, limits });
    await moveObjects(folder, join(mirror, "objects"));
  } catch (error) {
    if (overtime.aborted && error === overtime.reason) throw tooLong(url, limits);
    throw error;
  } finally {
    watch.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function fetchError(
  folder: string,
  stderr: string,
  { url, limits }: Pick<Fetch, "url" | "limits">,
): Promise<RunError> {
  if (await hasFullFile(folder, limits)) return tooLarge(url, limits);
  return wantedMemory(stderr) ? tooMuchMemory(url, limits) : remoteError(url, stderr);
}

/** The kernel lets a file grow to the bound and no further. */
async function hasFullFile(folder: string, { bytes }: FetchLimits): Promise<boolean> {
  const largest = Math.floor(bytes / 512) * 512;
  for (const path of await filesBelow(folder)) {
    const { size } = await stat(join(folder, path));
    if (size >= largest) return true;
  }
  return false;
}

/** An index last: with it, git takes its pack for whole. */
async function moveObjects(from: string, to: string): Promise<void> {
  const paths = await filesBelow(from);
  for (const path of [
    ...paths.filter((each) => !each.endsWith(".idx")),
    ...paths.filter((each) => each.endsWith(".idx")),
  ]) {
    await mkdir(dirname(join(to, path)), { recursive: true });
    await rename(join(from, path), join(to, path));
  }
}

/** Packs and objects; not what git or its protocol kept beside them for itself. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

function tooLarge(url: string, { bytes }: FetchLimits): RunError {
  return new RunError({
    code: "resources_exhausted",
    reason: `The repository ${url} sent more than ${Math.floor(bytes / 1024 ** 2)} MB in one fetch, which was stopped.`,
    retryable: false,
    mend: "If the repository is really that large, raise OFFSTAGE_FETCH_MB.",
  });
}

function tooMuchMemory(url: string, { memoryBytes }: FetchLimits): RunError {
  return new RunError({
    code: "resources_exhausted",
    reason: `git needed more than ${Math.floor(memoryBytes / 1024 ** 2)} MB of memory for what the repository ${url} sent, and was stopped.`,
    retryable: false,
    mend: "If the repository is really that large, raise OFFSTAGE_FETCH_MEMORY_MB.",
  });
}

function tooLong(url: string, { ms }: FetchLimits): RunError {
  return new RunError({
    code: "repository_unreachable",
    reason: `The fetch from the repository ${url} took more than ${Math.round(ms / 60_000)} minutes, and was stopped.`,
    retryable: true,
    mend: "Retry when its host is quicker; if the repository is really that large, raise OFFSTAGE_FETCH_MINUTES.",
  });
}
