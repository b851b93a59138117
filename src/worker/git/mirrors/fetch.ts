import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SessionError } from "../../../domain/errors/errors.ts";
import { watchUsage } from "../../../sandboxes/process/watch.ts";
import { diskFilled, git, tooSlow, wantedMemory, withinMs, type GitOptions, type GitResult } from "../git.ts";
import { OtherFormatError, remoteError } from "../remote-error.ts";
import { completed, lacksObjects } from "./mend.ts";

/** Limits of one fetch from a repository's host. */
export interface FetchLimits {
  /** Most bytes written to the disk. */
  readonly bytes: number;
  /** Address space of each git process, in bytes: a small download may unpack to any size. */
  readonly memoryBytes: number;
  /** Most time, in ms. */
  readonly ms: number;
}

/** Prefix of the folder in a mirror in which a fetch collects its objects until all have arrived. */
export const fetchPrefix = "offstage-fetch-";
/** Name of a file in a mirror that is to be removed as soon as no session borrows from it. */
export const outdatedMark = "offstage-outdated";
/**
 * Bound on the files of one fetch. A server that follows git's protocol sends one pack; another may send each object as a file.
 */
const mostFiles = 200_000;

/** The refs to fetch, and the options. */
export interface Fetch {
  /** Path of the mirror. */
  readonly mirror: string;
  readonly url: string;
  /** Full names of refs, with `refs/heads/`, or of commits. */
  readonly ref: string | readonly string[];
  readonly limits: FetchLimits;
  /** Options with the remote's credentials and pinned address. */
  readonly options: GitOptions;
}

/**
 * Fetches a branch's objects into the mirror, without a ref. The remote decides what it sends and for how long, so the objects
 * go into a separate folder first: a stopped fetch leaves nothing behind, and no process sees half of one.
 * @throws SessionError resources_exhausted, repository_*; ENOSPC if the disk is nearly full
 */
export async function fetchObjects({ mirror, url, ref, limits, options }: Fetch): Promise<void> {
  const folder = join(mirror, `${fetchPrefix}${randomBytes(8).toString("hex")}`);
  const tooMuch = new AbortController();
  const watch = watchUsage({
    limits: { diskBytes: limits.bytes, files: mostFiles },
    folders: [folder],
    pids: null,
    onExceeded: (_, isMachines) => tooMuch.abort(isMachines ? diskFilled(url) : tooLarge(url, limits)),
  });
  try {
    await mkdir(join(folder, "pack"), { recursive: true });
    // Always one pack: what is small as a pack may be huge as loose objects.
    const into = ["-c", "fetch.unpackLimit=1", "fetch", "--no-tags", "--progress", "--no-write-fetch-head"];
    const isLacking = lacksObjects(mirror);
    // A commit that is there says nothing of what it needs.
    if (isLacking) into.push("--refetch");
    const { code, stderr, retryAfterMs } = await withinMs(
      limits.ms,
      { ...options, signal: AbortSignal.any([options.signal, tooMuch.signal]) },
      () => tookTooLong(url, limits),
      (bounded) =>
        git([...into, url, ...[ref].flat()], {
          ...bounded,
          newObjects: folder,
          fileBytes: limits.bytes,
          memoryBytes: limits.memoryBytes,
        }),
    );
    if (code !== 0) {
      const error = await fetchError(folder, { stderr, retryAfterMs }, { url, limits });
      if (error instanceof OtherFormatError) await writeFile(join(mirror, outdatedMark), "");
      throw error;
    }
    if (shallowRoots.test(stderr)) throw cutOff(url);
    await moveObjects(folder, join(mirror, "objects"));
    if (isLacking) await completed(mirror);
  } finally {
    watch.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A fetch begins from nothing each time: one that takes too long is tried again a few times, and not for hours. */
function tookTooLong(url: string, { ms }: FetchLimits): SessionError {
  return new SessionError({ ...tooSlow(url, "fetch from", ms).failure, code: "resources_exhausted", passing: true });
}

async function fetchError(
  folder: string,
  { stderr, retryAfterMs }: Pick<GitResult, "stderr" | "retryAfterMs">,
  { url, limits }: Pick<Fetch, "url" | "limits">,
): Promise<SessionError> {
  if (await hasFullFile(folder, limits)) return tooLarge(url, limits);
  return wantedMemory(stderr) ? tooMuchMemory(url, limits) : remoteError(url, stderr, retryAfterMs);
}

/** Whether a file reached the size at which the kernel stops it (RLIMIT_FSIZE, in blocks of 512 bytes). */
async function hasFullFile(folder: string, { bytes }: FetchLimits): Promise<boolean> {
  const largest = Math.floor(bytes / 512) * 512;
  for (const path of await filesBelow(folder)) {
    const { size } = await stat(join(folder, path));
    if (size >= largest) return true;
  }
  return false;
}

/** Moves the objects into the mirror, indexes last: git uses a pack as soon as its index is there. */
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

/** Paths of packs and loose objects below a folder. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** git's words about a remote whose history is cut off (git-clone(1), --depth); it fetches its commits all the same, without their parents. */
const shallowRoots = /^warning: rejected .* because shallow roots are not allowed to be updated/mu;

function cutOff(url: string): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The repository ${url} has only the newest part of its history: it is a shallow clone of another, on which no work can be built.`,
    retryable: false,
    remedy:
      "Name the repository that it was cloned from, or have its host fetch the rest (`git fetch --unshallow`), then retry.",
  });
}

function tooLarge(url: string, { bytes }: FetchLimits): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `The repository ${url} sent more than ${Math.floor(bytes / 1024 ** 2)} MB in one fetch, which was stopped.`,
    retryable: false,
    remedy: "If the repository is really that large, raise OFFSTAGE_FETCH_MB.",
  });
}

function tooMuchMemory(url: string, { memoryBytes }: FetchLimits): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `git needed more than ${Math.floor(memoryBytes / 1024 ** 2)} MB of memory for what the repository ${url} sent, and was stopped.`,
    retryable: false,
    remedy: "If the repository is really that large, raise OFFSTAGE_FETCH_MEMORY_MB.",
  });
}
