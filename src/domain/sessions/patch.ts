/** The beginning of a file's part of a diff, and the names after it, as git quotes them (git-diff(1), "Generating patch text"). */
const fileHeader = /^diff --git (?<names>.+)$/u;
const hunkHeader = /^@@ -\d+(?:,(?<before>\d+))? \+\d+(?:,(?<after>\d+))? @@/u;
/** Lines of a file's header that have a name without `a/` or `b/` before it. */
const barePath = /^(?<word>rename from|rename to|copy from|copy to) (?<quote>"?)(?<path>.*)$/u;
/** Lines of a file's header that have a name with it; /dev/null has none. */
const markedPath = /^(?<mark>---|\+\+\+) (?<quote>"?)(?<side>[ab])\/(?<path>.*)$/u;

/**
 * Puts a folder before each path of a diff, so that it applies where the repository is that folder. Lines of files stay as they are,
 * whatever they look like.
 * @param patch as `git diff` prints it, with the prefixes `a/` and `b/`
 * @param directory name of the folder, without characters that git quotes
 */
export function inDirectory(patch: string, directory: string): string {
  const lines = patch.split("\n");
  const moved: string[] = [];
  let before = 0;
  let after = 0;
  let isHeader = false;
  for (const [index, line] of lines.entries()) {
    if (before > 0 || after > 0) {
      const [mark] = line;
      if (mark !== "+" && mark !== "\\") before -= 1;
      if (mark !== "-" && mark !== "\\") after -= 1;
      moved.push(line);
      continue;
    }
    const hunk = hunkHeader.exec(line)?.groups;
    const names = fileHeader.exec(line)?.groups?.["names"];
    if (names !== undefined) isHeader = true;
    if (hunk !== undefined) {
      isHeader = false;
      before = Number(hunk["before"] ?? 1);
      after = Number(hunk["after"] ?? 1);
    }
    if (names !== undefined) moved.push(`diff --git ${namesIn(names, lines.slice(index + 1, index + 8), directory)}`);
    else moved.push(isHeader ? pathIn(line, directory) : line);
  }
  return moved.join("\n");
}

function pathIn(line: string, directory: string): string {
  const marked = markedPath.exec(line)?.groups;
  if (marked !== undefined) {
    return `${marked["mark"]} ${marked["quote"]}${marked["side"]}/${directory}/${marked["path"]}`;
  }
  const bare = barePath.exec(line)?.groups;
  return bare === undefined ? line : `${bare["word"]} ${bare["quote"]}${directory}/${bare["path"]}`;
}

/**
 * The two names of a file's first line. They are not separated unambiguously, but they are equal, unless the lines that follow say
 * from where and to where the file was renamed or copied.
 */
function namesIn(names: string, following: readonly string[], directory: string): string {
  const nameAfter = (word: RegExp): string | undefined =>
    following.find((line) => word.test(line))?.replace(/^\w+ \w+ /u, "");
  const from = nameAfter(/^(?:rename|copy) from /u);
  const to = nameAfter(/^(?:rename|copy) to /u);
  const isOfNext = following.findIndex((line) => line.startsWith("diff --git "));
  const fromAt = following.findIndex((line) => /^(?:rename|copy) from /u.test(line));
  if (from !== undefined && to !== undefined && (isOfNext === -1 || fromAt < isOfNext)) {
    return `${sideOf("a", from, directory)} ${sideOf("b", to, directory)}`;
  }
  const half = (names.length - 1) / 2;
  const [first, second] = [names.slice(0, half), names.slice(half + 1)];
  return [first, second].map((name) => name.replace(/^("?[ab]\/)/u, `$1${directory}/`)).join(" ");
}

function sideOf(side: "a" | "b", path: string, directory: string): string {
  return path.startsWith('"') ? `"${side}/${directory}/${path.slice(1)}` : `${side}/${directory}/${path}`;
}

/**
 * Whether a diff says of a file that it changed without saying how, or has characters that could not be kept as they were: git can't
 * apply it then.
 */
export function lacksContent(patch: string): boolean {
  return /^Binary files .* differ$/mu.test(patch) || patch.includes("\ufffd");
}
