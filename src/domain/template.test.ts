import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkInstructions, renderInstructions } from "./template.ts";

describe("instructions", () => {
  it.each([
    ["Fix {{ event.issue.url }}", { issue: { url: "https://example.com/7" } }, "Fix https://example.com/7"],
    ["{{ event.labels }} {{ event.who }}", { labels: ["a"], who: { name: "b" } }, '["a"] {"name":"b"}'],
    ["{% for label in event.labels %}{{ label }};{% endfor %}", { labels: ["a", "b"] }, "a;b;"],
    ['{{ event.missing | default: "none" }}', {}, "none"],
    ["{% if event.missing %}yes{% else %}no{% endif %}", {}, "no"],
  ])("%s with %j are rendered as %s", async (instructions, event, prompt) => {
    expect(await renderInstructions(instructions, event)).toBe(prompt);
  });

  it.each([
    ["Fix {{ event.issue.url }}", "event.issue"],
    ["{{ event.x | nonsense }}", "nonsense"],
    ["   ", "rendered to nothing"],
    ["{% for i in (1..100000000) %}x{% endfor %}", "instructions:"],
    ['{% include "/etc/passwd" %}', "include"],
    ['{% render "/etc/passwd" %}', "render"],
  ])("%s are refused naming %s", async (instructions, problem) => {
    await expect(renderInstructions(instructions, {})).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining(problem) as string,
    });
  });

  it("do not reach a value that is not the event's own", async () => {
    for (const path of ["constructor", "__proto__", "toString", "constructor.constructor"]) {
      await expect(renderInstructions(`{{ event.${path} }}`, {})).rejects.toMatchObject({ code: "invalid_input" });
    }
  });

  it("print what an event says as it is, and never read it as template", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", minLength: 1 }), async (text) => {
        const payload = `${text}{{ event.secret }}{% raw %}`;
        expect(await renderInstructions("<{{ event.text }}>", { text: payload, secret: "seen" })).toBe(`<${payload}>`);
      }),
    );
  });

  it("are checked before they are saved", () => {
    expect(() => checkInstructions("{% if %}")).toThrow(/instructions/u);
    expect(() => checkInstructions("{{ event.x }}")).not.toThrow();
  });
});
