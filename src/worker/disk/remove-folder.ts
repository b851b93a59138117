import { programText } from "../../programs/program-text.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";
import { unmountOverlays } from "./overlay.ts";

/**
 * Removes a folder with everything in it, whatever an agent made there: deeply nested folders have paths longer than a system
 * call takes (PATH_MAX), which `rm` handles. Symbolic links are not followed. An overlay in it is unmounted first: removing goes
 * through no mount.
 * @throws Error with the output of `rm` or `umount` if something is left
 */
export async function removeFolder(path: string): Promise<void> {
  await unmountOverlays(path, { lazily: true });
  await runProgram("sh", ["-c", programText(import.meta.url, "remove-folder.sh"), "sh", path]);
}
