import { runProgram } from "../../sandboxes/process/run-program.ts";

/**
 * A second try with permissions: some programs make folders that even their owner may not change. Only the end of the errors is
 * printed.
 */
const script = `
rm -rf -- "$1" 2> /dev/null && exit 0
chmod -R u+rwx -- "$1" 2> /dev/null
rm -rf -- "$1" 2>&1 | tail -c 500 >&2
[ ! -e "$1" ]`;

/**
 * Removes a folder with everything in it, whatever an agent made there: deeply nested folders have paths longer than a system
 * call takes (PATH_MAX), which `rm` handles. Symbolic links are not followed.
 * @throws Error with the output of `rm` if something is left
 */
export async function removeFolder(path: string): Promise<void> {
  await runProgram("sh", ["-c", script, "sh", path]);
}
