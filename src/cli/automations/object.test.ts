import { expect, test } from "vitest";
import { parseObject } from "./object.ts";

test("an event keeps the digits of an id that JavaScript can't hold", () => {
  expect(parseObject('{"id": 12345678901234567890, "n": 1.5}')).toEqual({ id: "12345678901234567890", n: 1.5 });
});

test.each(["", "[]", "null", "{"])("%j is refused", (text) => {
  expect(() => parseObject(text)).toThrow(/JSON/u);
});
