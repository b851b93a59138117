/** Paths of a repository's pull request template, in the order in which forges look for it. */
export const pullRequestTemplatePaths = [
  ".github/pull_request_template.md",
  ".github/PULL_REQUEST_TEMPLATE.md",
  ".gitea/pull_request_template.md",
  ".gitea/PULL_REQUEST_TEMPLATE.md",
  ".forgejo/pull_request_template.md",
  "pull_request_template.md",
  "PULL_REQUEST_TEMPLATE.md",
  "docs/pull_request_template.md",
  "docs/PULL_REQUEST_TEMPLATE.md",
] as const;

/** Characters of a pull request's body; forges accept 65,536. */
const bodyLimit = 60_000;
const descriptionHeading = /^#{1,6}\s.*\b(?:description|summary|what|changes?)\b.*$/imu;

/**
 * Title and body of a session's pull request. The repository's template stays as it is: the agent's final message (or,
 * if it is empty, the commits' subjects) goes under the template's first heading that asks for a description, or else
 * above the template.
 */
export function pullRequestText(work: {
  readonly title: string;
  readonly finalMessage: string;
  readonly sessionUrl: string;
  readonly template: string | null;
  readonly commits: readonly { readonly subject: string }[];
}): { title: string; body: string } {
  const answer = work.finalMessage.trim();
  const description = answer === "" ? work.commits.map((commit) => `- ${commit.subject}`).join("\n") : answer;
  const footer = `\n\n---\nMade by [this Offstage session](${work.sessionUrl}).`;
  const body = work.template === null ? description : intoTemplate(work.template.trim(), description);
  const room = bodyLimit - footer.length;
  const cut = body.length <= room ? body : `${body.slice(0, room - 20).toWellFormed()}\n\n(cut)`;
  return { title: work.title, body: `${cut}${footer}` };
}

function intoTemplate(template: string, description: string): string {
  const heading = descriptionHeading.exec(template);
  if (heading === null) return `${description}\n\n${template}`;
  const end = heading.index + heading[0].length;
  return `${template.slice(0, end)}\n\n${description}\n${template.slice(end)}`;
}
