import { expect, it } from "vitest";
import { sampleEvent } from "./sample-event.ts";

it.each([
  ["Update what is outdated.", {}],
  ["Fix {{ event.issue.url }}: {{ event.issue.title | upcase }}", { issue: { url: "", title: "" } }],
  ["{% if event.issue %}{{ event.issue.url }}{% endif %}", { issue: { url: "" } }],
  ["{{ event.issue.url }} {% if event.issue %}x{% endif %}", { issue: { url: "" } }],
  ["{% for label in event.labels %}{{ label.name }}{% endfor %}", { labels: "" }],
  ["event.outside is text, and so is my.event.name in {{ my.event.name }}", {}],
])("%s", (instructions, sample) => {
  expect(sampleEvent(instructions)).toEqual(sample);
});
