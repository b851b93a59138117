import { lstat, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
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
const mostSaid = 64 * 1024 * 1024;
/** A measurement that takes longer is ended. */
const longestLookMs = 120_000;

/**
 * Prints the total bytes and files of each folder, as the file system counts them. Follows no links. Prints totals
 * only, because an agent chooses the names in the folders.
 */
const countFolders = `
LC_ALL=C; export LC_ALL
du -s -x -B1 -- "$@" | sed 's/^\\([0-9]*\\).*/bytes \\1/'
du -s -x --inodes -- "$@" | sed 's/^\\([0-9]*\\).*/files \\1/'`;

/**
 * Prints `device:inode blocks` of each deleted file that a process has open, executes or, if the server has the right
 * to see it, has mapped; the kilobytes of shared memory; and for each socket the number of descriptors in flight with
 * the socket's inode. Arguments: process ids, or `uid` and a user id.
 * A thread may have descriptors of its own; and if a process's first thread has ended, its data are visible only under
 * another thread's id.
 */
const countRemoved = `
LC_ALL=C; export LC_ALL
cd /proc || exit 0
if [ "$1" = uid ]; then
  set -- $(grep -ls "^Uid:[[:space:]]*$2[[:space:]]" [0-9]*/status | sed 's|/status$||')
fi
[ $# -gt 0 ] || exit 0
shown=""
for pid; do
  if ! [ -e "$pid/exe" ]; then
    for thread in "$pid"/task/*; do
      if [ -e "$thread/exe" ]; then pid="\${thread##*/}"; break; fi
    done
  fi
  shown="$shown $pid"
done
of_threads() { for pid; do for thread in "$pid"/task/*; do echo "$thread"; done; done; }
threads="$(of_threads "$@")"
maps=map_files; [ "$(id -u)" = 0 ] || maps=
{
  for thread in $threads; do echo "$thread/fd"; done
  for pid in $shown; do echo "$pid/exe"; [ -z "$maps" ] || echo "$pid/$maps"; done
} | tr '\\n' '\\0' | xargs -0 sh -c 'exec find -L "$@" -maxdepth 1 -type f -links 0 -printf "open %D:%i %b\\n" 2> /dev/null' sh
for pid in $shown; do echo "$pid/smaps_rollup"; done | tr '\\n' '\\0' | xargs -0 cat 2> /dev/null |
  sed -n 's/^Pss_Shmem: *\\([0-9]*\\) kB/shared \\1/p'
for thread in $threads; do echo "$thread/fdinfo"; done | tr '\\n' '\\0' |
  xargs -0 sh -c 'exec find "$@" -maxdepth 1 -type f -print0 2> /dev/null' sh | xargs -0 cat 2> /dev/null |
  sed -n '/^ino:/h; /^scm_fds:[[:space:]]*[1-9]/{G;s/\\n/ /;p;}'
exit 0`;

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
  const counting = ["-c", countFolders, "sh", ...folders];
  let { stdout, stderr } = await said("sh", counting);
  if (process.getuid?.() !== 0 && stderr.includes("Permission denied")) {
    const again = await said("bwrap", [...asOwner, "--ro-bind", "/", "/", "--", "sh", ...counting]);
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
  const devices = new Set(
    await Promise.all(
      folders.map((folder) =>
        stat(folder).then(
          ({ dev }) => dev,
          () => -1,
        ),
      ),
    ),
  );
  const { stdout } = await said("sh", ["-c", countRemoved, "sh", ...processes]);
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
function said(command: string, parameters: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const options = { maxBuffer: mostSaid, timeout: longestLookMs, killSignal: "SIGKILL" as const };
  return runProgram(command, parameters, options).catch((error: { stdout?: string; stderr?: string }) => ({
    stdout: error.stdout ?? "",
    stderr: error.stderr ?? "",
  }));
}
