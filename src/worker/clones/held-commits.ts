import { writeFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { SessionError } from "../../domain/errors/errors.ts";
import { importPack } from "./import-pack.ts";
import { git, hasCommit, mustGit, type GitOptions } from "../git/git.ts";
import { fetchCommit } from "../git/mirrors/fetch-commits.ts";
import type { Mirror } from "../git/mirrors/mirror.ts";
import { knownOf, type CheckpointWork, type CloneStart } from "../git/remote-repository.ts";

// The packs of a checkpoint build on commits of the remote: the ones that the session started from, and what it took in since.
// The remote may lose them before another worker needs them: a reviewer pushes by force, or deletes the branch.

/** Most bytes of such commits in a checkpoint: beyond that the remote has to have them. */
const heldLimit = 16 * 1024 ** 2;
/** Bound on packing them, in ms: they must not cost a checkpoint its time. */
const packLimitMs = 3_000;

/** The commits that a checkpoint builds on in addition to its base, which is the target branch's. */
export function commitsToHold(start: CloneStart): string[] {
  return knownOf(start).filter((sha) => sha !== start.baseSha);
}

/**
 * Packs commits of a mirror that its base lacks into `file`. It runs outside the sandbox: they are the remote's.
 * @returns false if there are no such objects, or too many to be packed quickly
 */
export async function packHeld(
  mirror: Mirror,
  { baseSha, commits }: { readonly baseSha: string; readonly commits: readonly string[] },
  file: string,
  signal: AbortSignal,
): Promise<boolean> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const tooMuch = new AbortController();
  const options = { cwd: mirror.path, signal: AbortSignal.any([signal, tooMuch.signal]) };
  const revisions = [...commits, `^${baseSha}`].map((line) => `${line}\n`).join("");
  const overtime = setTimeout(() => tooMuch.abort(), packLimitMs);
  try {
    const ahead = await git(["rev-list", "--max-count=1", ...commits, "--not", baseSha], options);
    if (ahead.code !== 0 || ahead.stdout.trim() === "") return false;
    // No search for new deltas: it takes long, and spares little of what is small.
    const { code } = await git(["pack-objects", "--quiet", "--window=0", "--revs", "--stdout"], {
      ...options,
      input: Readable.from([revisions]),
      onOutput(chunk) {
        bytes += chunk.length;
        if (bytes > heldLimit) tooMuch.abort();
        else chunks.push(chunk);
      },
    });
    if (code !== 0) return false;
  } catch (error) {
    if (!tooMuch.signal.aborted) throw error;
  } finally {
    clearTimeout(overtime);
  }
  if (tooMuch.signal.aborted) return false;
  await writeFile(file, Buffer.concat(chunks), { mode: 0o600 });
  return true;
}

/**
 * Brings the commits that a checkpoint builds on into a mirror, and pins them: from the remote by their names, or from the
 * checkpoint.
 * @param pin full name of the ref below which they are pinned
 * @throws SessionError workspace_broken if neither has them, repository_*
 */
export async function bringKnown(
  mirror: Mirror,
  work: CheckpointWork,
  pin: string,
  signal: AbortSignal,
): Promise<void> {
  const { start, held = null } = work;
  const options = { cwd: mirror.path, signal };
  const needsBase = !(await hasCommit(start.baseSha, options));
  if (needsBase) await fetchLost(mirror, start.baseSha, signal);
  for (const sha of commitsToHold(start)) {
    if (await hasCommit(sha, options)) continue;
    if (held !== null) await importHeld(held, start.baseSha, options);
    if (!(await hasCommit(sha, options))) await fetchLost(mirror, sha, signal);
  }
  for (const sha of knownOf(start)) await mustGit(["update-ref", `${pin}/${sha}`, sha], options);
}

/** Takes what the checkpoint holds, unless git refuses what the remote once had: then the remote is asked. */
async function importHeld(
  { file, commits }: NonNullable<CheckpointWork["held"]>,
  baseSha: string,
  options: GitOptions,
): Promise<void> {
  try {
    await importPack(file, commits, [baseSha], options);
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== "workspace_broken") throw error;
  }
}

/** Fetches a commit that no branch has any more. @throws SessionError workspace_broken if the remote does not give it */
async function fetchLost(mirror: Mirror, sha: string, signal: AbortSignal): Promise<void> {
  try {
    await fetchCommit(mirror, sha, () => undefined, signal);
  } catch (error) {
    if (!(error instanceof SessionError) || error.passing) throw error;
    throw new SessionError({
      code: "workspace_broken",
      reason: `It builds on the commit ${sha.slice(0, 12)}, which ${mirror.url} no longer has: a branch was rewritten or deleted.`,
      retryable: false,
      remedy: "Tell the agent in a message to make the change again: the diff is on this session.",
    });
  }
}
