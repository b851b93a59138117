import { expect, test } from "vitest";
import { firstOf } from "./text.ts";

test.each([
  [[], ""],
  [["a", "b"], "a, b"],
  [["a", "b", "c", "d"], "a, b, and 2 more"],
])("names the first two of %j", (texts, sentence) => {
  expect(firstOf(texts, 2)).toBe(sentence);
});
