/** The mark that Offstage writes into the body of a pull request that it opens, to recognize it later. */
export interface PullRequestMark {
  readonly sessionId: string;
  /** The pushed commit for which it was opened. */
  readonly sha: string;
}

/** The body of a pull request with the mark at its end, as an HTML comment, which forges don't show. */
export function withMark(body: string, { sessionId, sha }: PullRequestMark): string {
  return `${body}\n<!-- offstage session=${sessionId} commit=${sha} -->`;
}

/**
 * The mark as it was written, or, as Bitbucket has it and delivers it, as a link's definition, which has its own line.
 */
const writtenMark =
  /(?:<!-- |^\[\/\/\]: # \()offstage session=([0-9a-f-]{36}) commit=([0-9a-f]{40,64})(?: -->|\)[ \t\r]*$)/gmu;

/**
 * Reads the mark of a pull request's body: the last one, since the text above it is untrusted.
 * @returns null if there is none
 */
export function readMark(body: string): PullRequestMark | null {
  const [, sessionId, sha] = [...body.matchAll(writtenMark)].at(-1) ?? [];
  return sessionId === undefined || sha === undefined ? null : { sessionId, sha };
}
