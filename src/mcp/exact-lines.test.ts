import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { exactLines } from "./exact-lines.ts";

async function passed(...chunks: readonly string[]): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of Readable.from(chunks.map((chunk) => Buffer.from(chunk))).pipe(exactLines()))
    parts.push(Buffer.from(part as Buffer));
  return Buffer.concat(parts).toString();
}

test("numbers keep their digits, wherever a line is cut", async () => {
  const line = '{"id":1,"event":{"name":"\u00e9","id":12345678901234567890}}\n';
  const kept = '{"id":1,"event":{"name":"\u00e9","id":"12345678901234567890"}}\n';
  const bytes = Buffer.from(line + line);
  for (let at = 0; at <= bytes.length; at += 1) {
    const stream = Readable.from([bytes.subarray(0, at), bytes.subarray(at)].filter((part) => part.length > 0));
    const parts: Buffer[] = [];
    for await (const part of stream.pipe(exactLines())) parts.push(Buffer.from(part as Buffer));
    expect(Buffer.concat(parts).toString()).toBe(kept + kept);
  }
});

test.each([
  ["what is no JSON", "12345678901234567890 1\n{\n"],
  ["a line without its end", '{"id":12345678901234567890}'],
  ["a line of more than the bound", `["${"x".repeat(11 * 1024 * 1024)}"]\n`],
  ["nothing", ""],
])("%s passes as it is", async (_name, text) => {
  expect(await passed(text)).toBe(text);
});
