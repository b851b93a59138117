import fc from "fast-check";
import { expect, test } from "vitest";
import { createLines, messageLimits, ProtocolViolation, requireShape } from "./protocol-lines.ts";

const limits = { bytes: 1_000, depth: 4, values: 20 };
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (line: Uint8Array): string => new TextDecoder().decode(line);

test("lines are the same however their bytes come in pieces", () => {
  const lineText = fc.string({ unit: "grapheme", maxLength: 20 }).filter((text) => !text.includes("\n"));
  fc.assert(
    fc.property(fc.array(lineText), fc.array(fc.nat(50)), (given, cuts) => {
      const bytes = bytesOf(given.map((text) => `${text}\n`).join(""));
      const linesOf = createLines(limits);
      const found: string[] = [];
      let from = 0;
      for (const cut of [...cuts, bytes.length]) {
        for (const line of linesOf(bytes.subarray(from, from + cut))) found.push(textOf(line));
        from += cut;
      }
      for (const line of linesOf(bytes.subarray(from))) found.push(textOf(line));
      expect(found).toEqual(given.filter((text) => text !== ""));
    }),
  );
});

test("a line of more bytes than the limit is refused, in one piece or many, ended or not", () => {
  expect([...createLines(limits)(bytesOf(`${"x".repeat(1_000)}\n`))]).toHaveLength(1);
  expect(() => [...createLines(limits)(bytesOf(`${"x".repeat(1_001)}\n`))]).toThrow(ProtocolViolation);
  const linesOf = createLines(limits);
  const byOnes = (): void => {
    for (let count = 0; count < 1_001; count += 1) for (const line of linesOf(bytesOf("x"))) void line;
  };
  expect(byOnes).toThrow(ProtocolViolation);
});

/** By the parsed value, which is what the look before it stands in for. */
function shapeOf(value: unknown): { depth: number; values: number } {
  if (typeof value !== "object" || value === null) return { depth: 0, values: 1 };
  const inner = Object.values(value).map(shapeOf);
  return {
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    values: 1 + inner.reduce((sum, { values }) => sum + values, 0),
  };
}

function refuses(json: string): boolean {
  try {
    requireShape(bytesOf(json), limits);
    return false;
  } catch (error) {
    if (error instanceof ProtocolViolation) return true;
    throw error;
  }
}

test("JSON passes if it is no deeper and has no more values than the limits, whatever its strings hold", () => {
  let refused = 0;
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 8, stringUnit: fc.constantFrom('"', "\\", "[", "]", "{", ",", "é", "\n") }),
      (value) => {
        const { depth, values } = shapeOf(JSON.parse(JSON.stringify(value)));
        const isRefused = refuses(JSON.stringify(value));
        const isBeyond = depth > limits.depth || values > 2 * limits.values;
        const isWithin = depth <= limits.depth && values < limits.values / 2;
        if (isRefused) refused += 1;
        expect(isRefused ? !isWithin : !isBeyond).toBe(true);
      },
    ),
    { numRuns: 1_000 },
  );
  expect(refused).toBeGreaterThan(0);
});

test.each([
  ["nested arrays", "[".repeat(1_000_000)],
  ["nested objects", '{"a":'.repeat(500_000)],
  ["many arrays", `[${"[],".repeat(1_000_000)}`],
  ["many numbers", `[${"0,".repeat(1_000_000)}`],
])("%s are refused before they are read to their end", (_name, text) => {
  expect(() => requireShape(bytesOf(text), messageLimits)).toThrow(ProtocolViolation);
});
