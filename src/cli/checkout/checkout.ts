import { randomBytes } from "node:crypto";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repositories/repository.ts";
import type { Terminal } from "../terminal/commands.ts";
import { git, GitError, tryGit, type GitRun } from "./git.ts";

/** A git checkout on a person's machine. */
export interface Checkout {
  /** Its folder. */
  readonly root: string;
  /** Name of the remote that its branch follows, or of the only one, or `origin`. */
  readonly remote: string;
  /** The remote's address, as a server can use it: without credentials. */
  readonly url: string;
  /** The present branch's name on the remote; null: the remote has no such branch, or no branch is checked out. */
  readonly remoteBranch: string | null;
  /** Whether something is changed or added that is in no commit. */
  readonly isDirty: boolean;
}

type Place = Pick<Terminal, "workingDirectory" | "signal">;

/** The requirement: a checkout with a remote, a remote if there is a checkout, or nothing. */
export type Need = "checkout" | "remote" | "nothing";

/**
 * Reads the checkout of the working directory.
 * @returns null if there is none, or, if nothing is needed, none with a remote
 * @throws InvalidInputError if something needed is missing; GitError if git fails
 */
export async function readCheckout(place: Place, need: Need): Promise<Checkout | null> {
  const here = { cwd: place.workingDirectory, signal: place.signal };
  const root = await readRoot(here, need);
  if (root === null) return null;
  const run = { cwd: root, signal: place.signal };
  const branch = line(await tryGit(["symbolic-ref", "--quiet", "--short", "HEAD"], run));
  const remotes = await remotesOf(run);
  const remote = await remoteOf(branch, remotes, run);
  if (remote === null) {
    if (need === "nothing") return null;
    const otherwise = need === "remote" ? ", or say with --repository or --no-repository what to work on" : "";
    throw new InvalidInputError(`the checkout ${root} ${noRemote(remotes)}${otherwise}`);
  }
  const url = await addressOf(remote, run);
  return {
    root,
    remote,
    url,
    remoteBranch: branch === null ? null : await branchOnRemote(branch, remote, run),
    isDirty: (await git(["status", "--porcelain"], run)) !== "",
  };
}

function noRemote(remotes: readonly string[]): string {
  if (remotes.length === 0) return "has no remote: add one with `git remote add`";
  return `has the remotes ${remotes.join(", ")}, and its branch follows none of them: let it follow one`;
}

/**
 * The folder of the checkout that the working directory is in.
 * @throws InvalidInputError if there is none
 */
export async function checkoutRoot({ workingDirectory, signal }: Place): Promise<string> {
  return (await readRoot({ cwd: workingDirectory, signal }, "checkout")) ?? "";
}

/** Git's messages outside of a checkout, and in a repository without files. */
const isNoCheckout = /not a git repository|must be run in a work tree/u;

async function readRoot(here: GitRun, need: Need): Promise<string | null> {
  try {
    // In English, whatever the person's language.
    return (await git(["rev-parse", "--show-toplevel"], { ...here, environment: { LC_ALL: "C" } })).trim();
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    const isNone = isNoCheckout.test(error.message);
    // Without git there is no checkout; but a refusal of git's, such as of another user's folder, must be reported.
    if (need === "nothing" || (need === "remote" && (isNone || error.isMissing))) return null;
    if (!isNone) throw error;
    throw new InvalidInputError(`${here.cwd} is in no git checkout: change into one, or clone the repository first`);
  }
}

async function remotesOf(run: GitRun): Promise<readonly string[]> {
  return (await git(["remote"], run)).split("\n").filter((name) => name !== "");
}

async function remoteOf(branch: string | null, remotes: readonly string[], run: GitRun): Promise<string | null> {
  const followed = branch === null ? null : line(await tryGit(["config", "--get", `branch.${branch}.remote`], run));
  if (followed !== null && remotes.includes(followed)) return followed;
  if (remotes.includes("origin")) return "origin";
  return remotes.length === 1 ? (remotes[0] ?? null) : null;
}

async function branchOnRemote(branch: string, remote: string, run: GitRun): Promise<string | null> {
  const followed = line(await tryGit(["config", "--get", `branch.${branch}.merge`], run));
  const isFollowed = line(await tryGit(["config", "--get", `branch.${branch}.remote`], run)) === remote;
  const name = isFollowed && followed !== null ? followed.replace(/^refs\/heads\//u, "") : branch;
  const known = await tryGit(["rev-parse", "--verify", "--quiet", `refs/remotes/${remote}/${name}`], run);
  return known === null ? null : name;
}

/**
 * Sends what the checkout has and its remote does not, commits and uncommitted changes, as a branch of the remote. The checkout stays
 * as it is: no branch, no index and no file of it is changed.
 * @param name the branch; null: a new one
 * @throws GitError if the remote refuses it; InvalidInputError if there is nothing to send
 */
export async function sendChanges(
  { root, remote, url, remoteBranch }: Checkout,
  name: string | null,
  { signal }: Place,
): Promise<{ readonly branch: string; readonly commits: number }> {
  const run = { cwd: root, signal };
  const head = line(await tryGit(["rev-parse", "--verify", "--quiet", "HEAD"], run));
  if (head === null) throw new InvalidInputError(`--with-changes: the checkout ${root} has no commit yet: make one`);
  const to = await addressOf(remote, run, "--push");
  if (repositoryKeyOf(to) !== repositoryKeyOf(url)) {
    throw new InvalidInputError(
      `--with-changes: what is pushed to ${remote} goes to ${to}, and the session works on ${url}`,
    );
  }
  const sha = (await commitOfChanges(run, head)) ?? head;
  const known = remoteBranch === null ? [`--remotes=${remote}`] : [`refs/remotes/${remote}/${remoteBranch}`];
  const commits = Number((await git(["rev-list", "--count", sha, "--not", ...known], run)).trim());
  if (commits === 0) {
    throw new InvalidInputError("--with-changes: there is nothing to send, since the remote has all that is here");
  }
  const branch = name ?? `offstage/changes-${randomBytes(4).toString("hex")}`;
  await git(["push", "--quiet", remote, `${sha}:refs/heads/${branch}`], run);
  return { branch, commits };
}

/** A commit of everything that `git add --all` would take, by a separate index; null if nothing is changed. */
async function commitOfChanges(run: GitRun, head: string): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-changes-"));
  try {
    const apart = { ...run, environment: { GIT_INDEX_FILE: join(folder, "index") } };
    // A copy knows what is unchanged, so that a large checkout is not read whole, and what a sparse one leaves out.
    const index = resolve(run.cwd, (await git(["rev-parse", "--git-path", "index"], run)).trim());
    await copyFile(index, apart.environment.GIT_INDEX_FILE).catch(() => git(["read-tree", head], apart));
    await git(["add", "--all", "."], apart);
    const tree = (await git(["write-tree"], apart)).trim();
    if (tree === (await git(["rev-parse", `${head}^{tree}`], run)).trim()) return null;
    return (await git(["commit-tree", tree, "-p", head, "-m", "Uncommitted changes"], run)).trim();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * The remote of a checkout that is one of these repositories, however each address is written.
 * @returns the remote's name, or null if none is
 */
export async function remoteFor(root: string, urls: readonly string[], signal: AbortSignal): Promise<string | null> {
  const run = { cwd: root, signal };
  const wanted = new Set(urls.map(repositoryKeyOf));
  for (const remote of await remotesOf(run)) {
    if (wanted.has(repositoryKeyOf(await addressOf(remote, run)))) return remote;
  }
  return null;
}

/** A remote's address, as a server can use it. @param options of `git remote get-url` */
async function addressOf(remote: string, run: GitRun, ...options: readonly string[]): Promise<string> {
  return withoutCredentials(absolute((await git(["remote", "get-url", ...options, remote], run)).trim(), run.cwd));
}

/** Equal for all addresses of one repository. */
export function repositoryKeyOf(url: string): string {
  const address = parseRepositoryUrl(url);
  return isAddressProblem(address) ? url : address.key;
}

/** A path of a remote counts from the checkout; a server has another working directory. */
function absolute(url: string, root: string): string {
  const isPath = !url.includes("://") && !/^(?:[\w.-]+@)?[\w.-]{2,}:/u.test(url);
  return isPath ? resolve(root, url) : url;
}

/**
 * The server has its own credentials, and those in an address would be stored. A user's name before a host of ssh
 * stays.
 */
function withoutCredentials(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/u.test(parsed.protocol)) return url;
  parsed.username = "";
  parsed.password = "";
  return parsed.toString();
}

function line(text: string | null): string | null {
  const trimmed = text?.trim() ?? "";
  return trimmed === "" ? null : trimmed;
}
