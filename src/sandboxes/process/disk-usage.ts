import { lstat, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { runProgram } from "./run-program.ts";

/** What a sandbox holds of a disk, and of memory that its processes share. */
export interface DiskUsage {
  /** In blocks of the file system, of files in the folders and of removed ones that a process keeps open. */
  readonly bytes: number;
  /** Files and folders, each once however many names it has; removed ones that are kept open count too. */
  readonly files: number;
  /** Memory without a name (memfd, removed files of /dev/shm), and pages that processes share through it. */
  readonly sharedBytes: number;
  /**
   * Descriptors that were sent over a unix socket and not received yet (SCM_RIGHTS of unix(7)). What they are of can't be seen,
   * and a removed file of which there is no other descriptor is in none of the other numbers.
   */
  readonly inFlight: number;
}

/** Whose processes may keep removed files open: all of a user, or those that are named. */
export type Holders = { readonly uid: number } | { readonly pids: readonly number[] };

/** More words than that of one look are of an agent that made them many. */
const mostSaid = 64 * 1024 * 1024;
/** A look that takes longer is cut off, and the next one begins. */
const longestLookMs = 120_000;

/**
 * Prints two sums of bytes and of files for each folder, as the file system counts them. Nothing is followed.
 * Names in the folders are an agent's, so only totals are printed.
 */
const countFolders = `
LC_ALL=C; export LC_ALL
du -s -x -B1 -- "$@" | sed 's/^\\([0-9]*\\).*/bytes \\1/'
du -s -x --inodes -- "$@" | sed 's/^\\([0-9]*\\).*/files \\1/'`;

/**
 * Prints `device:inode blocks` of each file without a name that a process has open, runs or, where the server may look, has
 * mapped; the kilobytes of memory that they share; and for each socket the number of descriptors on their way to it, with the
 * socket's inode. Processes are given by number, or by `uid` and their user's. A thread may have descriptors of its own; and a
 * process whose first thread is gone shows what it has under the number of another.
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
 * Counts what folders hold on their disk, in processes of their own: an agent decides how long that takes.
 * @param holders processes whose removed files count; null: none
 * @returns null where it could not be counted
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
 * What is used of a disk of the session's own, at once and with all that was removed and is open.
 * @param folder over which such a disk is mounted
 * @returns null if none is: the session's folders are on one that others have too
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

/** In a user namespace of its own the server may look into folders whose owner may not: that owner is the server's user. */
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
    // What is open may be mapped too, and counts once.
    sharedBytes: Math.max(shared, sum(open.filter((file) => !file.onDisk))),
    inFlight: [...sockets.values()].reduce((total, count) => total + count, 0),
  };
}

/** What vanishes while it is counted makes the program end with 1, and is counted all the same. */
function said(command: string, parameters: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const options = { maxBuffer: mostSaid, timeout: longestLookMs, killSignal: "SIGKILL" as const };
  return runProgram(command, parameters, options).catch((error: { stdout?: string; stderr?: string }) => ({
    stdout: error.stdout ?? "",
    stderr: error.stderr ?? "",
  }));
}
