import { expect, it } from "vitest";
import type { Item } from "../view/view.ts";
import { countKinds, rowsOf } from "./rows.ts";

let key = 0;
function call(kind: string, status: "completed" | "failed" = "completed"): Item {
  const tool = { toolCallId: String(key), title: kind, kind, status, locations: [], content: [], endedAt: null };
  return { key: (key += 1), at: "2026-11-21T00:00:00.000Z", kind: "tool", tool };
}
const said: Item = { key: 1_000, at: "2026-11-21T00:00:00.000Z", kind: "message", part: "0", text: "So." };

const kindsOf = (items: readonly Item[]): string[] =>
  rowsOf(items).map((row) =>
    row.kind === "calls"
      ? row.calls.map(({ tool }) => tool.kind).join("+")
      : row.item.kind === "tool"
        ? row.item.tool.kind
        : row.item.kind,
  );

it("folds quiet calls in a row, and leaves commands, edits and what failed alone", () => {
  const items = [
    call("read"),
    call("search"),
    call("edit"),
    call("read"),
    said,
    call("fetch"),
    call("read", "failed"),
    call("execute"),
  ];
  expect(kindsOf(items)).toEqual(["read+search", "edit", "read", "message", "fetch", "read", "execute"]);
});

it("keeps the key of a fold as calls are added, so that it stays where it is", () => {
  const items = [call("read"), call("read")];
  const [before] = rowsOf(items);
  const [after] = rowsOf([...items, call("search")]);
  expect(after?.key).toBe(before?.key);
  expect(after?.kind === "calls" && countKinds(after.calls)).toEqual([
    ["read", 2],
    ["search", 1],
  ]);
});
