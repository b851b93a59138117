import { lstat, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { programText } from "../../programs/program-text.ts";
import { mountsBelow } from "./mounts.ts";
import { runProgram } from "./run-program.ts";

/** Disk space and shared memory that a sandbox uses. */
export interface DiskUsage {
  /** Bytes in blocks of the file system, of files in the folders and of deleted files that a process keeps open. */
  readonly bytes: number;
  /** Files and folders, each counted once however many names it has, and deleted ones that a process keeps open. */
  readonly files: number;
  /** Anonymous shared memory (memfd, deleted files of /dev/shm). */
  readonly sharedBytes: number;
  /**
   * Descriptors that were sent over a unix socket and not yet received (SCM_RIGHTS, unix(7)). Their files can't be
   * seen: a deleted file without another descriptor is in none of the other numbers.
   */
  readonly inFlight: number;
}

/** Processes whose deleted open files count: all of a user, or those with these ids. */
export type Holders = { readonly uid: number } | { readonly pids: readonly number[] };

/** Maximum output of one measurement, in bytes; only an agent that provokes it causes more. */
const outputLimit = 64 * 1024 * 1024;
/** A measurement that takes longer is ended. */
const countLimitMs = 120_000;

/**
 * Measures disk usage of folders, in separate processes because an agent decides how long that takes.
 * @param holders processes whose deleted open files count; null: none
 * @returns null if it could not be measured
 */
export async function diskUsage(folders: readonly string[], holders: Holders | null): Promise<DiskUsage | null> {
  const [named, removed] = await Promise.all([
    countNamed(folders),
    holders === null ? noRemoved : countOpen(folders, holders),
  ]);
  if (named === null) return null;
  return {
    bytes: named.bytes + removed.bytes,
    files: named.files + removed.files,
    sharedBytes: removed.sharedBytes,
    inFlight: removed.inFlight,
  };
}

/**
 * Measures a file system of the session's own: immediate, and includes deleted open files.
 * @param folder its mount point
 * @returns null if none is mounted there: the session shares the disk with others
 */
export async function ownDiskUsage(folder: string): Promise<Pick<DiskUsage, "bytes" | "files"> | null> {
  try {
    const [place, around] = await Promise.all([lstat(folder), lstat(dirname(folder))]);
    if (place.dev === around.dev) return null;
    const { blocks, bfree, bsize, files, ffree } = await statfs(folder);
    return { bytes: (blocks - bfree) * bsize, files: files - ffree };
  } catch {
    return null;
  }
}

/** In its own user namespace the server may read folders that their owner, the server's user, has made unreadable. */
const asOwner = ["--unshare-user", "--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--cap-add", "CAP_DAC_READ_SEARCH"];

async function countNamed(folders: readonly string[]): Promise<{ bytes: number; files: number } | null> {
  const counting = ["-c", programText(import.meta.url, "count-folders.sh"), "sh", ...folders];
  let { stdout, stderr } = await outputOf("sh", counting);
  if (process.getuid?.() !== 0 && stderr.includes("Permission denied")) {
    const again = await outputOf("bwrap", [...asOwner, "--ro-bind", "/", "/", "--", "sh", ...counting]);
    if (again.stdout !== "") ({ stdout, stderr } = again);
  }
  const sumOf = (name: string): number | null => {
    const found = [...stdout.matchAll(new RegExp(`^${name} (\\d+)$`, "gmu"))];
    return found.length === 0 ? null : found.reduce((sum, [, count]) => sum + Number(count), 0);
  };
  const bytes = sumOf("bytes");
  return bytes === null ? null : { bytes, files: sumOf("files") ?? 0 };
}

const noRemoved: DiskUsage = { bytes: 0, files: 0, sharedBytes: 0, inFlight: 0 };

async function countOpen(folders: readonly string[], holders: Holders): Promise<DiskUsage> {
  const processes = "uid" in holders ? ["uid", String(holders.uid)] : holders.pids.map(String);
  if (processes.length === 0) return noRemoved;
  // Mounts in them, such as overlays, write to their disk too.
  const mounted = (await Promise.all(folders.map(mountsBelow))).flat().map(({ at }) => at);
  const devices = new Set(
    await Promise.all(
      [...folders, ...mounted].map((folder) =>
        stat(folder).then(
          ({ dev }) => dev,
          () => -1,
        ),
      ),
    ),
  );
  const { stdout } = await outputOf("sh", ["-c", programText(import.meta.url, "count-open.sh"), "sh", ...processes]);
  const seen = new Map<string, { onDisk: boolean; bytes: number }>();
  for (const [, device, inode, blocks] of stdout.matchAll(/^open (\d+):(\d+) (\d+)$/gmu)) {
    seen.set(`${device}:${inode}`, { onDisk: devices.has(Number(device)), bytes: Number(blocks) * 512 });
  }
  const sum = (counted: readonly { bytes: number }[]): number => counted.reduce((total, { bytes }) => total + bytes, 0);
  const open = [...seen.values()];
  const onDisk = open.filter((file) => file.onDisk);
  const shared = [...stdout.matchAll(/^shared (\d+)$/gmu)].reduce((total, [, kB]) => total + Number(kB) * 1024, 0);
  const sockets = new Map(
    [...stdout.matchAll(/^scm_fds:\s*(\d+) ino:\s*(\d+)$/gmu)].map(([, count, inode]) => [inode, Number(count)]),
  );
  return {
    bytes: sum(onDisk),
    files: onDisk.length,
    // A file may be both open and mapped: count it once.
    sharedBytes: Math.max(shared, sum(open.filter((file) => !file.onDisk))),
    inFlight: [...sockets.values()].reduce((total, count) => total + count, 0),
  };
}

/** Ignores exit codes: a file that vanishes during the measurement makes the program exit with 1. */
function outputOf(command: string, parameters: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const options = { maxBuffer: outputLimit, timeout: countLimitMs, killSignal: "SIGKILL" as const };
  return runProgram(command, parameters, options).catch((error: { stdout?: string; stderr?: string }) => ({
    stdout: error.stdout ?? "",
    stderr: error.stderr ?? "",
  }));
}
