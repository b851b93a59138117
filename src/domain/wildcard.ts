/**
 * Whether a text fits a pattern as a whole, in which `*` stands for any characters, none included, and everything else for
 * itself. It goes back at most to the last `*`, so its time is at most the product of both lengths, whatever they hold.
 */
export function matchesWildcard(pattern: string, text: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  // Each part at its first place after the one before: if there is any way to fit, there is this one.
  let from = first.length;
  const end = text.length - last.length;
  for (const part of rest) {
    const found = text.indexOf(part, from);
    if (found === -1 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
