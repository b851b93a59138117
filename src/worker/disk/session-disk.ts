import { existsSync } from "node:fs";
import { chmod, lstat, mkdir, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { RunError } from "../../domain/errors.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";
import type { DiskBounds } from "./checkout-size.ts";

/** Where a session's folders are: on the data folder's own file system, or each session's on one that has the size of its bound. */
export interface SessionDisks {
  /** Makes an empty one at the folder, which is there and empty. @throws RunError sandbox_unavailable */
  make(sessionId: string, folder: string): Promise<void>;
  /** Sees to it that it is at the folder, if there is one. @throws RunError sandbox_unavailable */
  open(sessionId: string, folder: string): Promise<void>;
  /** Takes it from the folder until it is opened again. */
  close(sessionId: string, folder: string): Promise<void>;
  /** Removes it with all that is on it. */
  remove(sessionId: string, folder: string): Promise<void>;
}

const nothing = (): Promise<void> => Promise.resolve();

/** Nothing to do: the folders are watched. */
export const watchedDisks: SessionDisks = { make: nothing, open: nothing, close: nothing, remove: nothing };

const inodeBytes = 256;
const journalMegabytes = 16;
/** If the number of files has no bound, so many fit. */
const bytesPerFile = 4_096;
/** Beyond the bound, for taking the work out. */
const sparedFiles = 1_000;

/**
 * A file system image (ext4) for each session, mounted over its folder: the kernel lets nothing grow beyond it, whoever writes, and
 * counts removed files too. The image is sparse: it takes what is in it, and gives back what is removed. A quarter more than the
 * bound has room, so that the work of an agent that filled its disk can still be taken out; at the bound itself it is ended.
 * Needs root, loop devices, and `mkfs.ext4`.
 * @param directory where the images are
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
    async close(_sessionId, folder) {
      if (!(await isMounted(folder))) return;
      // What was removed in the last seconds is given back by this alone, if the disk below can do that at all.
      await runProgram("sync", ["-f", folder]).catch(nothing);
      await runProgram("fstrim", [folder]).catch(nothing);
      await unmount(folder);
    },
    async remove(sessionId, folder) {
      if (await isMounted(folder)) await unmount(folder);
      await doing("remove a session's disk", () => rm(imageOf(sessionId), { force: true }));
    },
  };
}

/** What is removed is given back to the disk that the image is on; tables of inodes are not written until they are used. */
const mountOptions = "loop,nodev,nosuid,discard,noinit_itable";

async function mount(image: string, folder: string): Promise<void> {
  await runProgram("mount", ["-t", "ext4", "-o", mountOptions, image, folder]);
}

/** Whatever still looks into it keeps it, out of sight, until it is gone. */
async function unmount(folder: string): Promise<void> {
  await runProgram("umount", [folder]).catch(() => runProgram("umount", ["--lazy", folder]));
}

/** A folder on another device than the one that it lies in. */
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
    throw new RunError({
      code: "sandbox_unavailable",
      reason: `This worker could not ${what}: ${reasonOf(error)}`,
      retryable: true,
      mend: "Run `offstage doctor` on the worker, which says what a disk for each session needs, or set OFFSTAGE_SANDBOX_DISK=watch.",
    });
  }
}

function reasonOf(error: unknown): string {
  const { stderr, message } = error as Error & { stderr?: string };
  return (stderr?.trim() || message).slice(-500);
}

/** Really makes a small one and mounts it. @returns what is missing; null if it works */
export async function imageProblem(): Promise<string | null> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "it needs Linux and root";
  const folder = await mkdtemp(join(tmpdir(), "offstage-disk-"));
  const disks = createImageDisks(join(folder, "disks"), { diskBytes: 16 * 1024 ** 2, files: 1_000 });
  const place = join(folder, "place");
  try {
    await mkdir(place);
    await disks.make("trial", place);
    return (await isMounted(place)) ? null : "a file system was mounted, and is not there";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await disks.remove("trial", place);
    await rm(folder, { recursive: true, force: true });
  }
}
