import { randomInt, randomUUID } from "node:crypto";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { lstat, mkdir, readdir, readlink, rename, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SessionError } from "../../domain/errors/errors.ts";
import { createPeriodic } from "../../lifecycle/periodic.ts";
import type { Service } from "../../lifecycle/service.ts";
import { runProgram } from "./run-program.ts";

/** User ids for sandboxes; `last` is included. */
export interface UidRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Outside every range that distributions, systemd (https://systemd.io/UIDS-GIDS), /etc/subuid or SSSD assign, and below
 * 2^31, above which some programs fail.
 */
const usual: UidRange = { first: 2_100_000_000, last: 2_100_999_999 };
/** For a server whose user namespace has few user ids, as in a container whose engine maps root to another user. */
const inNamespace: UidRange = { first: 64_748, last: 65_247 };

/** The default range. @param map lines of /proc/self/uid_map (user_namespaces(7)) */
export function defaultUids(map = readMap()): UidRange {
  const isThere = map.split("\n").some((line) => {
    const [first = 0, , count = 0] = line.trim().split(/\s+/u).map(Number);
    return first <= usual.first && first + count > usual.last;
  });
  return isThere || map === "" ? usual : inNamespace;
}

function readMap(): string {
  try {
    return readFileSync("/proc/self/uid_map", "utf8");
  } catch {
    return "";
  }
}

/** Folders of the claims on user ids, shared by all servers of a machine. */
const claimFolders = ["/run/offstage-uids", join(tmpdir(), "offstage-uids")];
/** The folders of a claim younger than this may not exist yet. */
const youngMs = 60 * 60_000;
const luckyTries = 20;
const sweepEveryMs = 60 * 60_000;

/**
 * Assigns user ids of this machine to sessions. A claim is a symbolic link, created atomically, named by the user id;
 * it points to the folder whose children belong to that user. So a claim that was not released, because the server was
 * killed, is recognised as stale by its folder. After a restart of the machine the claims may be gone: a session that
 * continues claims its own id again. Whatever happens to claims, an id is never assigned while a process has it.
 */
export class UidClaims {
  readonly #range: UidRange;
  readonly #folders: readonly string[];
  /** Ids that this process claimed, by folder. */
  readonly #given = new Map<string, Set<number>>();
  #folder: Promise<string | null> | null = null;
  /** Releases stale claims of killed servers, at its start and every hour. */
  readonly sweeper: Service = createPeriodic({
    pass: () => this.#removeStale(),
    everyMs: sweepEveryMs,
    // Another pass, or the next claim that finds no free id, tries again.
    onFailure: () => undefined,
  });

  /** @param folders candidates for the claims' folder: the first that can be created is used */
  constructor(range: UidRange, folders: readonly string[] = claimFolders) {
    this.#range = range;
    this.#folders = folders;
  }

  /**
   * The user id of a folder's children: the one that they have, unless another session has claimed it meanwhile, or a
   * new one.
   * @param holder the folder
   * @throws SessionError sandbox_unavailable if all ids are taken
   */
  async of(holder: string): Promise<number> {
    const uid = await this.#find(holder);
    const given = this.#given.get(holder) ?? new Set();
    this.#given.set(holder, given.add(uid));
    return uid;
  }

  /**
   * Releases the ids of a deleted folder's children. An id that a process still has, as in a container that its engine
   * did not end, stays claimed until `sweeper` finds no such process.
   */
  async giveBack(holder: string): Promise<void> {
    for (const [known, uids] of this.#given) {
      if (known !== holder && !known.startsWith(`${holder}/`)) continue;
      this.#given.delete(known);
      for (const uid of uids) if (await isIdle(uid)) await this.#drop(uid, known);
    }
  }

  /** Has a folder that was renamed keep its ids. */
  async move(from: string, to: string): Promise<void> {
    const given = this.#given.get(from) ?? new Set<number>();
    this.#given.delete(from);
    this.#given.set(to, new Set([...(this.#given.get(to) ?? []), ...given]));
    const folder = await this.#place();
    if (folder === null) return;
    for (const uid of given) {
      const claim = join(folder, String(uid));
      if ((await readlink(claim).catch(() => null)) !== from) continue;
      const aside = join(folder, `.${randomUUID()}`);
      await symlink(to, aside);
      await rename(aside, claim);
    }
  }

  async #find(holder: string): Promise<number> {
    for (const uid of ownersIn(holder)) if (this.#isOurs(uid) && (await this.#claim(uid, holder))) return uid;
    const { first, last } = this.#range;
    for (let tries = 0; tries < luckyTries; tries += 1) {
      const uid = randomInt(first, last + 1);
      if (await this.#claim(uid, holder)) return uid;
    }
    await this.#removeStale();
    const folder = await this.#place();
    const taken = new Set(folder === null ? [] : (await readdir(folder)).map(Number));
    for (let uid = first; uid <= last; uid += 1) {
      if (!taken.has(uid) && (await this.#claim(uid, holder))) return uid;
    }
    throw new SessionError({
      code: "sandbox_unavailable",
      reason: `Every user id of OFFSTAGE_SANDBOX_UIDS (${first}-${last}) belongs to a session whose folders are kept, or has a process that still runs.`,
      retryable: true,
      remedy:
        "Widen OFFSTAGE_SANDBOX_UIDS, or keep sessions' folders for fewer days (OFFSTAGE_WORKSPACE_DAYS), then retry.",
    });
  }

  #isOurs(uid: number): boolean {
    return uid >= this.#range.first && uid <= this.#range.last;
  }

  async #claim(uid: number, holder: string): Promise<boolean> {
    const folder = await this.#place();
    if (folder === null) return isIdle(uid);
    const claim = join(folder, String(uid));
    try {
      await symlink(holder, claim);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      return (await readlink(claim).catch(() => null)) === holder;
    }
    if (await isIdle(uid)) return true;
    await this.#drop(uid, holder);
    return false;
  }

  /** Renames the claim before it checks it: another server may have reassigned the id in the meantime. */
  async #drop(uid: number, holder: string): Promise<void> {
    const folder = await this.#place();
    if (folder === null) return;
    const claim = join(folder, String(uid));
    const aside = join(folder, `.${randomUUID()}`);
    try {
      await rename(claim, aside);
    } catch {
      // Another server has already released it.
      return;
    }
    const found = await readlink(aside);
    if (found !== holder) await symlink(found, claim).catch(() => undefined);
    await rm(aside, { force: true });
  }

  /** Releases claims whose folders are gone, or belong to other users now. */
  async #removeStale(): Promise<void> {
    const folder = await this.#place();
    for (const name of folder === null ? [] : await readdir(folder)) {
      const claim = join(folder ?? "", name);
      const made = await lstat(claim).catch(() => null);
      const holder = await readlink(claim).catch(() => null);
      if (made === null || holder === null || Date.now() - made.mtimeMs < youngMs) continue;
      const uid = Number(name);
      if (Number.isNaN(uid)) await rm(claim, { force: true });
      else if (!ownersIn(holder).includes(uid) && (await isIdle(uid))) await this.#drop(uid, holder);
    }
  }

  /**
   * Folder of the claims; null if none can be used: then ids are chosen at random, and claims of other servers are
   * unknown.
   */
  #place(): Promise<string | null> {
    return (this.#folder ??= firstOwn(this.#folders));
  }
}

/**
 * Shell code that may start a second process only if the shell is its user's only process (RLIMIT_NPROC, getrlimit(2)).
 */
const onlyIfAlone = "ulimit -u 2 2> /dev/null || ulimit -p 2 || exit 3; (exit 0); exit 0";
/** Some shells retry for long to start a process. */
const aloneLimitMs = 5_000;

/**
 * Whether no process of the machine has the user id. The kernel counts: reading a list of processes could miss one that
 * keeps forking and ending.
 */
async function isIdle(uid: number): Promise<boolean> {
  try {
    await runProgram("/bin/sh", ["-c", onlyIfAlone], {
      uid,
      gid: uid,
      cwd: "/",
      timeout: aloneLimitMs,
      killSignal: "SIGKILL",
    });
    return true;
  } catch (error) {
    // A server without the right to change its uid (CAP_SETUID) can't use the kernel's count.
    return (error as NodeJS.ErrnoException).code === "EPERM" && !uidsInSight().has(uid);
  }
}

/** User ids of all processes that /proc shows (proc_pid_status(5)). */
function uidsInSight(): Set<number> {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/u.test(name));
  return new Set(
    pids.flatMap((pid) => {
      try {
        const [, ...uids] = /^Uid:\t(\d+)\t(\d+)\t(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
        return uids.map(Number);
      } catch {
        // Gone in the meantime.
        return [];
      }
    }),
  );
}

async function firstOwn(folders: readonly string[]): Promise<string | null> {
  for (const folder of folders) {
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const found = await lstat(folder);
      // Another user may have created it in a world-writable folder.
      if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) continue;
      const trial = join(folder, randomUUID());
      await symlink("/", trial);
      await rm(trial);
      return folder;
    } catch {
      // Read-only, or not ours: the next may do.
    }
  }
  return null;
}

/** Owners of a folder's entries, without root. */
function ownersIn(holder: string): number[] {
  try {
    const owners = readdirSync(holder).map(
      (name) => lstatSync(join(holder, name), { throwIfNoEntry: false })?.uid ?? 0,
    );
    return [...new Set(owners)].filter((uid) => uid !== 0);
  } catch {
    // Gone, or no folder: then no user's.
    return [];
  }
}
