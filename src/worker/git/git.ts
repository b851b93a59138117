import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import type { GitCredentials } from "../../forges/forge.ts";
import { startProcess } from "../../sandboxes/process/process.ts";
import type { SandboxedProcess } from "../../sandboxes/sandbox.ts";
import { headerTrace, readHeaderTrace, type HeaderTrace } from "./header-trace.ts";
import type { PinnedHost } from "./remote-address.ts";
import { sshVariables, usersSsh } from "./ssh.ts";
import type { GitTransport } from "./transport.ts";

/** How one git process runs. */
export interface GitOptions {
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** The remote to which the credentials belong. They reach only this process, through its environment. */
  readonly remote?: {
    readonly url: string;
    readonly credentials: GitCredentials | null;
    /** The only address at which the host is contacted; null for a host that the operator named. */
    readonly pinned: PinnedHost | null;
    /** How the operator lets git reach remotes; directly, with the system's certificates, if omitted. */
    readonly transport?: GitTransport;
  };
  /** Whether the remote may be a path on this machine. */
  readonly local?: boolean;
  /** Further settings of git, and of programs of git's, for this one process. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Whether git takes no repository for its own, whichever the folder is in. */
  readonly outsideRepositories?: boolean;
  /**
   * Whether the folder is that of a clone which may belong to another user already: git gets its repository's path, and then does not
   * ask whose it is (`safe.directory`, git-config(1)).
   */
  readonly mayBeOthers?: boolean;
  /** Folder that git takes for the working tree of a bare repository, and in which it runs. */
  readonly workTree?: string;
  /** Receives the last line of each piece of stderr. */
  readonly onProgress?: (line: string) => void;
  /** Content of stdin; empty if omitted. */
  readonly input?: Readable;
  /** Address space of each process that git starts, in bytes; `looksWithBytes` if omitted. */
  readonly memoryBytes?: number;
  /** Most bytes of each file that it writes: the kernel ends a process that writes more (SIGXFSZ). */
  readonly fileBytes?: number;
  /** Folder for new objects; existing ones are read from the repository too. */
  readonly newObjects?: string;
  /** Path of the index; the repository's own if omitted. */
  readonly indexFile?: string;
  /** Receives stdout as it arrives; the result's `stdout` is then empty. */
  readonly onOutput?: (chunk: Buffer) => void;
  /** Bytes of stdout that are kept; the rest is dropped. */
  readonly maximumOutput?: number;
}

/** How a git process ended. */
export interface GitResult {
  /** Exit code; -1 if a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  /** The last 20,000 characters. */
  readonly stderr: string;
  /** Whether stdout was longer than `maximumOutput`. */
  readonly truncated: boolean;
  /** How long the remote's last answer over HTTP asked to wait, in ms; null if it did not, or refused nothing that passes. */
  readonly retryAfterMs: number | null;
}

/** git aborts an HTTP transfer slower than 1 byte/s for 120 s. */
const slowConnection = { "http.lowSpeedLimit": "1", "http.lowSpeedTime": "120" };
/** From 2.54 on git can wait and ask again by itself, for a 429: the session waits in the queue instead, and holds no place meanwhile. */
const asksOnce = { "http.maxRetries": "0" };
/** Hooks and file system monitors that a repository configures are not started. */
const startsNothing = { "core.hooksPath": "/dev/null", "core.fsmonitor": "false" };
const alwaysOff = {
  ...startsNothing,
  "gc.auto": "0",
  "maintenance.auto": "false",
  "credential.helper": "",
};

/**
 * Runs git in one of Offstage's repositories, never in one that an agent could write to. No configuration of the machine is
 * read, and nothing is asked on a terminal.
 * @returns also if git failed: see `code`
 * @throws the reason of `options.signal` if it has aborted
 */
export async function git(parameters: readonly string[], options: GitOptions): Promise<GitResult> {
  const trace = readHeaderTrace();
  const child = launch(parameters, options, isHttp(options) ? trace : null);
  // If git stops reading early, its exit code and stderr say why.
  if (options.input === undefined) child.stdin.end();
  else pipeline(options.input, child.stdin).catch(() => undefined);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr = `${stderr}${chunk}`.slice(-20_000);
    const line = chunk.split(/[\r\n]/u).findLast((part) => part.trim() !== "");
    if (line !== undefined) options.onProgress?.(line.trim());
  });
  const { onOutput } = options;
  if (onOutput !== undefined) child.stdout.on("data", onOutput);
  const limit = onOutput === undefined ? (options.maximumOutput ?? Number.POSITIVE_INFINITY) : 0;
  const [output, { code }] = await Promise.all([buffer(bounded(child.stdout, limit)), child.exited]);
  options.signal.throwIfAborted();
  return {
    code: code ?? -1,
    stdout: output.toString("utf8", 0, Math.min(limit, output.length)),
    stderr,
    truncated: output.length > limit,
    retryAfterMs: trace.askedMs(),
  };
}

/**
 * Runs git with an overall limit of time, in addition to the limit on a slow transfer: a server that sends a byte now and then is never
 * slow enough for that one.
 * @throws what `overtime` makes, if the time has run out
 */
export async function withinMs<T>(
  limitMs: number,
  options: GitOptions,
  overtime: () => SessionError,
  run: (bounded: GitOptions) => Promise<T>,
): Promise<T> {
  const clock = AbortSignal.timeout(limitMs);
  try {
    return await run({ ...options, signal: AbortSignal.any([options.signal, clock]) });
  } catch (error) {
    if (clock.aborted && error === clock.reason) throw overtime();
    throw error;
  }
}

/**
 * The failure of a command that took longer than it may.
 * @param what the command as a noun, and its preposition: "push to"
 */
export function tooSlow(url: string, what: string, limitMs: number): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The ${what} the repository ${url} took more than ${Math.ceil(limitMs / 60_000)} min, and was stopped.`,
    retryable: true,
    remedy: "Retry when its host is quicker; if the repository is really that large, raise OFFSTAGE_FETCH_MINUTES.",
  });
}

/** The failure of what was stopped because it was about to fill the worker's disk, as if the system had said so. */
export function diskFilled(url: string): Error {
  const reason = `there is no room for what the repository ${url} sends: no space left on device`;
  return Object.assign(new Error(reason), { code: "ENOSPC" });
}

/** A failure of git in a repository that no agent can write to, with git's own words. */
export class GitError extends Error {
  readonly #said: string;

  /** @param command of git, such as `log`. @param stderr of git */
  constructor(command: string, stderr: string) {
    const said = stderr.trim().slice(-2_000);
    super(`git ${command} failed: ${said}`);
    this.#said = said;
  }

  /** The end of git's stderr. It is no property of its own, which a log would write beside the message. */
  get said(): string {
    return this.#said;
  }
}

/** Whether a repository has a commit. */
export async function hasCommit(sha: string, options: GitOptions): Promise<boolean> {
  return (await git(["cat-file", "-e", `${sha}^{commit}`], options)).code === 0;
}

/** Like `git`, for output that is read while git runs. The caller must read all of it, or kill the process. */
export function startGit(
  parameters: readonly string[],
  options: Omit<GitOptions, "input" | "onProgress" | "onOutput" | "maximumOutput">,
): SandboxedProcess {
  return launch(parameters, options, null);
}

function isHttp({ remote }: GitOptions): boolean {
  return remote !== undefined && /^https?:/u.test(remote.url);
}

/** @param trace receives the headers of HTTP; null: nobody does */
function launch(parameters: readonly string[], options: GitOptions, trace: HeaderTrace | null): SandboxedProcess {
  const [program, ...before] = boundedGit(options);
  return startProcess(
    program ?? "git",
    [...before, ...parameters],
    { environment: { ...environmentOf(options), ...(trace !== null && headerTrace(3)) }, signal: options.signal },
    {
      cwd: options.workTree ?? options.cwd,
      ends: "group",
      ...(trace !== null && { onReport: trace.read }),
    },
  );
}

/**
 * Address space of one git process, in bytes (4 GiB). The objects that it reads are untrusted: a few bytes can mean
 * endless folders, or for a file larger than the machine's memory. Enough for real repositories: trees of a million
 * files, and patches of hundreds of megabytes.
 */
export const looksWithBytes = 4 * 1024 ** 3;

/**
 * The command line of git in a shell that sets the limits. A system without one of the limits, such as macOS, runs without it.
 */
function boundedGit({ memoryBytes = looksWithBytes, fileBytes }: GitOptions): string[] {
  // `ulimit -f` counts blocks of 512 bytes (POSIX), `ulimit -v` KiB.
  const ofFiles = fileBytes === undefined ? "" : `ulimit -f ${Math.floor(fileBytes / 512)}; `;
  const ofMemory = `ulimit -v ${Math.floor(memoryBytes / 1024)} 2> /dev/null; `;
  const shell = ["/bin/sh", "-c", `${ofFiles}${ofMemory}exec git "$@"`, "sh"];
  // git maps packs in windows; smaller ones leave room within the limit.
  return [...shell, "-c", "core.packedGitWindowSize=32m", "-c", "core.packedGitLimit=256m"];
}

/**
 * Whether git failed because it needed more memory than its limit.
 * @param stderr of git; lines that the remote sent are ignored
 */
export function wantedMemory(stderr: string): boolean {
  const own = stderr.split(/[\r\n]/u).filter((line) => !line.startsWith("remote:"));
  return /out of memory|cannot allocate memory/iu.test(own.join("\n"));
}

/**
 * Like `git`, for commands that fail only if something is broken.
 * @returns stdout, trimmed
 * @throws SessionError resources_exhausted if it needs more memory than its limit, repository_unreachable if a commit has a path that
 *   can't be checked out; GitError otherwise
 */
export async function mustGit(parameters: readonly string[], options: GitOptions): Promise<string> {
  const { code, stdout, stderr } = await git(parameters, options);
  if (code !== 0 && wantedMemory(stderr)) throw tooMuchMemory(subcommandOf(parameters), options);
  const refused = code === 0 ? null : refusedPath(stderr);
  if (refused !== null) throw refused;
  if (code !== 0) throw new GitError(subcommandOf(parameters), stderr);
  return stdout.trim();
}

/**
 * Git's messages about files that can't be checked out on any disk: with the path, and the reason with a blank for it.
 */
const refusals = [
  // Names that lead into `.git` on some system (core.protectNTFS and core.protectHFS, git-config(1)).
  {
    said: /^(?:error|fatal): invalid path '([^]*?)'$/mu,
    why: "git refuses its path %, since on some systems such a name leads into git's own folder",
  },
  // NTFS counts 255 characters, others 255 bytes.
  {
    said: /^(?:error: unable to create file |fatal: cannot create directory at ')([^]*?)'?: File name too long$/mu,
    why: "the name of its file % is longer than the worker's file system allows",
  },
  // Linux reports an empty link target as a missing file.
  {
    said: /^error: unable to create symlink ([^]*?): (?:File name too long|No such file or directory)$/mu,
    why: "the target of its symbolic link % is empty, or longer than the worker's file system allows",
  },
];

/** The failure of a commit that can't be checked out for a path in it; null if git said nothing of the kind. @param stderr of git */
function refusedPath(stderr: string): SessionError | null {
  for (const { said, why } of refusals) {
    const path = said.exec(stderr)?.[1];
    if (path === undefined) continue;
    const shown = path.length > namedLength ? `${path.slice(0, namedLength)}…` : path;
    const name = JSON.stringify(shown.replace(/[\p{Cf}\p{Zl}\p{Zp}]/gu, "\uFFFD"));
    return new SessionError({
      code: "repository_unreachable",
      reason: `The repository can't be checked out: ${why.replace("%", () => name)}.`,
      retryable: false,
      remedy: "Change it in a commit, or name a branch without it; then start the session again.",
    });
  }
  return null;
}

/** Most characters of a path in a message. */
const namedLength = 300;

/** The command that git runs, for a message: the first parameter after options of git itself, of which two take a value. */
function subcommandOf(parameters: readonly string[]): string {
  const takesNext = (index: number): boolean => /^-[cC]$/u.test(parameters[index] ?? "");
  const isOption = (parameter: string, index: number): boolean => parameter.startsWith("-") || takesNext(index - 1);
  return parameters.find((parameter, index) => !isOption(parameter, index)) ?? parameters[0] ?? "";
}

function tooMuchMemory(command: string, { memoryBytes = looksWithBytes }: GitOptions): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `git ${command} needed more than ${Math.floor(memoryBytes / 1024 ** 2)} MB of memory for what is in the repository, and was stopped.`,
    retryable: false,
    remedy: "Name a branch or a repository without files and folders of that size.",
  });
}

/** Passes on one byte more than the limit, so that the caller can detect that output was cut off; drains the rest. */
async function* bounded(source: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Buffer> {
  let passed = 0;
  for await (const chunk of source) {
    if (passed <= limit) yield chunk.subarray(0, limit + 1 - passed);
    passed += chunk.length;
  }
}

function environmentOf({
  remote,
  local,
  cwd,
  newObjects,
  outsideRepositories,
  mayBeOthers,
  workTree,
  indexFile,
  settings: more,
}: GitOptions): Record<string, string> {
  const settings: Record<string, string> = { ...more, ...alwaysOff, ...slowConnection, ...asksOnce };
  if (remote?.credentials != null) {
    const { username, password } = remote.credentials;
    const encoded = Buffer.from(`${username}:${password}`).toString("base64");
    settings[`http.${new URL(remote.url).origin}/.extraHeader`] = `Authorization: Basic ${encoded}`;
    // A redirect would send the header to another host.
    settings["http.followRedirects"] = "false";
  }
  const pinned = remote?.pinned ?? null;
  if (pinned !== null) {
    const { host, port, address } = pinned;
    if (address !== null)
      settings["http.curloptResolve"] = `${host}:${port}:${address.includes(":") ? `[${address}]` : address}`;
    // A redirect would lead to an unchecked address.
    settings["http.followRedirects"] = "false";
  }
  return {
    PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    // ssh finds the user's keys and known hosts by the account, and other programs by this; git's settings in it are not read.
    HOME: process.env["HOME"] ?? "/",
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "",
    ...sshVariables(remote?.transport?.ssh ?? usersSsh, remote ?? null),
    GIT_ALLOW_PROTOCOL: local === true ? "http:https:ssh:file" : "http:https:ssh",
    GIT_NO_REPLACE_OBJECTS: "1",
    ...(indexFile !== undefined && { GIT_INDEX_FILE: indexFile }),
    ...(outsideRepositories === true && { GIT_DIR: join(cwd, "none") }),
    ...(mayBeOthers === true && { GIT_DIR: join(cwd, ".git"), GIT_WORK_TREE: cwd }),
    ...(workTree !== undefined && { GIT_DIR: cwd, GIT_WORK_TREE: workTree }),
    ...(newObjects !== undefined && {
      GIT_OBJECT_DIRECTORY: newObjects,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(cwd, "objects"),
    }),
    ...remote?.transport?.variables,
    ...settingVariables(settings),
  };
}

/** git configuration as environment variables (GIT_CONFIG_COUNT), which override every file. */
function settingVariables(settings: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(settings);
  const numbered = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(entries.length), ...(Object.fromEntries(numbered) as Record<string, string>) };
}

/**
 * Environment of a command of Offstage's inside the sandbox, which may run git in a repository that an agent changed.
 * @param home the session's home, as the command sees it
 */
export function sandboxGitVariables(home: string): Record<string, string> {
  // Line ends that git would change are no reason to refuse a file.
  return { HOME: home, LC_ALL: "C.UTF-8", ...settingVariables({ ...startsNothing, "core.safecrlf": "false" }) };
}

/** A name and an address, as commits have them. */
export interface Identity {
  readonly name: string;
  readonly email: string;
}

/** Environment that sets author and committer of git's commits. @param committer the author, if omitted */
export function authorVariables(author: Identity, committer: Identity = author) {
  return {
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    GIT_COMMITTER_NAME: committer.name,
    GIT_COMMITTER_EMAIL: committer.email,
  };
}
