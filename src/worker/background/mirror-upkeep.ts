import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../observability.ts";
import type { Workspaces } from "../clones/workspace.ts";
import { fetchPrefix } from "../git/fetch.ts";
import { mustGit } from "../git/git.ts";
import { usedMark } from "../git/mirror.ts";

const dayMs = 24 * 60 * 60 * 1_000;
/** Git slows down with each pack that it must look into, and with each object that lies by itself. */
const manyPacks = 20;
const manyLoose = 5_000;
/** Branches whose last fetch the next one builds on. */
const latestKept = 50;
const longestMs = 60 * 60 * 1_000;
/** Of a mirror on its way out, which nobody looks for by now. */
const removedPrefix = "removed-";

interface UpkeepOptions {
  /** Days after which a mirror that was not used is removed; 0: never. */
  readonly days: number;
  /** Beyond it the least recently used are removed; 0: no limit. */
  readonly maximumBytes: number;
}

interface KnownMirror {
  readonly path: string;
  readonly bytes: number;
  readonly packs: number;
  readonly loose: number;
  readonly usedAtMs: number;
}

/**
 * Removes mirrors that were not used for long or are too much, but none that the clone of a session borrows from, and
 * packs those that stay. What is half removed when the process dies is removed the next time.
 * @returns how many were removed
 */
export async function keepMirrors(
  { mirrors, logger }: { readonly mirrors: Workspaces["mirrors"]; readonly logger: Logger },
  { days, maximumBytes }: UpkeepOptions,
  signal: AbortSignal,
): Promise<number> {
  const names = await readdir(mirrors.directory).catch(() => []);
  await removeLeftovers(mirrors.directory, names);
  const known: KnownMirror[] = [];
  for (const name of names.filter((each) => each.endsWith(".git"))) {
    if (signal.aborted) return 0;
    try {
      await removeUnfinishedFetches(join(mirrors.directory, name));
      known.push(await look(join(mirrors.directory, name), signal));
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error, mirror: name }, "could not look at a mirror");
    }
  }
  let total = known.reduce((sum, { bytes }) => sum + bytes, 0);
  let count = 0;
  for (const mirror of known.toSorted((one, other) => one.usedAtMs - other.usedAtMs)) {
    if (signal.aborted) return count;
    try {
      const isOld = days > 0 && Date.now() - mirror.usedAtMs > days * dayMs;
      const isTooMuch = maximumBytes > 0 && total > maximumBytes;
      if ((isOld || isTooMuch) && (await removeUnpinned(mirrors, mirror.path, signal))) {
        total -= mirror.bytes;
        count += 1;
      } else await pack(mirrors, mirror, signal);
    } catch (error) {
      if (!signal.aborted) logger.warn({ err: error, mirror: mirror.path }, "could not keep a mirror; will try again");
    }
  }
  return count;
}

/** Of processes that were killed while they fetched. */
async function removeUnfinishedFetches(mirror: string): Promise<void> {
  for (const name of await readdir(mirror)) {
    const path = join(mirror, name);
    if (name.startsWith(fetchPrefix) && (await isOlderThanADay(path))) await rm(path, { recursive: true, force: true });
  }
}

/** Of processes that were killed while they made or removed a mirror. */
async function removeLeftovers(directory: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = join(directory, name);
    if (name.startsWith(removedPrefix) || (name.startsWith(".new-") && (await isOlderThanADay(path)))) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

async function isOlderThanADay(path: string): Promise<boolean> {
  const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
  return Date.now() - mtimeMs > dayMs;
}

async function look(path: string, signal: AbortSignal): Promise<KnownMirror> {
  const counted = await mustGit(["count-objects", "-v"], { cwd: path, signal });
  const numberOf = (name: string): number => Number(new RegExp(`^${name}: (\\d+)$`, "mu").exec(counted)?.[1] ?? 0);
  const { mtimeMs } = await stat(join(path, usedMark)).catch(() => stat(path));
  return {
    path,
    bytes: (numberOf("size") + numberOf("size-pack") + numberOf("size-garbage")) * 1024,
    packs: numberOf("packs"),
    loose: numberOf("count"),
    usedAtMs: mtimeMs,
  };
}

/** A ref of ours, and the session that it is for; null for what is for none. */
async function pinsOf(path: string, signal: AbortSignal): Promise<{ ref: string; sessionId: string | null }[]> {
  const listed = await mustGit(["for-each-ref", "--sort=-committerdate", "--format=%(refname)", "refs/offstage/"], {
    cwd: path,
    signal,
  });
  return listed
    .split("\n")
    .filter((ref) => ref !== "")
    .map((ref) => ({
      ref,
      sessionId:
        /^refs\/offstage\/(?:fetching\/refs-offstage-)?((?:replay-)?[0-9a-f]{8}-[0-9a-f-]{27})[/-]/u.exec(ref)?.[1] ??
        null,
    }));
}

async function isPinned(mirrors: Workspaces["mirrors"], path: string, signal: AbortSignal): Promise<boolean> {
  const pins = await pinsOf(path, signal);
  return pins.some(({ sessionId }) => sessionId !== null && mirrors.isKept(sessionId));
}

/** Out of the way in one step, so that a session finds it whole or not at all, and makes it again; only then removed. */
async function removeUnpinned(mirrors: Workspaces["mirrors"], path: string, signal: AbortSignal): Promise<boolean> {
  const aside = join(mirrors.directory, `${removedPrefix}${randomBytes(8).toString("hex")}`);
  const isUnused = await mirrors.use.whileUnused(path, async () => {
    if (await isPinned(mirrors, path, signal)) return;
    await rename(path, aside);
    // A replay, which is another process, may have begun to borrow from it.
    if (await isPinned(mirrors, aside, signal)) await rename(aside, path);
  });
  if (!isUnused || !existsSync(aside)) return false;
  await rm(aside, { recursive: true, force: true });
  return true;
}

/**
 * Of the cores one is enough: sessions are at work beside it. A window of large files, which strangers chose, would be
 * gigabytes.
 */
const packsWith = [
  "pack.threads=1",
  "pack.windowMemory=256m",
  "pack.deltaCacheSize=64m",
  "core.bigFileThreshold=64m",
].flatMap((setting) => ["-c", setting]);

/**
 * Puts what many fetches left into one pack. Nothing is dropped, also what no ref reaches (`--keep-unreachable`): a clone
 * that borrows may have come to use it, and git looks for what is in a pack that went away in the new one. So no session
 * has to wait. `git gc` and `git maintenance` would drop what is older than some days.
 */
async function pack(mirrors: Workspaces["mirrors"], mirror: KnownMirror, signal: AbortSignal): Promise<void> {
  const options = { cwd: mirror.path, signal: AbortSignal.any([signal, AbortSignal.timeout(longestMs)]) };
  await mirrors.use.whileUnused(mirror.path, async () => {
    const pins = await pinsOf(mirror.path, signal);
    const latest = pins.filter(({ ref }) => ref.startsWith("refs/offstage/latest/")).slice(latestKept);
    // A session makes its folder before it pins, and a killed removal may have left its pins.
    const left = pins.filter(({ sessionId }) => sessionId !== null && !mirrors.isKept(sessionId));
    for (const { ref } of [...latest, ...left]) await mustGit(["update-ref", "-d", ref], options);
  });
  if (mirror.packs <= manyPacks && mirror.loose <= manyLoose) return;
  await removeUnfinishedPacks(join(mirror.path, "objects/pack"));
  await mustGit([...packsWith, "repack", "-a", "-d", "--keep-unreachable", "--quiet"], options);
  await mustGit(["pack-refs", "--all", "--prune"], options);
}

/** Of gits that were killed. */
async function removeUnfinishedPacks(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    if (/^\.?tmp[-_]/u.test(name) && (await isOlderThanADay(path))) await rm(path, { force: true });
  }
}
