/** The state of the work on one repository after its export. */
export interface WorkState {
  /** The exported commit. */
  readonly headSha: string;
  /** Where this attempt's clone started. */
  readonly startSha: string;
  /**
   * The commit of the work branch on the remote, if this attempt looked; null if it did not, or the branch does not
   * exist.
   */
  readonly remoteSha: string | null;
  /** The exported commit of the last attempt; null if there was none. */
  readonly recordedSha: string | null;
  /** Whether the exported commit differs from the last export, or from the start. */
  readonly isMoved: boolean;
  /** Whether it has commits that the base lacks. */
  readonly isAhead: boolean;
  /** Whether commits of this session are recorded. */
  readonly hasOwnCommits: boolean;
  /** The commit of the session's last push; null if nothing was pushed. */
  readonly pushedSha: string | null;
  /** Whether a pull request was opened or found for that commit. */
  readonly hasPullRequest: boolean;
  /** Whether Offstage opens pull requests on the repository's forge. */
  readonly opensPullRequests: boolean;
}

/**
 * Decides what to do with a repository's work: `publish` pushes it and opens its pull request, `nothing` leaves the remote as it
 * is. Published is what this attempt made, and what an earlier one made but could not push or open a pull request for. Work that
 * has a pull request is not pushed again: that may be merged or closed by now, and its branch deleted. Other people's commits on
 * the work branch are not the session's: a clone that only took them in has nothing to publish.
 */
export function whatToPush(work: WorkState): "publish" | "nothing" {
  const { headSha, startSha, remoteSha, recordedSha, isAhead, hasOwnCommits, pushedSha } = work;
  // It may have been exported and joined with others' commits before the turn, and not be moved since.
  const isMoved = work.isMoved || (remoteSha !== null && headSha !== remoteSha);
  // New work; if it went back to the base, only a branch that was pushed before has to follow.
  if (isMoved && headSha !== recordedSha && headSha !== remoteSha)
    return isAhead || pushedSha !== null ? "publish" : "nothing";
  const isPublished = isPushed(work) && (work.hasPullRequest || !work.opensPullRequests);
  // No commit is recorded of an attempt that failed before, so its head counts too.
  const isOwn = hasOwnCommits || headSha !== startSha;
  return isAhead && isOwn && !isPublished ? "publish" : "nothing";
}

function isPushed({ headSha, pushedSha, recordedSha, remoteSha }: WorkState): boolean {
  return pushedSha !== null && (pushedSha === recordedSha || headSha === remoteSha);
}
