import { expect, it } from "vitest";
import { renderLiquid } from "../../../templates/liquid.ts";
import { messageOf } from "../../../domain/errors/errors.ts";
import { placeOf } from "./problem-place.ts";

/** The renderer's message about a template that it can't render. */
function problemOf(template: string): string {
  try {
    return renderLiquid(template, {}, 1_000);
  } catch (error) {
    return messageOf(error);
  }
}

it.each([
  ["Fix {{ event.issue }}", "event.issue "],
  ["a\nb {{ event.x | walrus: 1 }} c", "{{ event.x | walrus: 1 "],
  ["שלום 👩‍🚀\n{{- event.x -}}", "event.x "],
  ["{% if true %}", "{% if true "],
  ["a\n{{ event.x", "{{ event.x"],
])("finds the place in %j", (template, wrong) => {
  const place = placeOf(problemOf(template), template);
  expect(template.slice(place?.from, place?.until)).toBe(wrong);
});

it.each([["instructions: rendered to nothing"], ["instructions: x, line:7, col:1"], [null]])(
  "finds none in %j",
  (problem) => {
    expect(placeOf(problem, "one line")).toBeNull();
  },
);
