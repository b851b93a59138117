import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { shellQuote } from "../../programs/shell-quote.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import { programText } from "../../programs/program-text.ts";
import { diskUsage } from "../../sandboxes/process/disk-usage.ts";
import { watchUsage } from "../../sandboxes/process/watch.ts";
import { git, mustGit, tooSlow, withinMs, type GitOptions, type GitResult } from "./git.ts";
import { remoteError } from "./remote-error.ts";
import { remoteOptions, transferLimits, type Mirror } from "./mirror.ts";
import { sparseCommit } from "./sparse-checkout.ts";

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

/** Path of the mark of a content in a mirror's store that a session made, and of which nobody knows that the remote has it. */
function madeMark(store: string, oid: string): string {
  return join(store, "made", oid);
}

/** Marks a content that a session made. To be called before the content is in the store. */
export async function markMade(store: string, oid: string): Promise<void> {
  await mkdir(join(store, "made"), { recursive: true });
  await writeFile(madeMark(store, oid), "");
}

/** Whether the remote has a content, as far as a mirror's store knows: it came from there, or was uploaded. */
export function isOnServer(store: string, oid: string): boolean {
  return existsSync(lfsPath(store, oid)) && !existsSync(madeMark(store, oid));
}

/** Receives git-lfs's progress, a line at a time. */
type OnProgress = (line: string) => void;

/** Which contents a folder needs, besides its commit. */
interface FolderContents {
  /** Path of the repository that has the commit; the mirror itself if omitted. */
  readonly repository?: string;
  /** Folders that are checked out; everything if omitted or empty. Contents of other files are not fetched. */
  readonly sparse?: readonly string[];
  /** Files that are checked out besides. */
  readonly paths?: readonly string[];
  readonly onProgress?: OnProgress;
}

/**
 * Makes a fresh clone ready for files in LFS: sets the filter by which the next checkout writes their contents into the folder, and
 * by which git stores pointers for what an agent changes, and fetches the contents into the mirror's store. A repository without
 * such files gets the filter too: the agent may put some there, and git stores the whole content if the filter is missing.
 * @param clone path of the clone, in which nothing is checked out yet
 * @returns why the folder will have pointers instead of contents, as a sentence; null if it will have the contents, or if no file
 *   of the commit is in LFS
 */
export async function prepareLfs(
  mirror: Mirror,
  clone: string,
  sha: string,
  signal: AbortSignal,
  more: Omit<FolderContents, "repository"> = {},
): Promise<string | null> {
  await setFilter(mirror.path, { cwd: clone, signal });
  return fetchForFolder(mirror, sha, signal, more);
}

/**
 * Fetches the contents of a commit's files in LFS into the mirror's store, for a folder into which the commit is to be checked out.
 * @returns as `prepareLfs`
 * @throws SessionError repository_* that passes by itself
 */
export async function fetchForFolder(
  mirror: Mirror,
  sha: string,
  signal: AbortSignal,
  from: FolderContents = {},
): Promise<string | null> {
  if (!(await usesLfs(from.repository ?? mirror.path, [sha], signal))) return null;
  try {
    const { repository = mirror.path, sparse = [], paths = [] } = from;
    const wanted = await sparseCommit({ folders: sparse, paths }, sha, { cwd: repository, signal });
    await fetchContents(mirror, wanted, signal, from);
    return null;
  } catch (error) {
    signal.throwIfAborted();
    // What passes is waited for: the agent would work on pointers.
    if (!(error instanceof SessionError) || error.passing) throw error;
    return `${error.message} ${error.remedy}`;
  }
}

/** Where git looks for attributes. */
const attributes = [":(glob).gitattributes", ":(glob)**/.gitattributes"];

/** Whether the attributes of one of the commits put files into LFS. @param repository its path */
export async function usesLfs(repository: string, commits: readonly string[], signal: AbortSignal): Promise<boolean> {
  const search = ["grep", "--quiet", "--text", "--fixed-strings", "filter=lfs", ...commits, "--", ...attributes];
  return (await git(search, { cwd: repository, signal })).code === 0;
}

/** Most commits that are asked for their attributes. */
const mostAsked = 1_000;

/** Whether the attributes of a commit, of the known ones, or of one between them that changes attributes put files into LFS. */
export async function workUsesLfs(
  repository: string,
  head: string,
  known: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  if (await usesLfs(repository, [head, ...known], signal)) return true;
  const list = ["rev-list", "--full-history", `--max-count=${mostAsked}`, head, "--not", ...known];
  const changing = await mustGit([...list, "--", ...attributes], { cwd: repository, signal });
  return changing !== "" && (await usesLfs(repository, changing.split("\n"), signal));
}

/** Sets git's filter in a clone that no agent has seen yet. */
async function setFilter(mirror: string, clone: GitOptions): Promise<void> {
  await mustGit(["config", "filter.lfs.process", filterCommand(mirror)], clone);
  // Without its filter git would store the whole content.
  await mustGit(["config", "filter.lfs.required", "true"], clone);
}

/**
 * The shell command of git's filter for files in LFS, to be set as `filter.lfs.process`. git prefers it to other filters: a git-lfs
 * that is installed for all users of an image (`git lfs install --system`) would ask the server, without a credential, for what the
 * mirror has.
 * @param mirror its path
 */
export function filterCommand(mirror: string): string {
  // An image may have its own Node, and this one may be gone after an upgrade.
  const node = `node=${shellQuote(process.execPath)}; [ -x "$node" ] || node=node; unset NODE_OPTIONS; exec "$node" --no-warnings`;
  const program = `${pipeFunctions()}\n${programText(import.meta.url, "lfs-filter.cjs")}`;
  return `${node} -e ${shellQuote(program)} -- ${shellQuote(lfsStore(mirror))}`;
}

/** The function `untilReady`, for programs that read or write pipes: it goes before their text. */
export const pipeFunctions = (): string => programText(import.meta.url, "until-ready.cjs");

/**
 * Downloads the contents of a commit's files by git-lfs. What the server has is kept also if it lacks others.
 * @param from.repository path of the repository that has the commit, out of every agent's reach; the mirror itself if omitted
 * @throws SessionError repository_*, resources_exhausted
 */
export async function fetchContents(
  mirror: Mirror,
  sha: string,
  signal: AbortSignal,
  { repository = mirror.path, onProgress }: { readonly repository?: string; readonly onProgress?: OnProgress } = {},
): Promise<void> {
  const options = { ...(await lfsOptions(mirror, signal)), cwd: repository };
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
  const output = readOutput(onProgress);
  try {
    const { code, stderr } = await withinMs(
      ms,
      {
        ...options,
        signal: AbortSignal.any([options.signal, tooMuch.signal]),
        fileBytes: bytes,
        onOutput: output.read,
        settings: { ...options.settings, "lfs.forceprogress": "true" },
      },
      () => tooSlow(mirror.url, "download of files in LFS from", ms),
      (bounded) => git(["lfs", "fetch", "origin", sha], bounded),
    );
    const words = output.words();
    if (code !== 0) throw remoteError(mirror.url, `${words}\n${stderr}`);
  } finally {
    watch.stop();
  }
}

/** The names of all contents that a commit's files have in LFS; null if git-lfs can't tell. @param repository its path */
export async function namesInLfs(repository: string, sha: string, signal: AbortSignal): Promise<string[] | null> {
  const { code, stdout } = await git(["lfs", "ls-files", "--long", sha], { cwd: repository, signal });
  return code === 0 ? [...stdout.matchAll(/^[0-9a-f]{64}(?= [*-] )/gmu)].map(([oid]) => oid) : null;
}

/** Most characters of git-lfs's words that are kept. */
const keptWords = 20_000;

/** Tells the progress in git-lfs's stdout from its words, of which the end is kept. */
function readOutput(onProgress: OnProgress = () => undefined) {
  let words = "";
  let rest = "";
  const take = (line: string): void => {
    const text = line.trim();
    if (text.startsWith("Downloading LFS objects: ")) onProgress(text);
    else if (text !== "") words = `${words}${text}\n`.slice(-keptWords);
  };
  return {
    read(chunk: Buffer): void {
      const lines = `${rest}${chunk.toString("utf8")}`.split(/[\r\n]/u);
      rest = lines.pop()?.slice(-keptWords) ?? "";
      for (const line of lines) take(line);
    },
    /** To be called when all was read: git-lfs ends its last line with nothing. */
    words(): string {
      take(rest);
      rest = "";
      return words;
    },
  };
}

/**
 * Uploads contents from the mirror's store by git-lfs.
 * @param isFork whether the mirror's remote is a fork: the repository itself then does not have them
 * @throws SessionError push_rejected, repository_*
 */
export async function uploadContents(
  mirror: Mirror,
  oids: readonly string[],
  signal: AbortSignal,
  isFork = false,
): Promise<void> {
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
        if (isFork) continue;
        for (const oid of some) await rm(madeMark(lfsStore(mirror.path), oid), { force: true });
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
