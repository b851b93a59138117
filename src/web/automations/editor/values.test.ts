import { describe, expect, it } from "vitest";
import { celNaming, liquidNaming, valuesFor, valuesOf } from "./values.ts";

const event = {
  issue: { title: "Crash", labels: [{ name: "bug" }], "sub-issue": 7, "a b": null, 'no"name': 1 },
  list: [],
  long: "é".repeat(200),
};

describe("values that can be named", () => {
  it("has those of Liquid, the short names first", () => {
    expect(valuesOf({ event }, liquidNaming)).toEqual([
      { path: "event.issue", value: expect.stringMatching(/^\{"title":"Crash",.{63}…$/u) as string, hasMore: true },
      { path: "event.list", value: "[]", hasMore: false },
      { path: "event.long", value: expect.stringMatching(/^"é{79}…$/u) as string, hasMore: false },
      { path: "event.issue.title", value: '"Crash"', hasMore: false },
      { path: "event.issue.labels", value: '[{"name":"bug"}]', hasMore: true },
      { path: "event.issue.sub-issue", value: "7", hasMore: false },
      { path: 'event.issue["a b"]', value: "null", hasMore: false },
      { path: "event.issue.labels[0]", value: '{"name":"bug"}', hasMore: true },
      { path: "event.issue.labels[0].name", value: '"bug"', hasMore: false },
    ]);
  });

  it("writes names as CEL has them, and has its other variables", () => {
    const paths = valuesOf({ event: { "a-b": 1 }, trigger: { type: "api" }, repository: null }, celNaming);
    expect(paths.map(({ path }) => path)).toEqual(['event["a-b"]', "trigger.type"]);
  });

  it("has a bounded number of those of a large event", () => {
    const rows = Array.from({ length: 10_000 }, (_, row) => [`row${row}`, { x: row }]);
    expect(valuesOf({ event: Object.fromEntries(rows) as object }, liquidNaming)).toHaveLength(3_000);
  });
});

describe("where a name was begun", () => {
  it.each([
    ["Fix {{ event.|", "event."],
    ["{% if event.issue.la|", "event.issue.la"],
    ["{%- for x in event.issue.labels[0].|", "event.issue.labels[0]."],
    ['{{ event.issue["a b"].|', 'event.issue["a b"].'],
    ["{{ event.iss|ue.title }}", "event.iss"],
    ["{{ event|", null],
    ["event.|", null],
    ["{{ x }} event.|", null],
    ["{{ my.event.|", null],
    ['{{ "event.|', null],
    ["{% comment %}{{ event.|", null],
    ["{% raw %}{{ event.|", null],
  ])("in Liquid: %s", (marked, words) => {
    const cursor = marked.indexOf("|");
    expect(liquidNaming.begunAt(marked.replace("|", ""), cursor)?.words ?? null).toBe(words);
  });

  it.each([
    ["event.|", "event."],
    ["has(event.issue.|", "event.issue."],
    ["1 < repository.na|", "repository.na"],
    ["event.a-event.b|", "event.b"],
    ["'event.|", null],
    ["// event.|", null],
    ["x.event.|", null],
  ])("in CEL: %s", (marked, words) => {
    const cursor = marked.indexOf("|");
    expect(celNaming.begunAt(marked.replace("|", ""), cursor)?.words ?? null).toBe(words);
  });
});

describe("values that fit what was written", () => {
  const values = valuesOf({ event }, liquidNaming);
  const paths = (words: string): string[] => valuesFor(words, values).map(({ path }) => path);

  it("are those that begin so, then those that have it further on", () => {
    expect(paths("event.l")).toEqual([
      "event.list",
      "event.long",
      "event.issue.labels",
      "event.issue.labels[0]",
      "event.issue.labels[0].name",
    ]);
  });

  it("are none if it is written already, or none fits", () => {
    expect(paths("event.issue.title")).toEqual([]);
    expect(paths("event.walrus")).toEqual([]);
  });
});
