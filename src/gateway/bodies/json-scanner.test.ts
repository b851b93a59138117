import fc from "fast-check";
import { expect, it } from "vitest";
import { createJsonScanner, MalformedJsonError, type Scalar } from "./json-scanner.ts";

/** The document that a listener builds from pieces of so many bytes. */
function read(bytes: Uint8Array, size: number): unknown {
  const holder: unknown[] = [];
  const open: { readonly value: Record<string, unknown> | unknown[]; name: string }[] = [];
  const add = (value: unknown): void => {
    const outer = open.at(-1);
    if (outer === undefined) holder.push(value);
    else if (Array.isArray(outer.value)) outer.value.push(value);
    else
      Object.defineProperty(outer.value, outer.name, { value, enumerable: true, configurable: true, writable: true });
  };
  const scanner = createJsonScanner({
    key(name) {
      const outer = open.at(-1);
      if (outer !== undefined) outer.name = name ?? "";
    },
    open(kind) {
      const value = kind === "list" ? [] : {};
      add(value);
      open.push({ value, name: "" });
      return true;
    },
    close: () => void open.pop(),
    scalar: ({ kind, text }: Scalar) => add(kind === "string" ? text : JSON.parse(text ?? "null")),
  });
  for (let at = 0; at < bytes.length; at += size) scanner.push(bytes.subarray(at, at + size));
  scanner.end();
  return holder[0];
}

const isJson = (bytes: Uint8Array): boolean => {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
};

it("reads what JSON.parse reads, however it is cut and spaced", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 1, max: 9 }), fc.nat(4), (value, size, space) => {
      const written = JSON.stringify(value, null, space);
      expect(read(Buffer.from(written), size)).toEqual(JSON.parse(written));
    }),
  );
});

it("takes exactly what is JSON in UTF-8", () => {
  const pieces = [...Array.from('{}[]:,"\\ue0-+.E1truefalsn'), " ", "\n", "null", "\u00e9", "\u{1f600}"].map((piece) =>
    Buffer.from(piece),
  );
  const odd = [0x00, 0x1f, 0x7f, 0x80, 0xc0, 0xe0, 0xed, 0xa0, 0xf4, 0x90, 0xff].map((byte) => Buffer.from([byte]));
  const bytes = fc.array(fc.constantFrom(...pieces, ...odd), { maxLength: 8 }).map((parts) => Buffer.concat(parts));
  const mutated = fc
    .tuple(fc.json({ maxDepth: 3 }), fc.nat(), fc.constantFrom(...pieces, ...odd), fc.nat(1))
    .map(([json, place, piece, drop]) => {
      const whole = Buffer.from(json);
      const at = place % (whole.length + 1);
      return Buffer.concat([whole.subarray(0, at), piece, whole.subarray(at + drop)]);
    });
  fc.assert(
    fc.property(fc.oneof(bytes, mutated), fc.integer({ min: 1, max: 5 }), (document, size) => {
      let isRead = true;
      try {
        read(document, size);
      } catch (error) {
        if (!(error instanceof MalformedJsonError)) throw error;
        isRead = false;
      }
      expect(isRead).toBe(isJson(document));
    }),
    { numRuns: 5_000 },
  );
});

it("tells nothing of what is not followed, but that it is JSON", () => {
  const seen: string[] = [];
  const follow = (document: string) => {
    const scanner = createJsonScanner({
      key: (name) => void seen.push(`key ${name}`),
      open: (kind, at) => at === 0 && seen.push(kind) > 0,
      close: () => void seen.push("close"),
      scalar: ({ text }) => void seen.push(`scalar ${text}`),
    });
    scanner.push(Buffer.from(document));
    scanner.end();
  };
  follow('{"a":[{"b":"c"}],"d":{"e":[1]},"f":2}');
  expect(seen).toEqual(["object", "key a", "key d", "key f", "scalar 2", "close"]);
  expect(() => follow('{"a":[{"b":}]}')).toThrow(MalformedJsonError);
});

it("keeps the beginning of what is long, and where it stands", () => {
  const scalars: Scalar[] = [];
  const scanner = createJsonScanner({
    key: () => undefined,
    open: () => true,
    close: () => undefined,
    scalar: (value) => void scalars.push(value),
  });
  const document = Buffer.from(`["${"x".repeat(10_000)}", 12 ,null]`);
  for (let at = 0; at < document.length; at += 7) scanner.push(document.subarray(at, at + 7));
  scanner.end();
  expect(scalars.map(({ kind, text, start }) => [kind, text, start.slice(0, 3)])).toEqual([
    ["string", null, "xxx"],
    ["number", "12", "12"],
    ["literal", "null", "nul"],
  ]);
  expect(scalars.map(({ from, to }) => document.subarray(from, to).toString().slice(-5))).toEqual([
    'xxxx"',
    "12",
    "null",
  ]);
});

it.each([
  ["65 levels", "[".repeat(65)],
  ["a number of 65 digits", `[${"1".repeat(65)}]`],
])("takes no %s", (_, document) => {
  expect(() => read(Buffer.from(document), 1_000)).toThrow(MalformedJsonError);
});
