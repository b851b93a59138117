import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SessionError } from "../../../domain/errors/errors.ts";
import { lacksObjects } from "./mend.ts";
import { fetchObjects } from "./fetch.ts";
import type { WantedFetch } from "./fetch-turns.ts";
import { git, hasCommit, mustGit, type GitOptions } from "../git.ts";
import { remoteOptions, transferLimits, type Mirror } from "./mirror.ts";
import { askRemote, branchNames, listRefs } from "./ask-remote.ts";

/**
 * Fetches a branch's commit into the mirror, under a ref that also keeps it from being pruned. Nothing is fetched if the mirror
 * has the commit.
 * @param fetched.into full name of the ref
 * @throws SessionError resources_exhausted, repository_*; `repository_unreachable` also if the branch no longer has the commit
 */
export async function fetchBranch(
  mirror: Mirror,
  fetched: { readonly branch: string; readonly sha: string; readonly into: string },
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { branch, sha, into } = fetched;
  const options = { cwd: mirror.path, signal };
  // It refuses missing objects.
  const isThere = async () =>
    !lacksObjects(mirror.path) && (await git(["update-ref", into, `${sha}^{commit}`], options)).code === 0;
  if (await isThere()) return;
  const fetch = async (report: (line: string) => void): Promise<void> => {
    // The branch may have moved since it was looked up: the commit found then counts.
    const remote = { ...(await remoteOptions(mirror, signal)), onProgress: report };
    await fetchObjects({ ...fetchFrom(mirror), ref: `refs/heads/${branch}`, options: remote });
    if (!(await hasCommit(sha, options))) throw replaced(mirror, branch);
    await mustGit(["update-ref", into, sha], options);
  };
  // Its tip was looked up with the same credentials.
  const mayRead = () => Promise.resolve();
  await inTurn(mirror, { name: `refs/heads/${branch}`, mayRead, isThere, fetch }, onProgress, signal);
}

/** Fetches into the mirror, unless another session's fetch brings it. @param wanted with a name that is one on the mirror's remote */
async function inTurn(
  mirror: Mirror,
  wanted: Omit<WantedFetch, "mirror" | "isFirst">,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  if (mirror.turns === undefined) return wanted.fetch(onProgress);
  const packs = await readdir(join(mirror.path, "objects/pack"));
  // A fork's objects go into the mirror of its repository, too.
  const name = `${mirror.url} ${wanted.name}`;
  await mirror.turns.take({ ...wanted, name, mirror: mirror.path, isFirst: packs.length === 0 }, onProgress, signal);
}

/**
 * Fetches refs of the remote into the mirror as they are now, without pinning them.
 * @param refs full names
 * @returns their commits, by their names; those that the remote does not have are left out
 * @throws SessionError resources_exhausted, repository_*
 */
export async function fetchRefs(
  mirror: Mirror,
  refs: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const options = await remoteOptions(mirror, signal);
  const { shaOf } = await askRemote(mirror, refs, options);
  const found = new Map<string, string>();
  for (const ref of refs) {
    const sha = shaOf(ref);
    if (sha === null) continue;
    if (lacksObjects(mirror.path) || !(await hasCommit(sha, { cwd: mirror.path, signal }))) {
      await fetchObjects({ ...fetchFrom(mirror), ref, options });
      if (!(await hasCommit(sha, { cwd: mirror.path, signal }))) throw replaced(mirror, ref);
    }
    found.set(ref, sha);
  }
  return found;
}

/**
 * Finds which commits of a clone are the remote's, if its server can't say it of any commit (see `knownToRemote`): those at which
 * it has a branch, and what leads to the tip of one branch, which is fetched and pinned.
 * @param sought.branch the branch that the clone's work is for
 * @param sought.pin full name of the ref below which its tip is pinned
 * @returns commits of the remote
 * @throws SessionError resources_exhausted, repository_*
 */
export async function findOnRemote(
  mirror: Mirror,
  { commits, branch, pin }: { readonly commits: ReadonlySet<string>; readonly branch: string; readonly pin: string },
  signal: AbortSignal,
): Promise<string[]> {
  const options = await remoteOptions(mirror, signal);
  const listed = await listRefs(mirror, ["--heads", mirror.url], options);
  const tips = [...listed.matchAll(/^([0-9a-f]+)\trefs\/heads\/[^\n]+$/gmu)].map(([, sha = ""]) => sha);
  const found = tips.filter((sha) => commits.has(sha));
  // The list is cut off at very many branches.
  const { shaOf } = await askRemote(mirror, [`refs/heads/${branch}`], options);
  const tip = shaOf(`refs/heads/${branch}`);
  if (tip === null) return found;
  await fetchBranch(mirror, { branch, sha: tip, into: `${pin}/${tip}` }, () => undefined, signal);
  return [...found, tip];
}

/** How many branches are fetched in search of a commit. */
const mostTips = 200;

/**
 * Fetches a commit by its name into the mirror, and keeps it for the next fetch to build on. A server that serves only the tips
 * of branches is asked for all of those. If the mirror has the commit, the remote is asked all the same whether these credentials
 * may read it: others may have fetched it with theirs.
 * @throws SessionError resources_exhausted, repository_*
 */
export async function fetchCommit(
  mirror: Mirror,
  sha: string,
  onProgress: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const local = { cwd: mirror.path, signal };
  const mayRead = async () => listRefs(mirror, [mirror.url, "HEAD"], await remoteOptions(mirror, signal));
  const isThere = async () => !lacksObjects(mirror.path) && (await hasCommit(sha, local));
  if (await isThere()) {
    await mayRead();
    return;
  }
  const fetch = async (report: (line: string) => void): Promise<void> => {
    await fetchNamed(mirror, sha, { ...(await remoteOptions(mirror, signal)), onProgress: report });
    // One name for all: else a mirror of a submodule would keep each commit that ever was recorded.
    await keepLatest(mirror, "commit", sha, signal);
  };
  await inTurn(mirror, { name: sha, mayRead, isThere, fetch }, onProgress, signal);
}

/** Fetches a commit by its name, or all branches if the server serves only these. */
async function fetchNamed(mirror: Mirror, sha: string, options: GitOptions): Promise<void> {
  try {
    await fetchObjects({ ...fetchFrom(mirror), ref: sha, options });
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== "repository_unreachable") throw error;
    // A server that asks to wait is not asked otherwise at once.
    if (error.retryAfterMs !== undefined) throw error;
    const names = (await branchNames(mirror, options)).slice(0, mostTips);
    if (names.length === 0) throw error;
    await fetchObjects({ ...fetchFrom(mirror), ref: names.map((name) => `refs/heads/${name}`), options });
  }
  if (!(await hasCommit(sha, { cwd: options.cwd, signal: options.signal }))) {
    throw new SessionError({
      code: "repository_not_found",
      reason: `The repository ${mirror.url} does not have the commit ${sha}: it may not be pushed.`,
      retryable: false,
      remedy: "Push the commit, then retry.",
    });
  }
}

/** The forge lags, or the branch is being rewritten at this moment. */
function replaced({ url }: Mirror, branch: string): SessionError {
  return new SessionError({
    code: "repository_unreachable",
    reason: `The branch ${branch} of ${url} was replaced while it was fetched.`,
    retryable: true,
    remedy: "Retry: the branch that is there then counts.",
  });
}

function fetchFrom(mirror: Mirror) {
  return { mirror: mirror.path, url: mirror.url, limits: transferLimits(mirror) };
}

/** Keeps a branch's latest commit under a ref, so that the next fetch can build on it when no session pins it. */
export async function keepLatest(mirror: Mirror, branch: string, sha: string, signal: AbortSignal): Promise<void> {
  const ref = `refs/offstage/latest/${branch.replaceAll("/", "-")}`;
  // Until the refs are packed each is a file; then git looks.
  if ((await readFile(join(mirror.path, ref), "utf8").catch(() => "")).trim() === sha) return;
  // Another session may be writing it at the same moment, which is just as good.
  await git(["update-ref", ref, sha], { cwd: mirror.path, signal });
}
