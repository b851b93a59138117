import { parseDiffFromFile, parsePatchFiles, type FileDiffMetadata } from "@pierre/diffs";
import { inWorkspace } from "../view/workspace-path.ts";
import type { Item } from "../view/view.ts";

/** A changed file, as the page shows it. */
export interface ChangedFile {
  /** Different for every file of a session. */
  readonly key: string;
  readonly name: string;
  readonly before: string | null;
  readonly kind: FileDiffMetadata["type"];
  readonly added: number;
  readonly removed: number;
  /** Several while the agent edits: each as the agent reported it. */
  readonly diffs: readonly FileDiffMetadata[];
  /** Differs if the change does: a mark that it was viewed is for this one. */
  readonly version: string;
}

/** The files of a patch. Null if it can't be parsed: it is shown as text then. */
export function filesOfPatch(patch: string, repository: string): ChangedFile[] | null {
  try {
    return parsePatchFiles(patch).flatMap(({ files }) =>
      files.map((file) => changedFile(repository, file.name, [file])),
    );
  } catch {
    return null;
  }
}

/** The files that an agent said that it edited, in the order in which it began: its edits of each, one after the other. */
export function filesOfEdits(items: readonly Item[]): ChangedFile[] {
  const edits = new Map<string, FileDiffMetadata[]>();
  for (const item of items) {
    if (item.kind !== "tool" || item.tool.status === "failed") continue;
    for (const content of item.tool.content) {
      if (content.type !== "diff") continue;
      const name = inWorkspace(content.path);
      const diff = parseDiffFromFile({ name, contents: content.oldText ?? "" }, { name, contents: content.newText });
      edits.set(name, [...(edits.get(name) ?? []), diff]);
    }
  }
  return [...edits].map(([name, diffs]) => changedFile("", name, diffs));
}

function changedFile(repository: string, name: string, diffs: readonly FileDiffMetadata[]): ChangedFile {
  const hunks = diffs.flatMap((diff) => diff.hunks);
  const [first] = diffs;
  const before = first?.prevName;
  return {
    key: `${repository} ${before ?? ""} ${name}`,
    name,
    before: before === undefined || before === name ? null : before,
    kind: first?.type ?? "change",
    added: hunks.reduce((sum, hunk) => sum + hunk.additionLines, 0),
    removed: hunks.reduce((sum, hunk) => sum + hunk.deletionLines, 0),
    diffs,
    version: first?.newObjectId ?? String(diffs.reduce((sum, diff) => sum + diff.additionCharacterCount, 0)),
  };
}

/** Whether a file's name or one of its changed lines has these words, without regard to capitals. */
export function fileHasWords({ name, before, diffs }: ChangedFile, words: string): boolean {
  const sought = words.trim().toLowerCase();
  const has = (text: string): boolean => text.toLowerCase().includes(sought);
  if (sought === "" || has(name) || (before !== null && has(before))) return true;
  return diffs.some((diff) => diff.additionLines.some(has) || diff.deletionLines.some(has));
}

/** The text of a line of a file after the change, or before it; null if the change does not have it. */
export function lineOf({ diffs }: ChangedFile, side: "additions" | "deletions", line: number): string | null {
  for (const { hunks, additionLines, deletionLines } of diffs) {
    for (const hunk of hunks) {
      const start = side === "additions" ? hunk.additionStart : hunk.deletionStart;
      const count = side === "additions" ? hunk.additionCount : hunk.deletionCount;
      const from = side === "additions" ? hunk.additionLineIndex : hunk.deletionLineIndex;
      if (line < start || line >= start + count) continue;
      const lines = side === "additions" ? additionLines : deletionLines;
      return lines[from + line - start]?.replace(/\n$/u, "") ?? null;
    }
  }
  return null;
}
