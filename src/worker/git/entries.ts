/**
 * Cuts what git writes with `-z` into its entries, each of which a zero byte ends.
 * @param onEntry receives each entry, its bytes as Latin-1, since names need be no UTF-8
 * @returns `onOutput` of `git`
 */
export function entriesOf(onEntry: (entry: string) => void): (chunk: Buffer) => void {
  let rest = "";
  return (chunk) => {
    const entries = `${rest}${chunk.toString("latin1")}`.split("\0");
    rest = entries.pop() ?? "";
    for (const entry of entries) onEntry(entry);
  };
}

/** The path in an entry of `ls-tree` or `ls-files --stage`, which follows a tab. */
export function pathIn(entry: string): string {
  return Buffer.from(entry.slice(entry.indexOf("\t") + 1), "latin1").toString("utf8");
}
