/**
 * Whether a whole text matches a pattern in which `*` stands for any characters, or none. Case counts.
 * An attacker may choose the text, so this uses no regular expression, which could backtrack: each part between two
 * asterisks is matched at its first position after the part before, and never moved. The time is linear.
 * @param pattern such as `claude-*`
 */
export function matchesGlob(pattern: string, text: string): boolean {
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
