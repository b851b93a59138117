import { expect, test } from "vitest";
import { readHeaderTrace } from "./header-trace.ts";

/** How long the last answer of a trace asked to wait. */
function askedBy(...lines: readonly string[]): number | null {
  const trace = readHeaderTrace();
  // A piece may end anywhere.
  for (const byte of Buffer.from(`${lines.join("\n")}\n`)) trace.read(Buffer.from([byte]));
  return trace.askedMs();
}

const received = (header: string): string => `14:18:08.607753 http.c:684              <= Recv header: ${header}`;
const asked = received("Retry-After: 120");

test.each<[string, readonly string[], number | null]>([
  ["a refusal that names a time", [received("HTTP/1.1 429 Too Many Requests"), asked], 120_000],
  ["the same over HTTP/2, with the end of a line of HTTP", [received("HTTP/2 503\r"), `${asked}\r`], 120_000],
  ["the same without the time of the trace", ["<= Recv header: HTTP/2 429", "<= Recv header: retry-after: 1"], 1_000],
  ["one that names none", [received("HTTP/1.1 429 Too Many Requests"), received("Date: today")], null],
  ["one that is no matter of time", [received("HTTP/1.1 404 Not Found"), asked], null],
  ["a refusal that another answer followed", [received("HTTP/2 429"), asked, received("HTTP/2 200")], null],
  ["a header that was sent", [received("HTTP/2 429"), "=> Send header: Retry-After: 120"], null],
  ["a header that quotes one", [received("HTTP/2 429"), received(`X-Words: <= Recv header: Retry-After: 9`)], null],
  ["a header without end", [received("HTTP/2 429"), received("X-Long: ".padEnd(5_000, "x")), asked], 120_000],
])("%s", (_, lines, ms) => {
  expect(askedBy(...lines)).toBe(ms);
});

test("a line without end is not kept", () => {
  const trace = readHeaderTrace();
  const piece = Buffer.alloc(65_536, "x");
  for (let pieces = 0; pieces < 100; pieces += 1) trace.read(piece);
  trace.read(Buffer.from(`\n${received("HTTP/2 429")}\n${asked}\n`));
  expect(trace.askedMs()).toBe(120_000);
});
