import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { RunError } from "../../domain/errors.ts";
import type { GitCredentials } from "../../forges/forge.ts";
import { startProcess } from "../../sandboxes/process/process.ts";
import type { SandboxedProcess } from "../../sandboxes/sandbox.ts";
import type { PinnedHost } from "./remote-address.ts";

export interface GitOptions {
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** The remote that credentials are for; they reach this one process by its environment, and nothing else. */
  readonly remote?: {
    readonly url: string;
    readonly credentials: GitCredentials | null;
    /** Where alone its host is asked; null for one that the operator named. */
    readonly pinned: PinnedHost | null;
  };
  readonly local?: boolean;
  readonly onProgress?: (line: string) => void;
  /** What the process reads on stdin; nothing without it. */
  readonly input?: Readable;
  /** Of address space of each process that git makes of it; `looksWithBytes` without it. */
  readonly memoryBytes?: number;
  /** Of each file that it writes: the kernel ends what would write more (SIGXFSZ). */
  readonly fileBytes?: number;
  /** Folder for what it writes of objects, beside those that it reads in the repository. */
  readonly newObjects?: string;
  /** Takes stdout as it comes, of which nothing is kept then. */
  readonly onOutput?: (chunk: Buffer) => void;
  /** Bytes of stdout that are kept; what is beyond is dropped. */
  readonly maximumOutput?: number;
}

export interface GitResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly truncated: boolean;
}

/** git gives up on a connection that moves less than this for so long. */
const slowConnection = { "http.lowSpeedLimit": "1", "http.lowSpeedTime": "120" };
/** The same of ssh, which would wait for hours. */
const sshLimits = "-oConnectTimeout=30 -oServerAliveInterval=15 -oServerAliveCountMax=8";
/** What a repository names as a hook or a watcher is not started. */
const startsNothing = { "core.hooksPath": "/dev/null", "core.fsmonitor": "false" };
const alwaysOff = {
  ...startsNothing,
  "gc.auto": "0",
  "maintenance.auto": "false",
  "credential.helper": "",
};

/**
 * Runs git in a repository of the service's own: never in one that an agent could write to.
 * No settings of the machine are read, and nothing is asked on a terminal.
 */
export async function git(parameters: readonly string[], options: GitOptions): Promise<GitResult> {
  const child = startGit(parameters, options);
  // Where git stops reading early, its exit code and words say why.
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
  };
}

/** As `git`, for what is read while it runs: the caller reads all of its output, or ends it. */
export function startGit(
  parameters: readonly string[],
  options: Omit<GitOptions, "input" | "onProgress" | "onOutput" | "maximumOutput">,
): SandboxedProcess {
  const [program, ...before] = boundedGit(options);
  return startProcess(
    program ?? "git",
    [...before, ...parameters],
    { environment: environmentOf(options), signal: options.signal },
    {
      cwd: options.cwd,
      endsDescendants: false,
    },
  );
}

/**
 * Address space of one git, whose objects strangers made: a few bytes of them can stand for endless folders, or for a file that
 * is larger than the machine's memory. Enough for what people make: trees of a million files and patches of hundreds of
 * megabytes.
 */
export const looksWithBytes = 4 * 1024 ** 3;

/** git through a shell, which sets the bounds; a system without one of them, as macOS, is without it. */
function boundedGit({ memoryBytes = looksWithBytes, fileBytes }: GitOptions): string[] {
  // In blocks of 512 bytes (POSIX), and in KiB.
  const ofFiles = fileBytes === undefined ? "" : `ulimit -f ${Math.floor(fileBytes / 512)}; `;
  const ofMemory = `ulimit -v ${Math.floor(memoryBytes / 1024)} 2> /dev/null; `;
  const shell = ["/bin/sh", "-c", `${ofFiles}${ofMemory}exec git "$@"`, "sh"];
  // Packs are looked at in windows, which may not take all of it.
  return [...shell, "-c", "core.packedGitWindowSize=32m", "-c", "core.packedGitLimit=256m"];
}

/**
 * Whether git ended because it wanted more memory than it may have.
 * @param stderr what it said, of which lines of the remote's own do not count
 */
export function wantedMemory(stderr: string): boolean {
  const own = stderr.split(/[\r\n]/u).filter((line) => !line.startsWith("remote:"));
  return /out of memory|cannot allocate memory/iu.test(own.join("\n"));
}

/**
 * As `git`, for what can't fail unless something is broken.
 * @throws RunError resources_exhausted if it needs more memory than it may have; Error with git's words
 */
export async function mustGit(parameters: readonly string[], options: GitOptions): Promise<string> {
  const { code, stdout, stderr } = await git(parameters, options);
  if (code !== 0 && wantedMemory(stderr)) throw tooMuchMemory(parameters[0] ?? "", options);
  if (code !== 0) throw new Error(`git ${parameters[0]} failed: ${stderr.trim().slice(-2_000)}`);
  return stdout.trim();
}

function tooMuchMemory(command: string, { memoryBytes = looksWithBytes }: GitOptions): RunError {
  return new RunError({
    code: "resources_exhausted",
    reason: `git ${command} needed more than ${Math.floor(memoryBytes / 1024 ** 2)} MB of memory for what is in the repository, and was stopped.`,
    retryable: false,
    mend: "Name a branch or a repository without files and folders of that size.",
  });
}

/** The first git that can be held to an address (`http.curloptResolve`); an older one takes no notice of it. */
const firstHeld = [2, 37] as const;

/** Whether this version of git, as it tells it, can be held to an address over HTTP. */
export function canBeHeld(version: string): boolean {
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/u.exec(version) ?? []).slice(1).map(Number);
  return major > firstHeld[0] || (major === firstHeld[0] && minor >= firstHeld[1]);
}

/** @throws RunError where git would look the host's name up once more, and ask whatever it leads to by then */
export async function requireHeldGit(options: GitOptions): Promise<void> {
  const version = await mustGit(["--version"], options);
  if (canBeHeld(version)) return;
  throw new RunError({
    code: "repository_unreachable",
    reason: `The repository's host is none that the operator named, and this worker's git is too old to be held to its address (${version}).`,
    retryable: false,
    mend: "Install git 2.37 or newer on the worker, or add the host to OFFSTAGE_FORGES (docs/forges.md).",
  });
}

/** Lets one byte more than the limit through, by which the caller sees that there was more; drains the rest. */
async function* bounded(source: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Buffer> {
  let passed = 0;
  for await (const chunk of source) {
    if (passed <= limit) yield chunk.subarray(0, limit + 1 - passed);
    passed += chunk.length;
  }
}

function environmentOf({ remote, local, cwd, newObjects }: GitOptions): Record<string, string> {
  const settings: Record<string, string> = { ...alwaysOff, ...slowConnection };
  if (remote?.credentials != null) {
    const { username, password } = remote.credentials;
    const encoded = Buffer.from(`${username}:${password}`).toString("base64");
    settings[`http.${new URL(remote.url).origin}/.extraHeader`] = `Authorization: Basic ${encoded}`;
    // A redirect would take the header to another host.
    settings["http.followRedirects"] = "false";
  }
  const pinned = remote?.pinned ?? null;
  if (pinned !== null) {
    const address = pinned.address.includes(":") ? `[${pinned.address}]` : pinned.address;
    settings["http.curloptResolve"] = `${pinned.host}:${pinned.port}:${address}`;
    // A redirect would lead to what was not looked at.
    settings["http.followRedirects"] = "false";
  }
  return {
    PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    // ssh finds the operator's keys and known hosts there; git's own settings in it are not read.
    HOME: process.env["HOME"] ?? "/",
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "",
    GIT_SSH_COMMAND: `ssh -oBatchMode=yes -oStrictHostKeyChecking=accept-new ${sshLimits}${pinned === null ? "" : ` -oHostName=${pinned.address} -oHostKeyAlias=${pinned.host}`}`,
    GIT_ALLOW_PROTOCOL: local === true ? "http:https:ssh:file" : "http:https:ssh",
    GIT_NO_REPLACE_OBJECTS: "1",
    ...(newObjects !== undefined && {
      GIT_OBJECT_DIRECTORY: newObjects,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(cwd, "objects"),
    }),
    ...settingVariables(settings),
  };
}

/** The environment's way of giving git settings, which come before those of any file. */
function settingVariables(settings: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(settings);
  const numbered = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(entries.length), ...(Object.fromEntries(numbered) as Record<string, string>) };
}

/** Environment of a command of ours inside the sandbox, which may run git in what an agent left. */
export function insideVariables(home: string): Record<string, string> {
  return { HOME: home, LC_ALL: "C.UTF-8", ...settingVariables(startsNothing) };
}

/** Whom git names as author and committer of what it commits. */
export function authorVariables({ name, email }: { readonly name: string; readonly email: string }) {
  return { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email };
}

/** What git's words about a remote mean to the user. */
export function remoteError(url: string, stderr: string): RunError {
  const said = stderr.trim().split("\n").slice(-3).join(" ").slice(-500);
  if (/not found|does not exist|does not appear to be a git repository|returned error: 404/iu.test(stderr)) {
    return new RunError({
      code: "repository_not_found",
      reason: `The repository ${url} was not found, or the configured token may not see it.`,
      retryable: false,
      mend: "Check the address; for a private repository give the server a token that can read it.",
    });
  }
  if (/returned error: 30[1278]/u.test(stderr)) {
    return new RunError({
      code: "repository_not_found",
      reason: `The repository ${url} is elsewhere: its server answered with a redirect, which is not followed.`,
      retryable: false,
      mend: "Start a session with the repository's new address: it was moved or renamed, or its address begins with https://.",
    });
  }
  if (
    /authentication failed|could not read username|returned error: 40[13]|permission denied|access denied/iu.test(
      stderr,
    )
  ) {
    return new RunError({
      code: "repository_access_denied",
      reason: `The repository ${url} refused access.`,
      retryable: false,
      mend: "Give the server a token for this forge that can read and write the repository (docs/forges.md).",
    });
  }
  return new RunError({
    code: "repository_unreachable",
    reason: `The repository ${url} could not be reached: ${said}`,
    retryable: true,
    mend: "Check the host's name and that the server can reach it, then retry.",
  });
}
