import { programText } from "../../programs/program-text.ts";
import { runProgram } from "../../sandboxes/process/run-program.ts";

/**
 * Removes a folder with everything in it, whatever an agent made there: deeply nested folders have paths longer than a system
 * call takes (PATH_MAX), which `rm` handles. Symbolic links are not followed.
 * @throws Error with the output of `rm` if something is left
 */
export async function removeFolder(path: string): Promise<void> {
  await runProgram("sh", ["-c", programText(import.meta.url, "remove-folder.sh"), "sh", path]);
}
