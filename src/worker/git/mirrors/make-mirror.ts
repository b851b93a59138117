import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { mustGit } from "../git.ts";
import { formatOf, type ObjectFormat } from "../object-format.ts";
import { mendIfDamaged } from "./mend.ts";
import { remoteOptions, mirrorUsedMark, type Mirror } from "./mirror.ts";
import { listRefs } from "./ask-remote.ts";
import { targetNotFound } from "./branch-refusals.ts";

/** Makes the mirror if it is missing, mends it if it is damaged, and marks it as used. */
export async function ensureMirror(mirror: Mirror, signal: AbortSignal): Promise<void> {
  await mendIfDamaged(mirror, signal);
  if (!existsSync(mirror.path)) await makeMirror(mirror, signal);
  await writeFile(join(mirror.path, mirrorUsedMark), "");
}

/** Age, in ms, after which the lock on a mirror's packed refs is a leftover: longer than git ever holds it. */
const lockLimitMs = 10_000;

const lockCheckMs = 100;

/**
 * Removes lock files of git processes that were killed along with their machine or container: those of the session's own refs,
 * which no other process writes, and the lock on all packed refs, once it is too old to be held. Waits for that one.
 * @param mirror its path
 */
export async function breakLocks(mirror: string, sessionId: string, signal: AbortSignal): Promise<void> {
  const pins = join(mirror, "refs/offstage", sessionId);
  const fetching = join(mirror, "refs/offstage/fetching");
  for (const folder of [pins, fetching]) {
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    for (const name of names) {
      const isOwn = folder === pins || name.includes(sessionId);
      if (isOwn && name.endsWith(".lock")) await rm(join(folder, name), { force: true });
    }
  }
  const list = join(mirror, "packed-refs.lock");
  for (let waitedMs = 0; waitedMs <= lockLimitMs; waitedMs += lockCheckMs) {
    const found = await stat(list).catch(() => null);
    if (found === null) return;
    if (Date.now() - found.mtimeMs > lockLimitMs) return rm(list, { force: true });
    await pause(lockCheckMs, undefined, { signal });
  }
}

/** Made in a temporary folder and renamed, so that no process sees a half-made mirror. */
async function makeMirror(mirror: Mirror, signal: AbortSignal): Promise<void> {
  const mirrors = join(mirror.path, "..");
  await mkdir(mirrors, { recursive: true, mode: 0o700 });
  const unfinished = await mkdtemp(join(mirrors, ".new-"));
  try {
    const format = await askFormat(mirror, unfinished, signal);
    await mustGit(["init", "--quiet", `--object-format=${format}`, "--bare", join(unfinished, "mirror.git")], {
      cwd: mirrors,
      signal,
    });
    await rename(join(unfinished, "mirror.git"), mirror.path);
  } catch (error) {
    // Another session made it in the meantime, which is just as good.
    if (!existsSync(mirror.path)) throw error;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/**
 * The object format of the remote. It is asked from outside of any repository: in one, git takes the repository's format for the
 * remote's, and fails if it is another.
 * @param empty path of an empty folder
 * @throws SessionError target_branch_not_found if it has no branch, so that its format is not known yet; repository_*
 */
async function askFormat(mirror: Mirror, empty: string, signal: AbortSignal): Promise<ObjectFormat> {
  const options = { ...(await remoteOptions({ ...mirror, path: empty }, signal)), outsideRepositories: true };
  const listed = await listRefs(mirror, [mirror.url, "HEAD", "refs/heads/*"], options);
  if (listed === "") throw targetNotFound(mirror.url, null, { defaultBranch: null, names: [] });
  return formatOf(listed.slice(0, listed.indexOf("\t")));
}
