import type { Item } from "../view/view.ts";

/** Kinds of tool calls of which many follow each other and few are looked at: several in a row are one line. */
const quiet: ReadonlySet<string> = new Set(["read", "search", "fetch", "think"]);

type ToolItem = Extract<Item, { kind: "tool" }>;

/** A line of the transcript: an entry, or several tool calls in a row that are folded together. */
export type Row =
  | { readonly key: number; readonly kind: "item"; readonly item: Item }
  | { readonly key: number; readonly kind: "calls"; readonly calls: readonly ToolItem[] };

function isQuiet(item: Item | undefined): item is ToolItem {
  return item?.kind === "tool" && quiet.has(item.tool.kind) && item.tool.status !== "failed";
}

/** The lines of a transcript. One that is folded has the key of its first call: it stays where it is when calls are added. */
export function rowsOf(items: readonly Item[]): Row[] {
  const rows: Row[] = [];
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    if (item === undefined) continue;
    if (!isQuiet(item)) {
      rows.push({ key: item.key, kind: "item", item });
      continue;
    }
    const calls = [item];
    for (let next = items[index + 1]; isQuiet(next); next = items[index + 1]) {
      calls.push(next);
      index += 1;
    }
    rows.push(calls.length === 1 ? { key: item.key, kind: "item", item } : { key: item.key, kind: "calls", calls });
  }
  return rows;
}

/** How many calls there are of each kind, in the order in which the kinds came. */
export function countKinds(calls: readonly ToolItem[]): (readonly [kind: string, count: number])[] {
  const counts = new Map<string, number>();
  for (const { tool } of calls) counts.set(tool.kind, (counts.get(tool.kind) ?? 0) + 1);
  return [...counts];
}
