import { runProgram } from "../../sandboxes/process/run-program.ts";

/**
 * Twice: some programs make folders that even their owner may not change. What could not be removed is said at the end, however
 * much it is.
 */
const script = `
rm -rf -- "$1" 2> /dev/null && exit 0
chmod -R u+rwx -- "$1" 2> /dev/null
rm -rf -- "$1" 2>&1 | tail -c 500 >&2
[ ! -e "$1" ]`;

/**
 * Removes a folder with all in it, whatever an agent made there: a hundred thousand folders in each other have a path that is
 * longer than any call of the system takes (PATH_MAX), which the system's own program goes around. Links are not followed.
 * @throws Error with its words if something is left
 */
export async function removeFolder(path: string): Promise<void> {
  await runProgram("sh", ["-c", script, "sh", path]);
}
