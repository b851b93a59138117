import { afterAll, beforeAll, expect, test } from "vitest";
import { InvalidInputError } from "../../src/domain/errors/errors.ts";
import { createTemplates, type Templates } from "../../src/templates/templates.ts";

let templates: Templates;
const asker = { organizationId: "o", id: "files" };
beforeAll(() => {
  templates = createTemplates();
});
afterAll(() => templates?.close());

test("YAML is read as it is", async () => {
  expect(await templates.readYaml('a: [1, "x", null]\nb: {c: true}\n', asker)).toEqual({
    a: [1, "x", null],
    b: { c: true },
  });
});

test.each([
  [
    "a bomb of aliases",
    `a: &a [x, x, x, x, x, x, x, x, x]\n${"bcdefgh"
      .split("")
      .map((name, index) => `${name}: &${name} [${Array(9).fill(`*${"abcdefgh"[index]}`).join(",")}]`)
      .join("\n")}\n`,
  ],
  ["deep lists", `name: ${"[".repeat(60_000)}`],
  ["deep maps", Array.from({ length: 350 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n")],
  ["deep flow maps", `a: ${"{a: ".repeat(15_000)}`],
  ["many keys", Array.from({ length: 10_000 }, (_, index) => `k${index}:`).join("\n")],
  ["many values", `a: [${"1,".repeat(32_000)}]`],
  ["many comments", "#\n".repeat(32_000)],
  ["many documents", "---\n".repeat(16_000)],
  ["many anchors", "- &a\n".repeat(12_000)],
  ["a long text of spaces", `a: "${" ".repeat(65_000)}`],
  ["long folded lines", `a: >\n${" x\n\n".repeat(15_000)}`],
  ["many errors", "%\n".repeat(32_000)],
  ["many tabs", "\t".repeat(65_000)],
  ["question marks", "? ".repeat(32_000)],
])("%s is refused with a short problem, and what follows is read", async (_what, content) => {
  // What can be read at once is for the schema to refuse.
  const words = await templates.readYaml(content, asker).then(
    () => "read",
    (error: unknown) => (error instanceof InvalidInputError ? error.message : `unexpected: ${String(error)}`),
  );
  expect(words).not.toContain("unexpected: ");
  expect(words.length).toBeLessThan(600);
  expect(await templates.readYaml("a: 1", asker)).toEqual({ a: 1 });
});

test("a file that takes seconds to read ends its process, not the server's time", async () => {
  await expect(templates.readYaml("]".repeat(65_000), asker)).rejects.toThrow(
    "took more than 100 ms of processor time",
  );
});
