import fc from "fast-check";
import { expect, test } from "vitest";
import { parseExactly } from "./exact-json.ts";

test.each([
  ["9007199254740991", 9007199254740991],
  ["-9007199254740991", -9007199254740991],
  ["9007199254740993", "9007199254740993"],
  ["-12345678901234567890", "-12345678901234567890"],
  ["1e400", "1e400"],
  ["-1E+999", "-1E+999"],
  ["1e-400", 0],
  ["0.12345678901234567", Number("0.12345678901234567")],
  [
    '{"a":[1,12345678901234567890],"12345678901234567890":"12345678901234567890"}',
    { a: [1, "12345678901234567890"], "12345678901234567890": "12345678901234567890" },
  ],
  [
    String.raw`["\\", 12345678901234567890, "\" 12345678901234567890 \\\""]`,
    ["\\", "12345678901234567890", '" 12345678901234567890 \\"'],
  ],
])("%s is %j", (json, value) => {
  expect(parseExactly(json)).toEqual(value);
});

test("what JavaScript can hold is what JSON.parse gives", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1), (value, indent) => {
      const json = JSON.stringify([value, "1234567890123456 1e400"], null, indent);
      expect(parseExactly(json)).toEqual(JSON.parse(json, asText));
    }),
  );
  function asText(_name: string, value: unknown): unknown {
    return typeof value === "number" &&
      Number.isInteger(value) &&
      !Number.isSafeInteger(value) &&
      !/[.e]/u.test(String(value))
      ? String(value)
      : value;
  }
});

test.each(["", "{", "12345678901234567890 1", '"\n12345678901234567890"', "01234567890123456789"])(
  "%j is no JSON",
  (json) => {
    expect(() => parseExactly(json)).toThrow(SyntaxError);
  },
);
