import { expect, it } from "vitest";
import { ansiHtml, chunksOf } from "./ansi.ts";

const red = "\u001b[31m";
const bold = "\u001b[1m";
const off = "\u001b[0m";

it("goes on with the colours of the piece before, until they are set back", () => {
  const lines = Array.from({ length: 500 }, (_, line) => `line ${line}`);
  lines[10] = `${bold}${red}from here`;
  lines[450] = `${off}to here`;
  const chunks = chunksOf(lines.join("\n"));
  expect(chunks.map((chunk) => chunk.lines)).toEqual([200, 200, 100]);
  expect(ansiHtml(chunks[1]?.text ?? "")).toMatch(/^<span class="ansi-red-fg ansi-bold">line 200\n/u);
  expect(ansiHtml(chunks[2]?.text ?? "")).toMatch(/ansi-red-fg[^>]*>line 400[^]*<\/span>to here\nline 451/u);
  expect(chunks.reduce((sum, chunk) => sum + chunk.lines, 0)).toBe(500);
});

it("has no style of its own, whatever is set", () => {
  const faint = ansiHtml(
    '\u001b[2mfaint\u001b[0m \u001b[38;5;214morange\u001b[0m \u001b[3;4munder\u001b[0m style="color:red"',
  );
  expect(faint).not.toMatch(/<[^>]*style=/u);
  expect(faint).toContain('class="ansi-faint">faint');
  expect(faint).toContain("style=&quot;color:red&quot;");
});

it("makes text of what looks like markup", () => {
  expect(ansiHtml("<img src=x onerror=alert(1)>")).toBe("&lt;img src=x onerror=alert(1)&gt;");
});

it("does not count the line break at the end as a line", () => {
  expect(chunksOf("one\ntwo\n")).toEqual([{ lines: 2, text: "one\ntwo" }]);
});
