import fc from "fast-check";
import { expect, it } from "vitest";
import { celTokens } from "./cel-tokens.ts";

const shown = (condition: string): string[] =>
  celTokens(condition).flatMap(({ kind, text }) => (kind === "text" ? [] : [`${kind} ${text}`]));

it.each([
  ["", []],
  ["event.issue.number > 5", ["name event", "name issue", "name number", "literal 5"]],
  [
    '"bug" in event.labels && !has(event.draft)',
    ['literal "bug"', "keyword in", "name event", "name labels", "call has", "name event", "name draft"],
  ],
  ["event.x == null || true", ["name event", "name x", "keyword null", "keyword true"]],
  [
    String.raw`event.x.matches(r"^\d+$") // numbers`,
    ["name event", "name x", "call matches", String.raw`literal r"^\d+$"`, "comment // numbers"],
  ],
  [String.raw`"say \"yes\"" + 'it'`, [String.raw`literal "say \"yes\""`, "literal 'it'"]],
  ['"""a\n"b"""', ['literal """a\n"b"""']],
  ['"open\n && x', ['literal "open', "name x"]],
  ["0xFFu + 1.5e-3", ["literal 0xFFu", "literal 1.5e-3"]],
  ["[1, 2].exists(n, n == 1)", ["literal 1", "literal 2", "call exists", "name n", "name n", "literal 1"]],
  ["event.name == 'שלום 👩‍🚀'", ["name event", "name name", "literal 'שלום 👩‍🚀'"]],
])("%s", (condition, tokens) => {
  expect(shown(condition)).toEqual(tokens);
});

const parts = [
  "event",
  ".",
  "in",
  "has",
  "(",
  ")",
  '"',
  "'",
  '"""',
  "\\",
  "r",
  "//",
  "\n",
  " ",
  "1e",
  "5",
  "0x",
  "&&",
  "é",
  "👩‍🚀",
  "ש",
];

it("together they are the condition", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...parts)).map((all) => all.join("")),
      (condition) => {
        expect(
          celTokens(condition)
            .map(({ text }) => text)
            .join(""),
        ).toBe(condition);
      },
    ),
  );
});
