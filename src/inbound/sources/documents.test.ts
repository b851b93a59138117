import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sourceEventNames, sourceEventSchema, sourceNames } from "../../domain/automations/source-event.ts";
import { renderLiquid } from "../../templates/liquid.ts";
import { at } from "./payload.ts";
import { sampleDelivery } from "./source.ts";
import { sources } from "./sources.ts";

const document = await readFile(join(import.meta.dirname, "../../../docs/sources.md"), "utf8");
const sections = new Map(
  document.split(/^## /mu).map((section) => [section.slice(0, section.indexOf("\n")).toLowerCase(), section] as const),
);

/** The blocks of a source's section that are in a language. */
function blocksOf(name: string, language: string): string[] {
  const pattern = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, "gmu");
  return [...(sections.get(name.toLowerCase()) ?? "").matchAll(pattern)].map(([, block]) => block ?? "");
}

/** All events that the samples of a source become. */
const eventsOf = (name: (typeof sourceNames)[number]) =>
  sources[name].samples.flatMap((sample) => sources[name].reader.read(sampleDelivery(sample)).events);

describe("docs/sources.md", () => {
  it.each(sourceNames)("names the events of %s, all of them", (name) => {
    const row = document.split("\n").find((line) => line.startsWith(`| [\`${name}\`]`)) ?? "";
    const named = [...(row.split("|")[2] ?? "").matchAll(/`([\w.]+)`/gu)].map(([, event]) => event);
    expect(named).toEqual(sourceEventNames[name] ?? ["type"]);
  });

  it.each(sourceNames)("has a template for %s that a sample fills in", (name) => {
    const [template = ""] = blocksOf(name, "liquid");
    const rendered = renderLiquid(template, eventsOf(name)[0]?.event ?? {}, 10_000);
    expect(rendered.trim().length).toBeGreaterThan(20);
    expect(rendered).not.toContain("{{");
  });

  it.each(sourceNames)("has a condition for %s of fields that its samples have", (name) => {
    const [condition = ""] = blocksOf(name, "cel");
    const paths = [...condition.matchAll(/\bevent((?:\.\w+\b(?!\())+)/gu)].map(
      ([, path]) => path?.slice(1).split(".") ?? [],
    );
    expect(paths.length).toBeGreaterThan(0);
    const found = paths.filter((path) => eventsOf(name).some(({ event }) => at(event, ...path) !== undefined));
    expect(found).toEqual(paths);
  });

  it("names every field of an event", () => {
    for (const [part, schema] of Object.entries(sourceEventSchema.shape)) {
      const row = document
        .split("\n")
        .find((line) => line.startsWith("| `event.") && line.includes(`\`event.${part}\``));
      expect([part, row]).not.toContain(undefined);
      const inner = "unwrap" in schema ? schema.unwrap() : schema;
      const fields = "shape" in inner ? Object.keys(inner.shape) : [];
      expect(fields.filter((field) => row?.includes(`\`${field}\``) !== true)).toEqual([]);
    }
  });
});
