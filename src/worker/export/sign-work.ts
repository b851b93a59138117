import { join } from "node:path";
import { SessionError } from "../../domain/errors/errors.ts";
import { programText } from "../../programs/program-text.ts";
import { mustGit } from "../git/git.ts";
import { knownToRemote } from "../git/mirrors/known-to-remote.ts";
import { findOnRemote } from "../git/mirrors/fetch-commits.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import { signCommits } from "../git/sign-commits.ts";
import { runCommand } from "../sandboxed/run-command.ts";
import { theirsRef } from "../clones/exported-refs.ts";
import type { RepositoryExport } from "./request.ts";

/** Refs of all sessions at what was fetched from the remote; those at exported work are others. */
const fetched = ["target", "start", "trusted", "theirs/*", "pull-request/*"]
  .map((name) => `--glob=refs/offstage/*/${name}`)
  .concat("--glob=refs/offstage/latest/*");

/** How long the remote is asked about work that looks like the session's own; a failed attempt has only a minute for all of it. */
const plainMs = 15_000;
/** Most questions to a remote about one export. */
const mostSides = 64;

/**
 * Signs the commits that are new and were made in this session. These are none of them: what the session has exported before,
 * what a mirror ever fetched and still pins, what the remote says that it has, and what names a committer that the session's
 * git is not given, unless it builds on a commit that was made here.
 * @returns the signed commit for each of the session's
 */
export async function signWork(
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
  const work = { head, known: [...known, ...others], committer, own: [author, committer] };
  return signCommits(signer, work, options);
}

/**
 * The remote's commits among new ones: other sessions', for example, whose committer is the same. If none looks like that, work
 * is taken out also while the remote can't be asked.
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
  const fresh = log.split("\n").flatMap(freshOf);
  if (fresh.length === 0) return [];
  const own = new Set([author.email, committer.email]);
  const isPlain = fresh.every(({ email, parents }) => own.has(email) && parents.length < 2);
  const commits = new Set(fresh.map(({ sha }) => sha));
  const clock = AbortSignal.timeout(plainMs);
  const bounded = isPlain ? AbortSignal.any([signal, clock]) : signal;
  try {
    const common = await commonWithRemote(origin.mirror, head, fresh, bounded);
    if (common !== null) return common;
    const pin = theirsRef(sessionId, folders.directory);
    return await findOnRemote(origin.mirror, { commits, branch: origin.branch, pin }, bounded);
  } catch (error) {
    const isUnanswered = error instanceof SessionError || clock.aborted;
    if (isPlain && isUnanswered && !signal.aborted) return [];
    throw error;
  }
}

interface FreshCommit {
  readonly sha: string;
  /** Of its committer. */
  readonly email: string;
  readonly parents: readonly string[];
}

function freshOf(line: string): FreshCommit[] {
  if (line === "") return [];
  const sha = line.slice(0, line.indexOf(" "));
  const [email = "", parents = ""] = line.slice(sha.length + 1).split("\0");
  return [{ sha, email, parents: parents.split(" ").filter((parent) => parent !== "") }];
}

/**
 * The remote's commits among new ones. git stops asking at the first commit that the remote has, so that of a merge it may name only
 * those of one side: each side is asked about by itself.
 * @returns null if the remote's server can't be asked, or there are too many sides
 */
async function commonWithRemote(
  mirror: Mirror,
  head: string,
  fresh: readonly FreshCommit[],
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  const isFresh = new Set(fresh.map(({ sha }) => sha));
  const merged = fresh.filter(({ parents }) => parents.length > 1).flatMap(({ parents }) => parents);
  const sides = new Set([head, ...merged.filter((sha) => isFresh.has(sha))]);
  if (sides.size > mostSides) return null;
  const common: string[] = [];
  for (const side of sides) {
    const found = await knownToRemote(mirror, side, signal);
    if (found === null) return null;
    common.push(...found);
  }
  return common;
}

/** Puts the agent's clone on the signed commit: what it commits next follows it. */
export async function moveToSigned(request: RepositoryExport, unsigned: string, signed: string): Promise<void> {
  const { sandbox, folders, branch, limits, signal } = request;
  const { directory, ...paths } = folders;
  const workingDirectory = join(folders.workspace, directory);
  const command = {
    command: "sh",
    arguments: ["-c", programText(import.meta.url, "move-to-signed.sh")],
    environment: { OFFSTAGE_BRANCH: branch, OFFSTAGE_UNSIGNED: unsigned, OFFSTAGE_SIGNED: signed },
  };
  await runCommand({ sandbox, limits, signal }, { ...paths, workingDirectory }, command, (child) => {
    child.stdin.end();
    child.stdout.resume();
  });
}
