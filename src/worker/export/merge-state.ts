import { programText } from "../../programs/program-text.ts";
import { filterCommand } from "../git/lfs/lfs.ts";
import type { Joining } from "../git/remote-repository.ts";
import { runCommand, type SandboxedRun, type SandboxFolders } from "../sandboxed/run-command.ts";

/** The shell functions `under_way` and `unresolved_paths`, for programs that need them. */
export const mergeStateFunctions = (): string => programText(import.meta.url, "merge-state.sh");

/** Mark of the lines in which programs name unresolved files. */
const unresolvedMark = "offstage-unresolved ";

/** The paths in a program's lines `offstage-unresolved <path>`. */
export function unresolvedIn(printed: string): string[] {
  return printed
    .split("\n")
    .filter((line) => line.startsWith(unresolvedMark))
    .map((line) => line.slice(unresolvedMark.length).replaceAll("\u0001", "\n"));
}

/**
 * The state of a join by hand:
 * - `underWay`: the clone is in the middle of it; `paths` are unresolved files, perhaps none
 * - `done`: theirs is in the clone's history, with the work
 * - `undone`: neither: it was thrown away, or had not begun. `isEmptied`: the clone is at their commit, and has nothing of the
 *   work that was to go on top of it
 */
export type JoinState =
  | { readonly kind: "underWay"; readonly paths: readonly string[] }
  | { readonly kind: "done" }
  | { readonly kind: "undone"; readonly isEmptied: boolean };

/**
 * Reads it in a clone, and changes nothing.
 * @param mirror path of the clone's mirror
 * @throws SessionError resources_exhausted; Error if the agent left the clone in a state that git can't read
 */
export async function readJoinState(
  run: SandboxedRun,
  folders: SandboxFolders,
  { theirs, onto }: Pick<Joining, "theirs" | "onto">,
  mirror: string,
): Promise<JoinState> {
  const program = `${mergeStateFunctions()}\n${programText(import.meta.url, "join-state.sh")}`;
  const environment = {
    OFFSTAGE_THEIRS: theirs,
    OFFSTAGE_ONTO: onto ?? "",
    OFFSTAGE_LFS_FILTER: filterCommand(mirror),
  };
  const command = { command: "sh", arguments: ["-c", program], environment };
  const printed = await runCommand(run, folders, command, (child) => {
    child.stdin.end();
    child.stdout.resume();
  });
  const said = /^offstage-join (\S+)$/mu.exec(printed)?.[1];
  switch (said) {
    case "under-way":
      return { kind: "underWay", paths: unresolvedIn(printed) };
    case "done":
      return { kind: "done" };
    case "emptied":
    case "undone":
      return { kind: "undone", isEmptied: said === "emptied" };
    default:
      throw new Error(`the program that looks at a merge said: ${printed.trim().slice(-500)}`);
  }
}
