import { firstOf } from "../../../domain/fields/text.ts";
import type { Collision } from "../../git/join.ts";
import { asPointers } from "./prompt.ts";

/** The side of a conflict that others' commits are. */
interface Side {
  /** The repository's folder in the workspace. */
  readonly directory: string;
  /** The branch that they are on. */
  readonly branch: string;
  /** Whether that is the target branch; if not, it is the work branch. */
  readonly isTarget: boolean;
  /** Whether some of their files in LFS are pointers, since their contents could not be fetched; if omitted, none is. */
  readonly hasPointers?: boolean;
  /** Their changes of submodules; none if omitted. */
  readonly submodules?: OthersSubmodules;
}

/** Submodules that others changed: paths. */
export interface OthersSubmodules {
  /** They are recorded at another commit than their folders have. */
  readonly moved: readonly string[];
  /** They are new, and their folders are empty. */
  readonly added: readonly string[];
  /** Their folders have what others recorded. */
  readonly renewed: readonly string[];
}

/** Others' commits that came into a clone without a conflict. */
export interface TakenIn extends Side {
  readonly from: string;
  readonly to: string;
}

/** A conflict that the agent is to resolve: its folder is in the middle of the merge. */
export interface Conflict extends Side, Collision {}

/** Files in which the agent left conflicts. */
export interface LeftConflict {
  readonly directory: string;
  readonly paths: readonly string[];
  /** Whether a merge or a rebase that it began itself is under way, perhaps of no files; if not, conflict markers are in a commit. */
  readonly isUnderWay: boolean;
}

/** Most files, and most characters of each name, in a prompt. */
const namedLimit = 50;
const nameLength = 300;

/** Puts a description of others' commits before a message; returns the message itself if there are none. */
export function withOthersWork(
  message: string,
  { takenIn, conflicts }: { readonly takenIn: readonly TakenIn[]; readonly conflicts: readonly Conflict[] },
): string {
  const parts = [...conflicts.map(conflictText), ...takenIn.map(takenInText)];
  if (parts.length === 0) return message;
  const then = conflicts.length > 0 ? "When that is done, go on with this task:" : "The task:";
  return [...parts, then, message].join("\n\n");
}

/** The prompt of a turn that only resolves conflicts. */
export function resolvePrompt(conflicts: readonly Conflict[], left: readonly LeftConflict[]): string {
  return [...conflicts.map(conflictText), ...left.map(leftText)].join("\n\n");
}

const pointersText = ` Some of their files in LFS could not be fetched: ${asPointers} Do not change those.`;

function takenInText({ directory, branch, isTarget, hasPointers = false, from, to, submodules }: TakenIn): string {
  const what = isTarget ? `The target branch ${branch} was merged into your branch` : `Others committed to ${branch}`;
  return `${what} since your last turn, and your clone in ${directory} has that now (git log ${short(from)}..${short(to)}). Read files again before you change them.${hasPointers ? pointersText : ""}${submodulesText(submodules)}`;
}

function submodulesText({ moved, added, renewed }: OthersSubmodules = { moved: [], added: [], renewed: [] }): string {
  const ofMoved = ` These submodules are recorded at another commit by now, while their folders have the earlier one, and git does not look into them: ${named(moved)}.`;
  const ofAdded = ` These submodules are new, and their folders are empty in this session: ${named(added)}.`;
  const ofRenewed = ` These submodules are at the commits that others recorded by now: ${named(renewed)}.`;
  return `${moved.length > 0 ? ofMoved : ""}${added.length > 0 ? ofAdded : ""}${renewed.length > 0 ? ofRenewed : ""}`;
}

function conflictText(conflict: Conflict): string {
  const { directory, branch, isTarget, hasPointers = false, theirs, paths, onto, submodules } = conflict;
  const who = isTarget ? `The target branch ${branch} has` : `Others pushed to the branch ${branch} and made`;
  const mine = onto === null ? "yours" : "theirs";
  const other = onto === null ? "theirs" : "yours";
  const state =
    onto === null
      ? `Your clone in ${directory} is in the middle of merging their commit ${short(theirs)} into your work (git status).`
      : `The branch was rewritten. Your clone in ${directory} is at their commit ${short(theirs)}, and in the middle of putting on top of it what you had not pushed (git status).`;
  return [
    `First of all, resolve a conflict. ${who} changes that git can't join with yours by itself.`,
    state,
    `These files collide: ${named(paths)}.`,
    `In them, what stands between <<<<<<< and ======= is ${mine}, and what stands between ======= and >>>>>>> is ${other}; a file that one side deleted or that is not text has no such lines.`,
    "Find out what each side wanted (git log, git show), keep both, remove every marker, check the result, and commit it (git add or git rm for every file, git commit --no-edit).",
    `Do not abort or reset it: their commits must stay in the branch.${hasPointers ? pointersText : ""}${submodulesText(submodules)}`,
  ].join(" ");
}

function leftText({ directory, paths, isUnderWay }: LeftConflict): string {
  if (isUnderWay) {
    const collide = paths.length === 0 ? "" : ` These files collide, and are as git left them: ${named(paths)}.`;
    return [
      `First of all: a merge or a rebase in ${directory} is not finished (git status).${collide}`,
      "Find out what each side wanted (git log, git show), keep both, say of each file that it is resolved (git add, git rm), and finish it (git commit, git rebase --continue).",
      "Of a rebase that is not finished, nothing counts.",
    ].join(" ");
  }
  return [
    `First of all: a conflict in ${directory} is not resolved yet. Conflict markers (<<<<<<<, =======, >>>>>>>) are left in ${named(paths)}.`,
    "Find out what each side wanted (git log, git show), keep both, remove every marker, check the result, and commit it.",
    "Do not reset the branch: the commits of others must stay in it.",
  ].join(" ");
}

/** Names of files are data of the repository's: quoted, so that one can't end the sentence. */
export function named(paths: readonly string[]): string {
  const quoted = paths.map((path) => JSON.stringify(path.slice(0, nameLength)));
  return firstOf(quoted, namedLimit);
}

function short(sha: string): string {
  return sha.slice(0, 12);
}
