/** A part of a text. */
export interface Place {
  readonly from: number;
  readonly until: number;
}

/**
 * The position of a template's problem, as its sentence gives it: `…, line:2, col:5`. It reaches to the end of its tag,
 * or of its line.
 * @returns null if the sentence names no place of this text
 */
export function placeOf(problem: string | null, text: string): Place | null {
  const [, line = "", column = ""] = /, line:(\d+), col:(\d+)/u.exec(problem ?? "") ?? [];
  if (line === "") return null;
  const lines = text.split("\n");
  const before = lines.slice(0, Number(line) - 1).reduce((sum, each) => sum + each.length + 1, 0);
  const from = before + Number(column) - 1;
  if (from >= text.length) return null;
  const rest = text.slice(from);
  const end = /-?[%}]\}|\n/u.exec(rest)?.index ?? rest.length;
  return { from, until: from + Math.max(end, 1) };
}
