import { existsSync } from "node:fs";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../observability.ts";
import { diskUsage } from "../../sandboxes/process/disk-usage.ts";
import { isOlderThanADay } from "../disk/age.ts";
import { namesIn, type SessionFolders } from "../disk/session-folders.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import { damageOf } from "../git/damage.ts";
import { markDamaged } from "../git/mirrors/mend.ts";
import { fetchPrefix, outdatedMark } from "../git/mirrors/fetch.ts";
import { mustGit } from "../git/git.ts";
import { pruneContents } from "../git/lfs/prune-contents.ts";
import { lfsStore } from "../git/lfs/store.ts";
import { mirrorUsedMark } from "../git/mirrors/mirror.ts";
import { pinsOf, removedPrefix, removeUnpinned } from "../git/mirrors/remove-mirror.ts";

const dayMs = 24 * 60 * 60 * 1_000;
/** Bounds above which a mirror is repacked: git slows down with each pack and each loose object that it must search. */
const manyPacks = 20;
const manyLoose = 5_000;
/** How many branches' `latest` refs a mirror keeps, for the next fetch to build on. */
const latestKept = 50;
/** Most time of one repack, in ms. */
const longestMs = 60 * 60 * 1_000;

interface MirrorLimits {
  /** Days after which an unused mirror is removed, and an unused content in LFS of one that is used; 0: never. */
  readonly days: number;
  /** Most bytes of all mirrors; beyond it the least recently used are removed. 0: no limit. */
  readonly maximumBytes: number;
  /** Whether the disk has room for sessions; if not, the least recently used go until it has. Omitted: it is not asked. */
  readonly hasRoom?: () => Promise<boolean>;
  /** Whether what can't be removed now, since a session borrows from it, is to go later, whatever the limits are then; false if omitted. */
  readonly alsoLater?: boolean;
}

interface KnownMirror {
  readonly path: string;
  readonly bytes: number;
  readonly packs: number;
  readonly loose: number;
  readonly usedAtMs: number;
  readonly isOutdated: boolean;
}

/** The mirrors, and the session folders whose clones borrow from them. */
interface Kept {
  readonly mirrors: Pick<Mirrors, "directory" | "use">;
  readonly folders: Pick<SessionFolders, "isKept">;
}

/**
 * Removes mirrors that were unused for too long, exceed the size limit or leave the disk no room, except those that a session's clone borrows from;
 * repacks the others, and removes contents of files in LFS from them that were unused for too long. Errors about one mirror are logged. A removal that a crash interrupts is completed the next time.
 * @returns how many mirrors were removed, and of how many it is unknown or true that they should be, and are not
 */
export async function maintainMirrors(
  { logger, ...kept }: Kept & { readonly logger: Logger },
  { days, maximumBytes, hasRoom = () => Promise.resolve(true), alsoLater = false }: MirrorLimits,
  signal: AbortSignal,
): Promise<{ readonly removed: number; readonly failed: number }> {
  const { mirrors } = kept;
  const names = await namesIn(mirrors.directory);
  await removeLeftovers(mirrors.directory, names);
  const known: KnownMirror[] = [];
  let [removed, failed] = [0, 0];
  for (const name of names.filter((each) => each.endsWith(".git"))) {
    if (signal.aborted) return { removed, failed };
    try {
      await removeUnfinishedFetches(join(mirrors.directory, name));
      known.push(await inspect(join(mirrors.directory, name), signal));
    } catch (error) {
      failed += 1;
      if (damageOf(error) !== null) await markDamaged(join(mirrors.directory, name));
      if (!signal.aborted) logger.warn({ err: error, mirror: name }, "could not inspect a mirror");
    }
  }
  let total = known.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const mirror of known.toSorted((one, other) => one.usedAtMs - other.usedAtMs)) {
    if (signal.aborted) break;
    const isOld = mirror.isOutdated || (days > 0 && Date.now() - mirror.usedAtMs > days * dayMs);
    const isTooMuch = (maximumBytes > 0 && total > maximumBytes) || !(await hasRoom());
    try {
      if ((isOld || isTooMuch) && (await removeUnpinned(kept, mirror.path, signal))) {
        total -= mirror.bytes;
        removed += 1;
      } else {
        if (alsoLater) await writeFile(join(mirror.path, outdatedMark), "");
        if (days > 0) await pruneContents(lfsStore(mirror.path), days, signal);
        await letGoOfPins(kept, mirror, signal);
        // It writes what it joins before it removes it.
        if (await hasRoom()) await pack(mirror, signal);
      }
    } catch (error) {
      if (isOld || isTooMuch) failed += 1;
      if (!signal.aborted) logger.warn({ err: error, mirror: mirror.path }, "could not maintain a mirror; will retry");
    }
  }
  return { removed, failed };
}

/** Removes fetch folders that killed processes left. */
async function removeUnfinishedFetches(mirror: string): Promise<void> {
  for (const name of await readdir(mirror)) {
    const path = join(mirror, name);
    if (name.startsWith(fetchPrefix) && (await isOlderThanADay(path))) await rm(path, { recursive: true, force: true });
  }
}

/** Removes unfinished and half-removed mirrors that killed processes left. */
async function removeLeftovers(directory: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = join(directory, name);
    if (name.startsWith(removedPrefix) || (name.startsWith(".new-") && (await isOlderThanADay(path)))) {
      await rm(path, { recursive: true, force: true });
    }
  }
}

async function inspect(path: string, signal: AbortSignal): Promise<KnownMirror> {
  const counted = await mustGit(["count-objects", "-v"], { cwd: path, signal });
  const numberOf = (name: string): number => Number(new RegExp(`^${name}: (\\d+)$`, "mu").exec(counted)?.[1] ?? 0);
  const inLfs = (await diskUsage([lfsStore(path)], null))?.bytes ?? 0;
  const { mtimeMs } = await stat(join(path, mirrorUsedMark)).catch(() => stat(path));
  return {
    path,
    bytes: (numberOf("size") + numberOf("size-pack") + numberOf("size-garbage")) * 1024 + inLfs,
    packs: numberOf("packs"),
    loose: numberOf("count"),
    usedAtMs: mtimeMs,
    isOutdated: existsSync(join(path, outdatedMark)),
  };
}

/**
 * Repacking uses one core, since sessions run at the same time. A delta window over large files, which strangers chose, could
 * take gigabytes of memory.
 */
const packsWith = [
  "pack.threads=1",
  "pack.windowMemory=256m",
  "pack.deltaCacheSize=64m",
  "core.bigFileThreshold=64m",
].flatMap((setting) => ["-c", setting]);

/** Lets go of what a mirror keeps for nobody: refs of sessions that are gone, and of branches beyond the latest. */
async function letGoOfPins({ mirrors, folders }: Kept, mirror: KnownMirror, signal: AbortSignal): Promise<void> {
  const options = { cwd: mirror.path, signal };
  await mirrors.use.whileUnused(mirror.path, async () => {
    const pins = await pinsOf(mirror.path, signal);
    const latest = pins.filter(({ ref }) => ref.startsWith("refs/offstage/latest/")).slice(latestKept);
    // A session makes its folder before it pins, so pins without a folder are leftovers of an interrupted removal.
    const left = pins.filter(({ sessionId }) => sessionId !== null && !folders.isKept(sessionId));
    for (const { ref } of [...latest, ...left]) await mustGit(["update-ref", "-d", ref], options);
  });
}

/**
 * Joins a mirror's small packs and its loose objects into larger packs, until each has twice the objects of the next smaller one
 * (git-repack(1), --geometric): a pack of gigabytes is not written again for some small ones beside it. Nothing is dropped, not even
 * unreachable objects: a clone that borrows from the mirror may use them, and if a pack disappears, git searches the new one. So no session
 * has to wait. `git gc` and `git maintenance` would drop unreachable objects after some days.
 */
async function pack(mirror: KnownMirror, signal: AbortSignal): Promise<void> {
  const folder = join(mirror.path, "objects/pack");
  for (const path of await unfinishedPacks(folder)) if (await isOlderThanADay(path)) await rm(path, { force: true });
  if (mirror.packs <= manyPacks && mirror.loose <= manyLoose) return;
  const options = { cwd: mirror.path, signal: AbortSignal.any([signal, AbortSignal.timeout(longestMs)]) };
  const ofOthers = new Set(await unfinishedPacks(folder));
  try {
    await mustGit([...packsWith, "repack", "--geometric=2", "-d", "--quiet"], options);
  } catch (error) {
    // They may be as large as the mirror.
    for (const path of await unfinishedPacks(folder)) if (!ofOthers.has(path)) await rm(path, { force: true });
    throw error;
  }
  await mustGit(["pack-refs", "--all", "--prune"], options);
}

/** Paths of temporary packs, which git processes write or left when they were killed. */
async function unfinishedPacks(folder: string): Promise<string[]> {
  const names = await readdir(folder);
  return names.filter((name) => /^\.?tmp[-_]/u.test(name)).map((name) => join(folder, name));
}
