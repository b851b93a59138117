import { expect, test } from "vitest";
import { earlierIn } from "./feedback.ts";

const thread = ["8", "9", "10", "11"].map((id) => ({ id, author: "ann", text: `said ${id}` }));
const before = (ids: readonly string[], commentId: string): string[] =>
  earlierIn(
    thread.filter(({ id }) => ids.includes(id)),
    commentId,
  ).map(({ text }) => text);

test("what was said before a comment is what the thread has before it", () => {
  expect(before(["8", "9", "10", "11"], "10")).toEqual(["said 8", "said 9"]);
  expect(before(["8", "9"], "8")).toEqual([]);
});

test("a list that lags, and has later comments without the one that is asked about, adds none of those", () => {
  expect(before(["8", "9", "11"], "10")).toEqual(["said 8", "said 9"]);
  expect(before(["11"], "10")).toEqual([]);
  const ofAzure = ["7.2", "7.11"].map((id) => ({ id, author: null, text: id }));
  expect(earlierIn(ofAzure, "7.10").map(({ text }) => text)).toEqual(["7.2"]);
});
