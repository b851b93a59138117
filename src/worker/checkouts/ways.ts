import { copyFile, constants, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../domain/errors/errors.ts";
import { sandboxUid } from "../../sandboxes/process/ownership.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { changesIn, mountOverlay } from "../disk/overlay.ts";
import { removeFolder } from "../disk/remove-folder.ts";

/**
 * How clones get their files:
 * - `overlay`: the workspace is an overlay on a shared checkout, so a clone takes no more time and disk than what it changes
 * - `copy`: a shared checkout is copied as the file system copies files that share their blocks (reflink, ioctl_ficlone(2))
 * - `checkout`: git writes all files into each clone
 */
export type Way = "overlay" | "copy" | "checkout";

/** Prefix of the folder in which a way is tried. */
export const trialPrefix = ".trial-";

/** The way of a worker. */
export interface ChosenWay {
  readonly way: Way;
  /** Why it is none of those before it in the list; empty if it is the first. */
  readonly why: string;
}

/**
 * Tries which way works on this machine, the best one first.
 * @param directory folder of the shared checkouts
 * @param asked the way to begin with; `auto`: the first
 */
export async function chooseWay(
  directory: string,
  asked: Way | "auto",
  sandbox: Pick<Sandbox, "kind">,
): Promise<ChosenWay> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const said = `OFFSTAGE_WORKSPACES is ${asked}`;
  const overlay = asked === "copy" || asked === "checkout" ? said : await overlayProblem(directory, sandbox);
  if (overlay === null) return { way: "overlay", why: "" };
  const copy = asked === "checkout" ? said : await copyProblem(directory);
  if (copy === null) return { way: "copy", why: `no overlays: ${overlay}` };
  return { way: "checkout", why: overlay === copy ? overlay : `no overlays: ${overlay}; no copies: ${copy}` };
}

/** Mounts a small overlay, and looks whether it is as sessions need it. @returns why not; null if it is */
async function overlayProblem(directory: string, { kind }: Pick<Sandbox, "kind">): Promise<string | null> {
  if (kind !== "bubblewrap") return `the sandbox is not bubblewrap but ${kind}`;
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "they need Linux and root";
  const folder = await mkdtemp(join(directory, trialPrefix));
  const place = join(folder, "place");
  const workspace = join(place, "workspace");
  try {
    for (const made of ["layer/in", "place/workspace"]) await mkdir(join(folder, made), { recursive: true });
    await mkdir(changesIn(place));
    await runProgram("chown", [`${sandboxUid}:${sandboxUid}`, changesIn(place)]);
    await writeFile(join(folder, "layer/in/file"), "below");
    await mountOverlay(place, [join(folder, "layer")]);
    const { uid } = await lstat(join(workspace, "in/file"));
    await writeFile(join(workspace, "in/file"), "above");
    // A folder that is renamed, and another one in its place, are kept as attributes of files, which not every file system has.
    await rename(join(workspace, "in"), join(workspace, "renamed"));
    await mkdir(join(workspace, "in"));
    const [above, below] = await Promise.all(
      [join(changesIn(place), "renamed/file"), join(folder, "layer/in/file")].map((path) => readFile(path, "utf8")),
    );
    const isRight = uid === sandboxUid && above === "above" && below === "below";
    return isRight && (await readdir(join(workspace, "in"))).length === 0
      ? null
      : "one was mounted, but does not do what it should";
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    return (stderr?.trim() || messageOf(error)).slice(-300);
  } finally {
    await removeFolder(folder);
  }
}

/** @returns why the file system of a folder can't copy files without their blocks; null if it can */
async function copyProblem(directory: string): Promise<string | null> {
  const folder = await mkdtemp(join(directory, trialPrefix));
  try {
    await writeFile(join(folder, "file"), "content".repeat(10_000));
    await copyFile(join(folder, "file"), join(folder, "copy"), constants.COPYFILE_FICLONE_FORCE);
    await runProgram("cp", ["-a", "--reflink=always", join(folder, "file"), join(folder, "again")]);
    return null;
  } catch (error) {
    return (error as { stderr?: string }).stderr === undefined
      ? "the file system of the data folder has none that share blocks (reflink)"
      : "the program cp knows no --reflink";
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
