import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { programText } from "../../programs/program-text.ts";
import { mountsBelow } from "../../sandboxes/process/mounts.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";

// A workspace may be an overlay (https://docs.kernel.org/filesystems/overlayfs.html): read-only layers, and a folder
// beside them for the changes. It is mounted once on this machine, and bound into each sandbox of its session: two
// mounts with one folder of changes would destroy it.

/** Folder of what was changed in the workspace of a place, which is the folder of a session or of one setup. */
export function changesIn(place: string): string {
  return join(place, "changes");
}

/**
 * Mounts an overlay at a place's folder `workspace`, which exists, beside its folder `changes`, whose owner all files of the layers
 * appear to have. Needs root and Linux 5.19.
 * @param layers the topmost first; their files belong to root
 * @throws Error with the system's reason; nothing is mounted then
 */
export async function mountOverlay(place: string, layers: readonly string[]): Promise<void> {
  await mkdir(join(place, "overlay"), { recursive: true, mode: 0o700 });
  await runProgram("perl", ["-e", programText(import.meta.url, "mount-overlay.pl"), place, ...layers]);
}

/** Where overlays are mounted: at a folder and below it, the deepest first. @returns real paths */
export async function overlaysBelow(folder: string): Promise<string[]> {
  return (await mountsBelow(folder)).filter(({ type }) => type === "overlay").map(({ at }) => at);
}

/** Whether an overlay is mounted at a folder itself. */
export async function isOverlay(folder: string): Promise<boolean> {
  const real = await realpath(folder).catch(() => null);
  return real !== null && (await overlaysBelow(folder)).includes(real);
}

/**
 * Unmounts all overlays at a folder and below it. What was changed stays.
 * @param how.lazily whether one that a process still looks into disappears all the same: only if nothing mounts it again. Without it
 *   such a one stays mounted
 * @returns whether none is left
 * @throws Error with the system's reason
 */
export async function unmountOverlays(folder: string, { lazily }: { readonly lazily: boolean }): Promise<boolean> {
  for (const at of await overlaysBelow(folder)) {
    try {
      await runProgram("umount", ["--", at]);
    } catch (error) {
      if (lazily) await runProgram("umount", ["--lazy", "--", at]);
      else if (!isBusy(error)) throw error;
    }
  }
  return (await overlaysBelow(folder)).length === 0;
}

function isBusy(error: unknown): boolean {
  return /busy/iu.test((error as { stderr?: string }).stderr ?? "");
}
