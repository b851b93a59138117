import { existsSync } from "node:fs";
import { chmod, lstat, mkdir, mkdtemp, open, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { messageOf, SessionError } from "../../domain/errors/errors.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";
import type { DiskBounds } from "./checkout-size.ts";

/**
 * Where sessions' folders are stored: on the data folder's file system, or each on its own disk, sized to its bounds.
 */
export interface SessionDisks {
  /** Makes an empty disk and mounts it at the folder, which exists and is empty. @throws SessionError sandbox_unavailable */
  make(sessionId: string, folder: string): Promise<void>;
  /** Mounts the session's disk at the folder, if it has one. @throws SessionError sandbox_unavailable */
  open(sessionId: string, folder: string): Promise<void>;
  /**
   * Mounts the session's workspace in its folder, if it is a separate mount. Its disk is open.
   * @returns false if its contents are lost
   */
  openWorkspace(sessionId: string, folder: string): Promise<boolean>;
  /** Unmounts all of it until it is opened again. */
  close(sessionId: string, folder: string): Promise<void>;
  /**
   * Whether the disk that is mounted at the folder has no room for bytes or files; false if the session has no separate
   * disk.
   */
  isFull(folder: string): Promise<boolean>;
  /** Unmounts and deletes it. @throws SessionError sandbox_unavailable if its image can't be deleted */
  remove(sessionId: string, folder: string): Promise<void>;
}

const nothing = (): Promise<void> => Promise.resolve();

/** No separate disks: the sizes of the folders are watched instead. */
export const watchedDisks: SessionDisks = {
  make: nothing,
  open: nothing,
  openWorkspace: () => Promise.resolve(true),
  close: nothing,
  isFull: () => Promise.resolve(false),
  remove: nothing,
};

const inodeBytes = 256;
const journalMegabytes = 16;
/** Bytes for each inode, if the number of files has no bound. */
const bytesPerFile = 4_096;
/** A disk with less room counts as full. */
const leastRoomBytes = 1024 ** 2;
/** Inodes beyond the bound, for exporting the work. */
const sparedFiles = 1_000;

/**
 * Gives each session a file system image (ext4), mounted at its folder: the kernel enforces its size, whichever process writes,
 * and counts deleted files that are still open. The image is sparse: it occupies only what is in it, and freed blocks are
 * returned. It is a quarter larger than the bound, so that the work of an agent that filled its disk can still be exported; the
 * agent is stopped at the bound itself.
 * Needs Linux, root, loop devices and `mkfs.ext4`.
 * @param directory of the images
 * @param bounds of one session
 */
export function createImageDisks(directory: string, bounds: DiskBounds): SessionDisks {
  const imageOf = (sessionId: string): string => join(directory, `${sessionId}.ext4`);
  const files = (bounds.files ?? Math.ceil(bounds.diskBytes / bytesPerFile)) + sparedFiles;
  const bytes = Math.ceil(bounds.diskBytes * 1.25) + files * inodeBytes + 2 * journalMegabytes * 1024 ** 2;

  async function make(sessionId: string, folder: string): Promise<void> {
    const image = imageOf(sessionId);
    await doing("make a session's disk", async () => {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await rm(image, { force: true });
      const file = await open(image, "wx", 0o600);
      try {
        await file.truncate(bytes);
      } finally {
        await file.close();
      }
      const lazily = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
      const sizes = ["-m", "0", "-N", String(files), "-J", `size=${journalMegabytes}`, "-E", lazily];
      await runProgram("mkfs.ext4", ["-q", "-F", ...sizes, image]);
      await mount(image, folder);
      await chmod(folder, 0o700);
    });
  }

  return {
    make,
    async open(sessionId, folder) {
      if (!existsSync(imageOf(sessionId)) || !existsSync(folder) || (await isMounted(folder))) return;
      await doing("open a session's disk", () => mount(imageOf(sessionId), folder));
    },
    openWorkspace: () => Promise.resolve(true),
    async close(_sessionId, folder) {
      if (!(await isMounted(folder))) return;
      // Only this frees blocks deleted in the last seconds, if the disk below supports that.
      await runProgram("sync", ["-f", folder]).catch(nothing);
      await runProgram("fstrim", [folder]).catch(nothing);
      await unmount(folder);
    },
    async isFull(folder) {
      if (!(await isMounted(folder))) return false;
      const { bavail, bsize, ffree } = await statfs(folder);
      return bavail * bsize < leastRoomBytes || ffree === 0;
    },
    async remove(sessionId, folder) {
      if (await isMounted(folder)) await unmount(folder);
      await doing("remove a session's disk", () => rm(imageOf(sessionId), { force: true }));
    },
  };
}

/** `discard` returns deleted blocks to the disk below; unused inode tables are not initialised. */
const mountOptions = "loop,nodev,nosuid,discard,noinit_itable";

async function mount(image: string, folder: string): Promise<void> {
  await runProgram("mount", ["-t", "ext4", "-o", mountOptions, image, folder]);
}

/** Unmounts lazily if the folder is busy: the file system then stays, invisible, until the last process closes it. */
async function unmount(folder: string): Promise<void> {
  await runProgram("umount", [folder]).catch(() => runProgram("umount", ["--lazy", folder]));
}

/** Whether the folder is on another device than its parent. */
async function isMounted(folder: string): Promise<boolean> {
  try {
    return (await lstat(folder)).dev !== (await lstat(dirname(folder))).dev;
  } catch {
    return false;
  }
}

async function doing(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw new SessionError({
      code: "sandbox_unavailable",
      reason: `This worker could not ${what}: ${reasonOf(error)}`,
      retryable: true,
      remedy:
        "Run `offstage doctor` on the worker, which lists what a disk for each session needs, or set OFFSTAGE_SANDBOX_DISK=watch.",
    });
  }
}

function reasonOf(error: unknown): string {
  const { stderr, message } = error as Error & { stderr?: string };
  return (stderr?.trim() || message).slice(-500);
}

/** Makes a small image and mounts it, to test whether this machine can. @returns what is missing; null if it works */
export async function imageProblem(): Promise<string | null> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "it needs Linux and root";
  const folder = await mkdtemp(join(tmpdir(), "offstage-disk-"));
  const disks = createImageDisks(join(folder, "disks"), { diskBytes: 16 * 1024 ** 2, files: 1_000 });
  const place = join(folder, "place");
  try {
    await mkdir(place);
    await disks.make("trial", place);
    return (await isMounted(place)) ? null : "a file system was mounted but did not appear";
  } catch (error) {
    return messageOf(error);
  } finally {
    await disks.remove("trial", place);
    await rm(folder, { recursive: true, force: true });
  }
}
