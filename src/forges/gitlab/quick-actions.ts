/**
 * A text without quick actions of GitLab's. A line such as `/merge` or `/assign @somebody` in a description or comment
 * is a quick action, done with the rights of the token (https://docs.gitlab.com/user/project/quick_actions/), and an
 * agent may write anything that it has read. A backslash before the slash makes it text: Markdown does not show it.
 * Done in code blocks too, since the text around them decides whether they are any.
 */
export function withoutQuickActions(text: string): string {
  // GitLab takes carriage returns out before it looks for actions.
  return text.replaceAll(/\r\n?/gu, "\n").replaceAll(/^([^\S\n]*)(?=\/[\w-]+(?:\s|$))/gmu, "$1\\");
}
