/** How well a path matches; less is better. */
function rank(path: string, words: string): number | null {
  const lower = path.toLowerCase();
  const name = lower.slice(lower.lastIndexOf("/") + 1);
  if (name === words) return 0;
  if (name.startsWith(words)) return 1;
  if (name.includes(words)) return 2;
  if (lower.includes(words)) return 3;
  return hasInOrder(lower, words) ? 4 : null;
}

/** Whether a text has the characters of another in order, with others between them. */
function hasInOrder(text: string, characters: string): boolean {
  let from = 0;
  for (const character of characters) {
    const at = text.indexOf(character, from);
    if (at === -1) return false;
    from = at + character.length;
  }
  return true;
}

/**
 * The paths that somebody may mean who has written a part of one, the likeliest first: its name, the beginning of its name, a part of
 * its name, a part of its path, and its characters in order. Of equal ones, shorter paths go first. Without regard to capitals.
 */
export function matchPaths(paths: readonly string[], written: string, limit: number): string[] {
  const words = written.trim().toLowerCase();
  const ranked = paths.flatMap((path) => {
    const found = words === "" ? 0 : rank(path, words);
    return found === null ? [] : [{ path, found }];
  });
  return ranked
    .sort((a, b) => a.found - b.found || a.path.length - b.path.length || (a.path < b.path ? -1 : 1))
    .slice(0, limit)
    .map(({ path }) => path);
}
