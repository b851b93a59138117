import { mkdir, rm } from "node:fs/promises";
import { SessionError } from "../../../domain/errors/errors.ts";
import { programText } from "../../../programs/program-text.ts";
import { diskUsage } from "../../../sandboxes/process/disk-usage.ts";
import { watchUsage } from "../../../sandboxes/process/watch.ts";
import { diskFilled, git, tooSlow, withinMs, type GitOptions, type GitResult } from "../git.ts";
import { lfsError } from "./error.ts";
import { remoteOptions, transferLimits, type Mirror } from "../mirrors/mirror.ts";
import { lfsStore, madeMark } from "./store.ts";

/** Receives git-lfs's progress, a line at a time. */
export type OnProgress = (line: string) => void;

/** The function `untilReady`, for programs that read or write pipes: it goes before their text. */
export const pipeFunctions = (): string => programText(import.meta.url, "until-ready.cjs");

/**
 * Downloads the contents of a commit's files by git-lfs. What the server has is kept also if it lacks others.
 * @param from.repository path of the repository that has the commit, out of every agent's reach; the mirror itself if omitted
 * @throws SessionError repository_unreachable, repository_access_denied, resources_exhausted
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
    onExceeded: (_, isMachines) => tooMuch.abort(isMachines ? diskFilled(mirror.url) : tooLarge(mirror.url, bytes)),
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
      (bounded) => runLfs(mirror, ["fetch", "origin", sha], bounded, output.words),
    );
    if (code !== 0) throw lfsError(mirror.url, "fetched from", `${output.words()}\n${stderr}`);
  } finally {
    watch.stop();
  }
}

/** Most characters of git-lfs's words that are kept. */
const keptWords = 20_000;

/** Separates the progress in git-lfs's stdout from its messages, whose end is kept. */
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
        const { code, stdout, stderr } = await runLfs(mirror, ["push", "--object-id", "origin", ...some], bounded);
        if (code !== 0) throw lfsError(mirror.url, "uploaded to", `${stdout}\n${stderr}`);
        if (isFork) continue;
        for (const oid of some) await rm(madeMark(lfsStore(mirror.path), oid), { force: true });
      }
    },
  );
}

/** The message of git-lfs for a server's 401. */
const unauthenticated = /Authentication required|Authorization error|Git credentials for .* not found/iu;

/**
 * Runs git-lfs. If the server does not take the credentials any more and there are others by now, it runs again with those: a transfer
 * may take longer than a token is valid. What was transferred is not transferred again.
 * @param words of git-lfs, if the options take its stdout
 */
async function runLfs(
  mirror: Mirror,
  parameters: readonly string[],
  options: GitOptions,
  words = (): string => "",
): Promise<GitResult> {
  const result = await git(["lfs", ...parameters], options);
  if (result.code === 0 || !unauthenticated.test(`${words()}\n${result.stdout}\n${result.stderr}`)) return result;
  const { remote } = await remoteOptions(mirror, options.signal);
  const isSame = remote?.credentials?.password === options.remote?.credentials?.password;
  return isSame || remote === undefined ? result : runLfs(mirror, parameters, { ...options, remote }, words);
}

/** How many contents one command line names. */
const uploadedAtOnce = 500;

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

/** A failure that only the operator can fix. */
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
