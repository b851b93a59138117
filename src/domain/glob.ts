/**
 * Whether a whole text fits a pattern in which `*` stands for any characters, none included. Capitals count.
 *
 * The text may be an attacker's, so there is no regular expression, which would go back and forth over it: each part
 * between two asterisks is taken at its first place after the part before, and no place is given up again.
 * @param pattern such as `claude-*`
 */
export function fitsGlob(pattern: string, text: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  const tail = rest.pop();
  if (tail === undefined) return pattern === text;
  if (!text.startsWith(head)) return false;
  let from = head.length;
  for (const part of rest) {
    const found = text.indexOf(part, from);
    if (found === -1) return false;
    from = found + part.length;
  }
  return text.length - tail.length >= from && text.endsWith(tail);
}
