import { withoutForgedMarks } from "./comment-mark.ts";
import { markedSection } from "./pull-request-section.ts";

/** Paths of a repository's pull request template, in the order in which forges look for it. */
export const pullRequestTemplatePaths = [
  ".github/pull_request_template.md",
  ".github/PULL_REQUEST_TEMPLATE.md",
  ".gitlab/merge_request_templates/Default.md",
  ".gitlab/merge_request_templates/default.md",
  ".gitea/pull_request_template.md",
  ".gitea/PULL_REQUEST_TEMPLATE.md",
  ".forgejo/pull_request_template.md",
  ".azuredevops/pull_request_template.md",
  "pull_request_template.md",
  "PULL_REQUEST_TEMPLATE.md",
  "docs/pull_request_template.md",
  "docs/PULL_REQUEST_TEMPLATE.md",
] as const;

/** Most characters of a pull request's body; forges accept 65,536, of which the end is for the first words of further turns. */
export const longestBody = 60_000;
const mostAccepted = 65_000;
/** Characters that a further turn has in any case. */
const leastOfTurn = 300;
const descriptionHeading = /^#{1,6}\s.*\b(?:description|summary|what|changes?)\b.*$/imu;

/**
 * Ends Offstage's part of a body; further turns go before it. If a person removes it, Offstage edits the body no more.
 */
const endMark = "<!-- /offstage -->";
/** Marks the last commit that a body describes. */
const commitMark = (sha: string): string => `<!-- offstage ${sha} -->`;

/**
 * A pull request's body with what a further turn did.
 * @param body as it is now, perhaps edited by people
 * @param work.headSha the commit that was pushed
 * @returns null if it stays as it is: it describes the commit already, people removed our end mark, or forges would
 *   not take it. What does not fit is cut
 */
export function withFurtherTurn(
  body: string,
  { headSha, finalMessage, commits }: Pick<PullRequestWork, "headSha" | "finalMessage" | "commits">,
): string | null {
  const end = body.lastIndexOf(endMark);
  const mark = commitMark(headSha);
  if (end === -1 || body.includes(mark)) return null;
  const before = `${body.slice(0, end)}\n\n---\n\n`;
  const after = `\n${mark}${body.slice(end)}`;
  const room = Math.max(longestBody - before.length - after.length, leastOfTurn);
  const further = `${before}${cutTo(room, descriptionOf(finalMessage, commits))}${after}`;
  return further.length > mostAccepted ? null : further;
}

interface PullRequestWork {
  readonly title: string;
  readonly finalMessage: string;
  /** The part that is kept current: src/domain/conversations/section.ts. */
  readonly section: string;
  readonly template: string | null;
  /** The pushed commit. */
  readonly headSha: string;
  readonly commits: readonly { readonly subject: string }[];
}

function descriptionOf(finalMessage: string, commits: PullRequestWork["commits"]): string {
  // An agent that writes our mark could otherwise end what we say in its midst.
  const answer = withoutForgedMarks(finalMessage.trim());
  return answer === "" ? commits.map((commit) => `- ${commit.subject}`).join("\n") : answer;
}

function cutTo(room: number, text: string): string {
  return text.length <= room ? text : `${text.slice(0, room - 20).toWellFormed()}\n\n(cut)`;
}

/**
 * Title and body of a session's pull request. The repository's template stays as it is: the agent's final message (or,
 * if it is empty, the commits' subjects) goes under the template's first heading that asks for a description, or else
 * above the template.
 */
export function pullRequestText(work: PullRequestWork): { title: string; body: string } {
  const description = descriptionOf(work.finalMessage, work.commits);
  const marks = `\n${commitMark(work.headSha)}${endMark}`;
  const footer = `\n\n${markedSection(work.section)}`;
  const template = work.template?.trim() ?? "";
  const room = longestBody - footer.length - marks.length - template.length - 4;
  const ours = `${cutTo(room, description)}${marks}`;
  const body = work.template === null ? ours : intoTemplate(template, ours);
  return { title: work.title, body: `${body}${footer}` };
}

function intoTemplate(template: string, description: string): string {
  const heading = descriptionHeading.exec(template);
  if (heading === null) return `${description}\n\n${template}`;
  const end = heading.index + heading[0].length;
  return `${template.slice(0, end)}\n\n${description}\n${template.slice(end)}`;
}
