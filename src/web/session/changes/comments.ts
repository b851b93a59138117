import { useMemo } from "react";
import { isShared } from "../../query.ts";
import { useStored } from "../../use-stored.ts";
import type { SessionTexts } from "../../texts/session.ts";

/** A comment on a line of a change, not sent yet. */
export interface Comment {
  readonly id: string;
  readonly file: string;
  readonly side: "additions" | "deletions";
  readonly line: number;
  /** The line's text; null: it is not known. */
  readonly code: string | null;
  readonly text: string;
}

/** The comments on a session's changes, which this browser remembers until they are sent, and a function that changes them as they are then. */
export function useComments(
  sessionId: string,
): [readonly Comment[], (change: (comments: readonly Comment[]) => readonly Comment[]) => void] {
  const [text, changeText] = useStored(`comments ${sessionId}`);
  const comments = useMemo(() => (isShared ? [] : commentsOf(text)), [text]);
  return [
    comments,
    (change) =>
      changeText((now) => {
        const changed = change(commentsOf(now));
        return changed.length === 0 ? null : JSON.stringify(changed);
      }),
  ];
}

function commentsOf(text: string | null): readonly Comment[] {
  try {
    const stored: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(stored) ? stored.filter(isComment) : [];
  } catch {
    // Another version of the app wrote it otherwise.
    return [];
  }
}

function isComment(value: unknown): value is Comment {
  if (typeof value !== "object" || value === null) return false;
  const { id, file, line, text } = value as Partial<Comment>;
  return typeof id === "string" && typeof file === "string" && typeof line === "number" && typeof text === "string";
}

/** All comments as one message to the agent, in the order of files and lines. */
export function reviewMessage(comments: readonly Comment[], texts: SessionTexts["comments"]): string {
  const inOrder = [...comments].sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
  const entries = inOrder.map(({ file, side, line, code, text }, index) => {
    const where = side === "additions" ? texts.place(file, line) : texts.placeBefore(file, line);
    const quoted = code === null || code.trim() === "" ? "" : `   > \`${code.trim().replaceAll("`", "'")}\`\n\n`;
    return `${index + 1}. ${where}:\n\n${quoted}   ${text.trim().replaceAll("\n", "\n   ")}`;
  });
  return `${texts.heading}\n\n${entries.join("\n\n")}`;
}
