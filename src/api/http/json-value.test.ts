import { describe, expect, it } from "vitest";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { checkJsonValue, checkNesting, isStorableJson } from "./json-value.ts";

/** Lists within each other. @param depth of the innermost value */
function nested(depth: number, innermost: unknown): unknown {
  let value = innermost;
  for (let at = 0; at < depth; at += 1) value = [value];
  return value;
}

it("takes 64 levels and no more, whatever it is asked, and overflows no stack", () => {
  for (const ask of [checkNesting, isStorableJson, checkJsonValue]) {
    expect(() => ask(nested(64, 1), "the body")).not.toThrow();
    for (const depth of [65, 100_000]) {
      const problem = new InvalidInputError("the body is nested deeper than 64 levels");
      expect(() => ask(nested(depth, 1), "the body")).toThrow(problem);
    }
  }
});

describe("a value that the database can't store as it is", () => {
  const largest = 1e308;
  const cases: readonly (readonly [what: string, value: unknown, problem: string])[] = [
    ["a text with NUL", { a: ["b", { c: "d\0" }] }, "event.a[1].c must not contain NUL (U+0000)"],
    ["half a character", ["\ud83d"], "event[0] must be valid Unicode: it has half of a surrogate pair"],
    ["such a name", { a: { "\0": 1 } }, "a name in event.a must not contain NUL (U+0000)"],
    ["a text alone", "\0", "event must not contain NUL (U+0000)"],
    [
      "numbers that take much more there",
      { numbers: Array.from({ length: 3_500 }, () => largest) },
      "event has too many numbers with a large exponent: write them as strings",
    ],
  ];
  it.each(cases)("has %s, and is refused with the path of the problem", (_what, value, problem) => {
    expect(isStorableJson(value, "event")).toBe(false);
    expect(() => checkJsonValue(value, "event")).toThrow(new InvalidInputError(problem));
  });
});

it("takes what the database stores as it is", () => {
  const value = { "a name": ["😀", 1e308, -1.5, true, null, {}, []], "": "" };
  expect(isStorableJson(value, "event")).toBe(true);
  expect(() => checkJsonValue(value, "event")).not.toThrow();
});
