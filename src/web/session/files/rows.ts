import type { WorkspaceEntry } from "../../../domain/sessions/workspace-file.ts";
import type { LoadedFolder } from "./calls.ts";

/** What is known of a folder that is open. */
export interface OpenFolder {
  readonly folder: LoadedFolder | undefined;
  /** Why it could not be loaded; null: it was, or is being. */
  readonly error: Error | null;
}

/** A row of the tree: an entry, or what stands in the place of entries. */
export type Row = {
  readonly key: string;
  /** From 1. */
  readonly level: number;
  /** Path of the folder that it is in. */
  readonly parent: string;
} & (
  | {
      readonly kind: "entry";
      readonly entry: WorkspaceEntry;
      readonly isOpen: boolean;
      /** Its place in its folder, from 1, and how many are there; -1: more than are loaded. */
      readonly position: number;
      readonly count: number;
    }
  | { readonly kind: "loading" | "more" | "empty" | "cut" }
  | { readonly kind: "failed"; readonly error: Error }
);

/** Whether an entry has others in it: a folder, or what a submodule has at its commit. */
export function hasEntries({ type }: WorkspaceEntry): boolean {
  return type === "folder" || type === "submodule";
}

/** The rows of a tree from the root on. @param open what is known of each open folder, by its path */
export function rowsOf(open: ReadonlyMap<string, OpenFolder>, path = "", level = 1): Row[] {
  const known = open.get(path);
  if (known === undefined) return [];
  const { folder, error } = known;
  const place = { level, parent: path };
  if (folder === undefined) {
    if (error !== null) return [{ ...place, kind: "failed", key: `${path}//failed`, error }];
    return [{ ...place, kind: "loading", key: `${path}//loading` }];
  }
  const { entries, nextCursor, complete } = folder;
  const count = nextCursor === null && complete ? entries.length : -1;
  const rows = entries.flatMap((entry, index): Row[] => {
    const isOpen = entry.path !== null && hasEntries(entry) && open.has(entry.path);
    // Names that can't be asked for may be equal.
    const key = entry.path ?? `${path}//${index}`;
    const row: Row = { ...place, kind: "entry", key, entry, isOpen, position: index + 1, count };
    return isOpen && entry.path !== null ? [row, ...rowsOf(open, entry.path, level + 1)] : [row];
  });
  if (nextCursor !== null) rows.push({ ...place, kind: "more", key: `${path}//more` });
  else if (!complete) rows.push({ ...place, kind: "cut", key: `${path}//cut` });
  else if (entries.length === 0) rows.push({ ...place, kind: "empty", key: `${path}//empty` });
  return rows;
}

/** The folders that a file is in, the outermost first. */
export function foldersAbove(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}
