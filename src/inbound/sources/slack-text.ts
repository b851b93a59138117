/**
 * A message as people read it, from Slack's markup (https://docs.slack.dev/messaging/formatting-message-text): links
 * and names instead of the markup between `<` and `>`, and its three characters that are written as entities.
 * @param ownUser the app's user, whose mention at the beginning is left out; null if it is not known
 */
export function readableText(markup: string, ownUser: string | null): string {
  const text = ownUser === null ? markup : withoutMention(markup, ownUser);
  return text
    .replaceAll(/<([^<>]*)>/gu, (_, inner: string) => spoken(inner))
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

function withoutMention(markup: string, user: string): string {
  const text = markup.trimStart();
  const end = text.indexOf(">");
  const isMention = text.startsWith(`<@${user}>`) || text.startsWith(`<@${user}|`);
  return isMention && end !== -1 ? text.slice(end + 1).trimStart() : markup;
}

function spoken(inner: string): string {
  const bar = inner.indexOf("|");
  const target = bar === -1 ? inner : inner.slice(0, bar);
  const label = bar === -1 ? "" : inner.slice(bar + 1);
  if (target.startsWith("@")) return label === "" ? target : `@${label}`;
  if (target.startsWith("#")) return label === "" ? target : `#${label}`;
  if (target.startsWith("!")) return label === "" ? `@${target.slice(1)}` : label;
  const address = target.startsWith("mailto:") ? target.slice("mailto:".length) : target;
  return label === "" || label === address ? address : `${label} (${address})`;
}
