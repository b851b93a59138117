import { lstat, mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SessionError } from "../../domain/errors/errors.ts";
import { addCheckout, whileWithin } from "../disk/checkout-size.ts";
import { mustGit, type GitOptions } from "../git/git.ts";
import { gitlinksIn, resolveSubmoduleUrl, submoduleUrls, type Gitlink } from "../git/gitmodules.ts";
import { initFormat } from "../git/object-format.ts";
import { fetchForFolder, setFilter } from "../git/lfs/lfs.ts";
import { ensureMirror } from "../git/mirrors/make-mirror.ts";
import { fetchCommit } from "../git/mirrors/fetch-commits.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import type { RemoteRepository, Submodule } from "../git/remote-repository.ts";
import { reportLines, type ReportProgress, type Room } from "./create-clone.ts";

/** Bounds on what one clone brings along, since anyone who may push decides it. */
const mostSubmodules = 100;
const deepest = 5;

/** The folder of one clone's submodules, and how they are reached. */
export interface SubmoduleRequest {
  /** Path of the session's clone, which no agent has seen yet. */
  readonly folder: string;
  /** The commit that is checked out there. */
  readonly headSha: string;
  readonly remote: Pick<RemoteRepository, "url" | "submodule">;
  readonly mirrors: Mirrors;
  readonly room: Room;
  readonly progress?: ReportProgress;
  readonly signal: AbortSignal;
}

/** A clone whose submodules are searched for. */
interface Superproject {
  /** Its path in the session's clone; empty for that itself. */
  readonly path: string;
  readonly url: string;
  readonly sha: string;
  readonly depth: number;
}

/**
 * Checks out the submodules of a fresh clone at their recorded commits, and theirs. Each is a separate repository with
 * only that commit: it borrows nothing, so it needs no mirror later on.
 * @returns the first 100, also those that could not be fetched, with the reason; one more stands for the others
 * @throws SessionError resources_exhausted if they do not fit on the session's disk; the reason of the signal
 */
export async function addSubmodules(request: SubmoduleRequest): Promise<Submodule[]> {
  const { folder, headSha, remote, signal } = request;
  const found: Submodule[] = [];
  /** Of those beyond the bound, which are in no record: how many, and one of them. */
  let leftOut = 0;
  let first: Pick<Submodule, "path" | "sha"> | null = null;
  const left: Superproject[] = [{ path: "", url: remote.url, sha: headSha, depth: 1 }];
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const options = { cwd: join(folder, next.path), signal, mayBeOthers: true };
    const { links, count } = await gitlinksIn(options, mostSubmodules + 1);
    if (count === 0) continue;
    leftOut += Math.max(0, found.length + count - mostSubmodules);
    const urls = await submoduleUrls(options, next.sha);
    for (const link of links) {
      const path = join(next.path, link.path);
      if (found.length >= mostSubmodules) {
        first ??= { path, sha: link.sha };
        break;
      }
      const bound = urls === null ? "its .gitmodules is larger than 1 MB" : boundOf(next.depth);
      const written = urls?.get(link.path) ?? null;
      const made =
        bound === null
          ? await addSubmodule(request, { ...link, path }, { superproject: next.url, written })
          : { url: null, problem: bound };
      found.push({ path, sha: link.sha, ...made });
      if (made.problem === null) left.push({ path, url: made.url, sha: link.sha, depth: next.depth + 1 });
    }
  }
  if (first === null) return found;
  const problem = `it is one of ${leftOut} submodules beyond the first ${mostSubmodules}, which are left out`;
  return [...found, { ...first, url: null, problem }];
}

function boundOf(depth: number): string | null {
  return depth > deepest ? `submodules are nested deeper than ${deepest}` : null;
}

/** A submodule as a commit of its superproject has it. */
export interface RecordedSubmodule extends Gitlink {
  /** Its address in .gitmodules; null if it is not there. */
  readonly written: string | null;
}

/** A submodule that was fetched, or the reason why not. */
export interface FetchedSubmodule extends Submodule {
  /** Index of its superproject in the list; null if that is the session's repository. */
  readonly within: number | null;
}

/**
 * Checks out submodules at commits that others recorded, and those in them, beside a clone that an agent has: each for itself, in
 * folders that are named by their indexes. As `addSubmodules` otherwise.
 * @param request.folder an empty folder, which no agent sees yet
 */
export async function fetchSubmodules(
  request: Omit<SubmoduleRequest, "headSha">,
  wanted: readonly RecordedSubmodule[],
): Promise<FetchedSubmodule[]> {
  const { folder, remote, signal } = request;
  const found: FetchedSubmodule[] = [];
  const left = wanted.map((one) => ({ ...one, superproject: remote.url, depth: 1, within: null as number | null }));
  for (let next = left.shift(); next !== undefined && found.length < mostSubmodules; next = left.shift()) {
    const { path, sha, written, superproject, depth, within } = next;
    const index = found.length;
    const at = String(index);
    await mkdir(join(folder, at));
    const problem = boundOf(depth);
    const made =
      problem === null
        ? await addSubmodule(request, { path, sha }, { superproject, written, at })
        : { url: null, problem };
    found.push({ path, sha, within, ...made });
    if (made.problem !== null) continue;
    const options = { cwd: join(folder, at), signal, mayBeOthers: true };
    const { links, count } = await gitlinksIn(options, mostSubmodules);
    const urls = count === 0 ? null : await submoduleUrls(options, sha);
    const inner = links.map((link) => ({
      path: join(path, link.path),
      sha: link.sha,
      written: urls?.get(link.path) ?? null,
      superproject: made.url,
      depth: depth + 1,
      within: index,
    }));
    left.push(...inner);
  }
  return found;
}

type Made =
  | { readonly url: string; readonly problem: null }
  | { readonly url: string | null; readonly problem: string };

async function addSubmodule(
  { folder, remote, mirrors, room, progress = () => undefined, signal }: Omit<SubmoduleRequest, "headSha">,
  { path, sha }: Gitlink,
  {
    superproject,
    written,
    at = path,
  }: { readonly superproject: string; readonly written: string | null; readonly at?: string },
): Promise<Made> {
  if (written === null) return { url: null, problem: "its address is not in .gitmodules" };
  const url = resolveSubmoduleUrl(superproject, written);
  if (url === null) return { url: null, problem: "its address leads above the root of its superproject's host" };
  const access = await remote.submodule?.(url);
  if (access === undefined) return { url: null, problem: "it is not looked for here" };
  if ("problem" in access) return { url: null, problem: access.problem };
  const place = join(folder, at);
  if (!(await isPlainFolder(folder, at))) return { url: access.url, problem: "its path is not an empty folder" };
  const mirror = mirrors.of(access);
  progress({ text: `Fetching the submodule ${path}` });
  return mirrors.use.whileUsed(mirror.path, async () => {
    try {
      await ensureMirror(mirror, signal);
      await fetchCommit(mirror, sha, (text) => progress({ text: text.slice(0, 200) }), signal);
    } catch (error) {
      signal.throwIfAborted();
      // A passing failure is waited for, but not on a host that only the repository names: it could block every
      // session.
      if (!(error instanceof SessionError) || (error.passing && mirror.named)) throw error;
      return { url: access.url, problem: `${error.message} ${access.hint}`.trim() };
    }
    try {
      const lfsProblem = await checkOut(mirror, place, { sha, url: access.url, progress }, room, signal);
      return { url: access.url, problem: null, lfsProblem };
    } catch (error) {
      // A path in it that can't be checked out.
      if (!(error instanceof SessionError) || error.code !== "repository_unreachable" || error.passing) throw error;
      for (const name of await readdir(place)) await rm(join(place, name), { recursive: true, force: true });
      return { url: access.url, problem: error.message };
    }
  });
}

/** Whether a path in the clone is an empty folder that is reached over folders alone: a link would lead elsewhere. */
async function isPlainFolder(folder: string, path: string): Promise<boolean> {
  const parts = path.split("/");
  for (const index of parts.keys()) {
    const found = await lstat(join(folder, ...parts.slice(0, index + 1))).catch(() => null);
    if (found === null || !found.isDirectory()) return false;
  }
  return (await readdir(join(folder, path))).length === 0;
}

/** @returns why files in LFS are pointers there */
async function checkOut(
  mirror: Mirror,
  place: string,
  { sha, url, progress }: { readonly sha: string; readonly url: string; readonly progress: ReportProgress },
  { disk, bounds, written }: Room,
  signal: AbortSignal,
): Promise<string | null> {
  // Twice: the files, and their objects, which are at most as large.
  await addCheckout(written, mirror.path, sha, bounds, signal);
  await addCheckout(written, mirror.path, sha, bounds, signal);
  await mustGit(["init", "--quiet", "--template=", initFormat(sha), place], { cwd: dirname(place), signal });
  // In a workspace that is an overlay the folder belongs to its owner already.
  const options: GitOptions = { cwd: place, signal, local: true, mayBeOthers: true };
  await setFilter(mirror.path, options);
  const lfsProblem = await fetchForFolder(mirror, sha, signal, { onProgress: reportLines(progress) });
  await whileWithin(disk, bounds, signal, async (watched) => {
    const within = { ...options, signal: watched, fileBytes: bounds.diskBytes };
    await mustGit(["fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", mirror.path, sha], within);
    await mustGit(["update-ref", "--no-deref", "HEAD", sha], options);
    await mustGit(["reset", "--quiet", "--hard", sha], within);
  });
  await mustGit(["remote", "add", "origin", url], options);
  await mustGit(["update-ref", "refs/remotes/origin/recorded", sha], options);
  return lfsProblem;
}
