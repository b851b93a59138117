import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import { programText } from "../../programs/program-text.ts";
import type { ResourceLimits, Sandbox } from "../../sandboxes/sandbox.ts";
import { authorVariables, git, sandboxGitVariables, mustGit, type GitOptions, type Identity } from "../git/git.ts";
import { filterCommand } from "../git/lfs.ts";
import { findOnRemote, type Mirror } from "../git/mirror.ts";
import { signCommits } from "../git/sign-commits.ts";
import type { Signer } from "../git/signer.ts";
import { sparseVariables } from "../git/sparse-checkout.ts";
import { limitBytes, TooLargeError } from "../sandboxed/byte-limit.ts";
import { runCommand } from "../sandboxed/run-command.ts";
import { runInSandbox } from "../sandboxed/run-in-sandbox.ts";
import { mergeStateFunctions, unresolvedIn } from "./merge-state.ts";
import { stageAllFunction } from "./stage-all.ts";

/** A commit that was taken out of the sandbox. */
export interface ExportedCommit {
  readonly sha: string;
  readonly subject: string;
  /** Who made it: `offstage` for the commit of what the agent left uncommitted. */
  readonly by: "agent" | "offstage";
}

interface RepositoryExport {
  readonly sandbox: Sandbox;
  /** Path of the mirror that receives the commits. */
  readonly mirror: string;
  readonly folders: {
    readonly workspace: string;
    readonly home: string;
    readonly readOnly: readonly string[];
    readonly directory: string;
  };
  readonly sessionId: string;
  /** The session's work branch, on which the agent began. */
  readonly branch: string;
  readonly start: {
    readonly baseSha: string;
    readonly headSha: string;
    /** Commits of the remote that the clone has taken in since; none if omitted. */
    readonly theirs?: readonly string[];
    /** Folders that the clone was made with; everything, if omitted. */
    readonly sparse?: readonly string[];
  };
  /**
   * The mirror with its remote, which is asked for new commits that are not the agent's own: it merged what it fetched itself.
   * `branch` is the one that the work is for. If omitted, all new commits are the agent's.
   */
  readonly origin?: { readonly mirror: Mirror; readonly branch: string };
  /** The session's commit in a join that the agent is to do by hand in the clone; null or omitted if there is none. */
  readonly ours?: string | null;
  /** Whether the agent's turn did not end by itself: a merge that is under way then stays so. False if omitted. */
  readonly isInterrupted?: boolean;
  readonly identity: {
    readonly author: Identity;
    /** The author, if omitted. */
    readonly committer?: Identity;
    /** Signs every new commit, the agent's own too; null or omitted: they stay as they are. */
    readonly signer?: Signer | null;
    readonly message: string;
    readonly coAuthor: Identity | null;
  };
  /** Limits of the commands that take the work out. They run what the agent configured, for example git filters. */
  readonly limits: ResourceLimits;
  /** Most time of these commands, in ms; 30 minutes if omitted. */
  readonly limitMs?: number;
  readonly signal: AbortSignal;
}

/** What was taken out of one repository. */
interface ExportedRepository {
  /** The commit that counts; nothing of a merge that stays under way is in it. */
  readonly headSha: string;
  /** The new ones, oldest first, at most 200. */
  readonly commits: ExportedCommit[];
  /** Whether the commit differs from the last time. */
  readonly isMoved: boolean;
  /** Paths of submodules whose changes are not in it. */
  readonly changedSubmodules: string[];
  /**
   * Files that collide in a merge that is under way and stays so, and that nobody has resolved: perhaps none. Null if none is
   * under way.
   */
  readonly unfinished: string[] | null;
}

const defaultLimitMs = 30 * 60_000;
/** Factor on the disk limit: the work of an agent that was stopped for its disk can still be taken out. */
const diskFactor = 4;
/** Columns of a commit's subject that are reported: it may be as long as a file. */
const subjectLength = 500;
/** Marks of the lines in which `export-work.sh` reports commits. */
const committedMark = "offstage-committed ";
const headMark = "offstage-head ";
/** Mark of the lines that name submodules in which something was changed. */
const submoduleMark = "offstage-submodule ";
/** The line that says that a merge is under way, and stays so. */
const unfinishedMark = /^offstage-unfinished$/mu;

/**
 * Takes one repository's work out of the sandbox into the mirror: only as checked objects, under a ref of Offstage's. If they
 * are to be signed, signed commits take the place of the agent's, also in its clone.
 * @throws SessionError workspace_broken, resources_exhausted, sandbox_unavailable
 */
export async function exportRepository(request: RepositoryExport): Promise<ExportedRepository> {
  const { mirror, sessionId, folders, start, signal } = request;
  const ref = exportedRef(sessionId, folders.directory);
  const options = { cwd: mirror, signal, local: true };
  const before = (await exportedHead(options, ref)) ?? start.headSha;
  const folder = await mkdtemp(join(tmpdir(), "offstage-pack-"));
  try {
    const pack = join(folder, "work.pack");
    const { head, committed, changedSubmodules, unfinished } = await writePack(request, pack, before);
    const known = knownTo(start, before);
    if (head === null || head === before) {
      return { headSha: before, commits: [], isMoved: false, changedSubmodules, unfinished };
    }
    const isNew = (await stat(pack)).size > 0;
    if (isNew) await importPack(createReadStream(pack), [head], known, options);
    else await requireKnown(head, known, options);
    const signed = await signWork(request, head, known);
    const headSha = signed.get(head) ?? head;
    if (headSha !== head) await moveToSigned(request, head, headSha);
    if (headSha === before) return { headSha, commits: [], isMoved: false, changedSubmodules, unfinished };
    await mustGit(["update-ref", ref, headSha], options);
    const log = await mustGit(
      ["log", "--reverse", "--max-count=200", `--format=%H %<(${subjectLength},trunc)%s`, headSha, "--not", ...known],
      options,
    );
    const byOffstage = committed === null ? null : (signed.get(committed) ?? committed);
    const commits = log
      .split("\n")
      .filter((line) => line !== "")
      .map((line): ExportedCommit => {
        const sha = line.slice(0, line.indexOf(" "));
        return { sha, subject: line.slice(sha.length + 1).trimEnd(), by: sha === byOffstage ? "offstage" : "agent" };
      });
    return { headSha, commits, isMoved: true, changedSubmodules, unfinished };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Refs of all sessions at what was fetched from the remote; those at exported work are others. */
const fetched = ["target", "start", "trusted", "theirs/*"]
  .map((name) => `--glob=refs/offstage/*/${name}`)
  .concat("--glob=refs/offstage/latest/*");

/**
 * Signs the commits that are new and the agent's: neither what the remote has, whoever merged that, nor what the session has
 * exported before.
 */
async function signWork(
  request: RepositoryExport,
  head: string,
  exported: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { mirror, identity, signal } = request;
  const { author, committer = author, signer = null } = identity;
  if (signer === null) return new Map();
  const options = { cwd: mirror, signal, local: true };
  const known = [...exported, ...fetched];
  const others = await fetchedByAgent(request, head, known);
  return signCommits(signer, { head, known: [...known, ...others], committer }, options);
}

/**
 * The remote's commits among new ones. The agent's own have one parent, and the committer that its git is given, as long as it does
 * not say otherwise: if all are such, the remote is not asked.
 */
async function fetchedByAgent(
  { mirror, sessionId, folders, identity, origin, signal }: RepositoryExport,
  head: string,
  known: readonly string[],
): Promise<readonly string[]> {
  if (origin === undefined) return [];
  const { author, committer = author } = identity;
  const options = { cwd: mirror, signal, local: true };
  const log = await mustGit(["log", "--format=%H %ce%x00%P", head, "--not", ...known], options);
  const fresh = log.split("\n").filter((line) => line !== "");
  const own = new Set([author.email, committer.email]);
  const isPlain = (line: string): boolean => {
    const [email = "", parents = ""] = line.slice(line.indexOf(" ") + 1).split("\0");
    return own.has(email) && !parents.includes(" ");
  };
  if (fresh.every(isPlain)) return [];
  const commits = new Set(fresh.map((line) => line.slice(0, line.indexOf(" "))));
  const pin = theirsRef(sessionId, folders.directory);
  return findOnRemote(origin.mirror, { commits, branch: origin.branch, pin }, signal);
}

/** Puts the agent's clone on the signed commit: what it commits next follows it. */
async function moveToSigned(request: RepositoryExport, unsigned: string, signed: string): Promise<void> {
  const { sandbox, folders, branch, limits, signal } = request;
  const { workspace, home, readOnly } = folders;
  const paths = { workspace, home, readOnly, workingDirectory: join(workspace, folders.directory) };
  const command = {
    command: "sh",
    arguments: ["-c", programText(import.meta.url, "move-to-signed.sh")],
    environment: { OFFSTAGE_BRANCH: branch, OFFSTAGE_UNSIGNED: unsigned, OFFSTAGE_SIGNED: signed },
  };
  await runCommand({ sandbox, limits, signal }, paths, command, (child) => {
    child.stdin.end();
    child.stdout.resume();
  });
}

/** The ref below which commits of the remote are pinned that a session took in after it started. */
export function theirsRef(sessionId: string, directory: string): string {
  return `refs/offstage/${sessionId}/${directory}/theirs`;
}

/** Full name of the mirror's ref at the commit that was last taken out of a clone. */
export function exportedRef(sessionId: string, directory: string): string {
  return `refs/offstage/${sessionId}/${directory}/head`;
}

/** The commit of that ref; null if there is none on this worker. */
export async function exportedHead(options: GitOptions, ref: string): Promise<string | null> {
  return (await git(["rev-parse", "--verify", "--quiet", ref], options)).stdout.trim() || null;
}

/** The commits that are outside already. */
function knownTo({ baseSha, headSha, theirs = [] }: RepositoryExport["start"], before: string): string[] {
  return [...new Set([baseSha, headSha, ...theirs, before])];
}

/**
 * Takes a pack of the agent's objects into a repository. Each object is checked: git itself makes no tree with a `.git` entry,
 * and checking one out would write where it must not. Everything that `heads` need must be there.
 * @param known commits whose objects are there already
 * @throws SessionError workspace_broken
 */
export async function importPack(
  pack: Readable,
  heads: readonly string[],
  known: readonly string[],
  options: GitOptions,
): Promise<void> {
  const imported = await git(["index-pack", "--stdin", "--fix-thin", "--strict"], { ...options, input: pack });
  if (imported.code !== 0) throw brokenWorkspace(imported.stderr);
  const wanted = heads.map((head) => `${head}^{commit}`);
  const connected = await git(["rev-list", "--objects", "--quiet", ...wanted, "--not", ...known], options);
  if (connected.code !== 0) throw brokenWorkspace(connected.stderr);
}

/** If the session's branch went back, it must be at one of the earlier commits. @throws SessionError workspace_broken */
async function requireKnown(head: string, known: readonly string[], options: GitOptions): Promise<void> {
  const beyond = await git(["rev-list", "--max-count=1", head, "--not", ...known], options);
  if (beyond.code !== 0 || beyond.stdout !== "") throw brokenWorkspace(`${head} is no commit of this work`);
}

interface Written {
  /** The commit that counts; null if the script's report could not be read. */
  readonly head: string | null;
  /** The commit of what the agent left uncommitted, if any. */
  readonly committed: string | null;
  /** Paths of submodules in which something was changed. */
  readonly changedSubmodules: string[];
  readonly unfinished: string[] | null;
}

async function writePack(request: RepositoryExport, pack: string, before: string): Promise<Written> {
  const { sandbox, mirror, folders, branch, start, identity, limits, limitMs = defaultLimitMs, signal } = request;
  const { isInterrupted = false, ours = null } = request;
  const { author, committer, message, coAuthor } = identity;
  const trailer =
    coAuthor === null ? "" : `\n\nCo-authored-by: ${coAuthor.name.replace(/[<>\n]/gu, "")} <${coAuthor.email}>`;
  const sandboxRequest = {
    command: "sh",
    arguments: [
      "-c",
      [stageAllFunction(), mergeStateFunctions(), programText(import.meta.url, "export-work.sh")].join("\n"),
    ],
    workspace: folders.workspace,
    workingDirectory: join(folders.workspace, folders.directory),
    home: folders.home,
    readOnly: folders.readOnly,
    environment: {
      ...sandboxGitVariables(folders.home),
      ...authorVariables(author, committer),
      OFFSTAGE_MESSAGE: `${message}${trailer}`,
      OFFSTAGE_OBJECTS: join(mirror, "objects"),
      OFFSTAGE_LFS_FILTER: filterCommand(mirror),
      OFFSTAGE_BASE: start.baseSha,
      OFFSTAGE_BRANCH: branch,
      OFFSTAGE_BEFORE: before,
      OFFSTAGE_KNOWN: knownTo(start, before).join(" "),
      OFFSTAGE_ENDED: isInterrupted ? "" : "yes",
      OFFSTAGE_OURS: ours ?? "",
      ...sparseVariables(start.sparse ?? []),
    },
    limits: { ...limits, diskBytes: limits.diskBytes * diskFactor },
  };
  const { code, exceeded, timedOut, printed, thrown } = await runInSandbox(
    sandbox,
    sandboxRequest,
    { limitMs, signal },
    async (child) => {
      child.stdin.end();
      const bounded = limitBytes(limits.diskBytes, "OFFSTAGE_SANDBOX_DISK_MB");
      await pipeline(child.stdout, bounded, createWriteStream(pack, { mode: 0o600 }));
    },
  );
  if (thrown?.error instanceof TooLargeError) throw tooMuch(`its objects: ${thrown.error.message}`);
  if (thrown !== null) throw thrown.error;
  if (timedOut) throw tooMuch(`it took more than ${Math.round(limitMs / 60_000)} minutes`);
  if (exceeded !== null) throw tooMuch(`it used more ${exceeded} than a sandbox may`);
  if (code === notStarted) throw noSandbox(printed);
  if (code !== 0) throw brokenWorkspace(printed);
  const changedSubmodules = printed
    .split("\n")
    .filter((line) => line.startsWith(submoduleMark))
    .map((line) => line.slice(submoduleMark.length));
  const unfinished = unfinishedMark.test(printed) ? unresolvedIn(printed) : null;
  return { head: marked(printed, headMark), committed: marked(printed, committedMark), changedSubmodules, unfinished };
}

/** The commit named in the script's line with this mark; null if it is not a commit's name. */
function marked(output: string, mark: string): string | null {
  const line = output.split("\n").findLast((candidate) => candidate.startsWith(mark));
  return /^[0-9a-f]{40,64}$/u.exec(line?.slice(mark.length).trim() ?? "")?.[0] ?? null;
}

/** Exit code of a sandbox that could not start its command, as of a shell. */
const notStarted = 127;

/** The work itself is not broken, and is still there. */
function noSandbox(output: string): SessionError {
  return new SessionError({
    code: "sandbox_unavailable",
    reason: `The sandbox that exports the agent's work did not start: ${output.trim().slice(-500)}`,
    retryable: true,
    passing: true,
    remedy:
      "Find the reason with `offstage doctor` on the worker, then retry the session: it continues with what the agent made.",
  });
}

function tooMuch(why: string): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `The agent's work could not be taken out of its sandbox: ${why}.`,
    retryable: false,
    remedy:
      "Tell the agent in a message to take out of its folder what is none of the work, and what git is set to run there.",
  });
}

function brokenWorkspace(output: string): SessionError {
  return new SessionError({
    code: "workspace_broken",
    reason: `The agent left its repository in a state from which its work can't be exported: ${output.trim().slice(-500)}`,
    retryable: false,
    remedy: "Start a new session, which works in a fresh clone.",
  });
}
