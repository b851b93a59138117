import fc from "fast-check";
import { expect, it } from "vitest";
import { liquidTokens } from "./liquid-tokens.ts";

/** The tokens of a template in one line each; blanks and plain text left out. */
const shown = (template: string): string[] =>
  liquidTokens(template).flatMap(({ kind, text }) => (kind === "text" ? [] : [`${kind} ${text}`]));

it.each([
  ["Update what is outdated: { a } {", []],
  ["Fix {{ event.issue.url }}", ["mark {{", "name event", "name issue", "name url", "mark }}"]],
  [
    '{{- event.a-b | default: "n}}o" -}}',
    ["mark {{-", "name event", "name a-b", "call default", 'literal "n}}o"', "mark -}}"],
  ],
  ["{{ event.if | plus: 1.5 }}", ["mark {{", "name event", "name if", "call plus", "literal 1.5", "mark }}"]],
  [
    "{% if event.x contains 'y' %}z{% endif %}",
    [
      "mark {%",
      "keyword if",
      "name event",
      "name x",
      "keyword contains",
      "literal 'y'",
      "mark %}",
      "mark {%",
      "keyword endif",
      "mark %}",
    ],
  ],
  ["{% # a remark %}{{ x }}", ["mark {%", "comment  # a remark ", "mark %}{{", "name x", "mark }}"]],
  [
    "{% comment %}{{ no }}{% endcomment %}{{ yes }}",
    [
      "mark {%",
      "keyword comment",
      "mark %}",
      "comment {{ no }}",
      "mark {%",
      "keyword endcomment",
      "mark %}{{",
      "name yes",
      "mark }}",
    ],
  ],
  ["{% raw %}{{ no }}{%- endraw %}", ["mark {%", "keyword raw", "mark %}", "mark {%-", "keyword endraw", "mark %}"]],
  ['{{ "open }} and {{ x }}', ["mark {{", 'literal "open ', "mark }}", "mark {{", "name x", "mark }}"]],
  ["{{ event.", ["mark {{", "name event"]],
  ["{{ שלום | 👩‍🚀 }}", ["mark {{", "mark }}"]],
])("%s", (template, tokens) => {
  expect(shown(template)).toEqual(tokens);
});

const parts = [
  "{{",
  "}}",
  "{%",
  "-%}",
  "{{-",
  " ",
  "\n",
  '"',
  "'",
  "event",
  ".",
  "|",
  "comment",
  "endcomment",
  "raw",
  "#",
  "if",
  "1.5",
  "é",
  "👩‍🚀",
  "ש",
  "{",
  "%",
];

it("together they are the template", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...parts)).map((all) => all.join("")),
      (template) => {
        expect(
          liquidTokens(template)
            .map(({ text }) => text)
            .join(""),
        ).toBe(template);
      },
    ),
  );
});
