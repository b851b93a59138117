/** A line of a hunk, with its number on either side; null: not on that side. */
export interface HunkLine {
  readonly text: string;
  readonly sign: " " | "+" | "-";
  readonly before: number | null;
  readonly after: number | null;
}

/** A hunk of a diff. */
export interface Hunk {
  readonly header: string;
  readonly lines: readonly HunkLine[];
}

/** Lines before the one that is meant, at most: those next to it say most. */
const mostLines = 60;

/**
 * The hunk that has a line, to that line, as GitHub delivers it with comments.
 * @param line its number in the newer file or, if no hunk has that, in the older one
 * @returns null if no hunk has it
 */
export function hunkTo(hunks: readonly Hunk[], line: number): string | null {
  for (const side of ["after", "before"] as const) {
    for (const { header, lines } of hunks) {
      const at = lines.findIndex((each) => each[side] === line);
      if (at === -1) continue;
      const shown = lines.slice(Math.max(0, at + 1 - mostLines), at + 1);
      return [header, ...shown.map(({ sign, text }) => `${sign}${text}`)].join("\n");
    }
  }
  return null;
}

/** The hunks of the diff of one file, as git writes it (https://git-scm.com/docs/diff-format). */
export function readHunks(diff: string): Hunk[] {
  const hunks: { header: string; lines: HunkLine[] }[] = [];
  let [before, after] = [0, 0];
  for (const line of diff.split("\n")) {
    const begins = /^@@ -(?<before>\d+)(?:,\d+)? \+(?<after>\d+)(?:,\d+)? @@/u.exec(line)?.groups;
    if (begins !== undefined) {
      [before, after] = [Number(begins["before"]), Number(begins["after"])];
      hunks.push({ header: line, lines: [] });
      continue;
    }
    const sign = line[0];
    if (sign !== " " && sign !== "+" && sign !== "-") continue;
    hunks.at(-1)?.lines.push({
      text: line.slice(1),
      sign,
      before: sign === "+" ? null : before,
      after: sign === "-" ? null : after,
    });
    if (sign !== "+") before += 1;
    if (sign !== "-") after += 1;
  }
  return hunks;
}

/**
 * The lines of a file to the one that is meant, in the form of a hunk without a change: for a forge that has no diffs.
 * @param line from 1
 * @returns null if the file has no such line
 */
export function linesTo(content: string, line: number): string | null {
  const lines = content.split(/\r?\n/u);
  if (line < 1 || line > lines.length) return null;
  const from = Math.max(1, line - 9);
  const shown = lines.slice(from - 1, line);
  return [`@@ -${from},${shown.length} +${from},${shown.length} @@`, ...shown.map((text) => ` ${text}`)].join("\n");
}
