import type { WorkspaceEntry } from "../../domain/sessions/workspace-file.ts";
import { isName } from "../../domain/sessions/workspace-file.ts";

/** Most entries of a folder that are looked at. */
export const lookedAtMost = 50_000;

/** An entry of a folder before it is shown: its name is of any bytes. */
export interface FoundEntry {
  readonly name: Buffer;
  readonly type: WorkspaceEntry["type"];
}

/** A page of a folder. */
export interface FolderPage<Entry extends FoundEntry> {
  readonly entries: readonly Entry[];
  readonly nextCursor: string | null;
}

/**
 * Cuts a page out of a folder: folders first, each kind by the bytes of its names. A cursor names the entry after which the page begins, so
 * that pages fit together although a session's files change meanwhile.
 * @returns null if the cursor is none of ours
 */
export function pageOfFolder<Entry extends FoundEntry>(
  all: readonly Entry[],
  { limit, cursor }: { readonly limit: number; readonly cursor: string | null },
): FolderPage<Entry> | null {
  const after = cursor === null ? null : Buffer.from(cursor, "base64url");
  if (after !== null && after[0] !== folderMark && after[0] !== fileMark) return null;
  const sorted = all
    .map((entry) => ({ entry, key: keyOf(entry) }))
    .toSorted((a, b) => Buffer.compare(a.key, b.key))
    .filter(({ key }) => after === null || Buffer.compare(key, after) > 0);
  const page = sorted.slice(0, limit);
  const last = page.at(-1);
  return {
    entries: page.map(({ entry }) => entry),
    nextCursor: sorted.length > limit && last !== undefined ? last.key.toString("base64url") : null,
  };
}

const [folderMark, fileMark] = [0x30, 0x31];

const keyOf = ({ type, name }: FoundEntry): Buffer =>
  Buffer.concat([Buffer.from([type === "folder" ? folderMark : fileMark]), name]);

/** The name as a text; null if it is none, or one that nothing can be asked for by. */
export function askableName(name: Buffer): string | null {
  const text = textOf(name);
  return text !== null && isName(text) ? text : null;
}

/** Bytes as a text; null if they are no UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
