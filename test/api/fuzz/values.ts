import fc from "fast-check";
import type { Schema } from "./description.ts";

/** As long as the longest text that the API takes. */
const long = 100_000;

/** JSON that `JSON.stringify` would not write: put into the body's text as it is. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

const nested = (levels: number, open: string, inner: string, close: string): RawJson =>
  new RawJson(open.repeat(levels) + inner + close.repeat(levels));

const oneCharacter = fc
  .constantFrom(...Array.from("a \n\t.-_/\\:@#&<>(){}]*`'\"%+~=|^$?,;!0é💥\u200d\u202e\u0301\ufeff"))
  .map((character) => character.repeat(long / character.length));
/** What a rule on branches, addresses, globs or templates takes longest to look through, if it is not linear. */
const repeated = fc
  .constantFrom(
    "[",
    "![",
    "](",
    "<!--",
    "__",
    "`",
    "../",
    "a/",
    "a.",
    "http://",
    "https://a@",
    "{{",
    "{%",
    "{% if a %}",
    "{{ a | ",
    "%2e",
    "ab\n",
    "\r\n",
    " a",
    "*a",
    "::",
  )
  .map((unit) => unit.repeat(Math.floor(long / unit.length)));

const texts = fc.constantFrom<unknown>(
  "",
  " ",
  "\0",
  "a\0b",
  "\ud800",
  "\udfff\ud800",
  "💥",
  "../..",
  "%00",
  "'; drop table session; --",
  "{{ event }}",
  "{% raw %}",
  "constructor",
  "__proto__",
  "a".repeat(5_000),
  "null",
  "NaN",
  "1e309",
  "-0",
  "../../../etc/passwd",

  "file:///etc/passwd",
  "http://169.254.169.254/",
  "http://[::ffff:127.0.0.1]/",
  "git@host:a/b",
  "ssh://-oProxyCommand=x/a",

  "2030-01-31T12:00:00Z",
  "0000-00-00T00:00:00Z",
  "+275760-09-13T00:00:00.001Z",
  "opencode:m",
  ":",
  "a:",
  "refs/heads/..",
);
const numbers = fc.constantFrom<unknown>(
  -1,
  0,
  1.5,
  1e308,
  -1e308,
  5e-324,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  ...["1e400", "-0", "9".repeat(400), `0.${"0".repeat(400)}1`, "1E+0000000001"].map((text) => new RawJson(text)),
);
const structures = fc.constantFrom<unknown>(
  null,
  true,
  [],
  {},
  [null],
  { a: { b: [] } },
  Array(1_000).fill("a"),
  Array(20_000).fill(0),
  Array.from({ length: 100 }, () => ({ a: [] })),
  nested(60, "[", "", "]"),
  nested(64, "[", "", "]"),
  nested(70, "[", "", "]"),
  nested(60, '{"a":', "1", "}"),
  nested(50_000, "[", "", "]"),
  nested(30_000, '{"a":', "1", "}"),
  new RawJson(`[${"1e308,".repeat(160_000)}1]`),
  new RawJson('{"a":1,"a":2}'),
  new RawJson('{"__proto__":{"admin":true},"constructor":{"prototype":{}}}'),
  new RawJson(`{${Array.from({ length: 10_000 }, (_, index) => `"k${index}":0`).join()}}`),
);

/** What no schema asks for. */
export const awkward: fc.Arbitrary<unknown> = fc.oneof(
  { arbitrary: texts, weight: 6 },
  { arbitrary: numbers, weight: 2 },
  { arbitrary: structures, weight: 3 },
  { arbitrary: oneCharacter, weight: 1 },
  { arbitrary: repeated, weight: 1 },
);

/** A value that the schema describes. @param ids of things that there are, of this organization and others */
export function valid(schema: Schema, ids: readonly string[]): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined && choices.length > 0 && schema.properties === undefined)
    return fc.oneof(...choices.map((choice) => valid(choice, ids)));
  if (schema.format === "uuid") return fc.oneof(fc.constantFrom(...ids), fc.uuid());
  switch (schema.type) {
    case "object": {
      const fields = Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, valid(inner, ids)] as const);
      return fields.length === 0
        ? fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 })
        : fc.record(Object.fromEntries(fields), { requiredKeys: [] });
    }
    case "array":
      return fc.array(valid(schema.items ?? {}, ids), { maxLength: 4 });
    case "integer":
    case "number":
      return fc.integer({ min: schema.minimum ?? -10, max: Math.min(schema.maximum ?? 1_000, 1_000) });
    case "boolean":
      return fc.boolean();
    case "string":
      return fc.oneof(
        fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }),
        fc.constantFrom("same", "main", "https://git.example.com/a/b", "opencode:m", "Fix {{ event.x | default: 1 }}"),
        fc.constantFrom(...ids),
      );
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

/** A value with one field that is other than it should be, or that is not there. */
export function withWrongField(
  good: fc.Arbitrary<unknown>,
  schema: Schema,
  ids: readonly string[],
): fc.Arbitrary<unknown> {
  const names = Object.keys(schema.properties ?? {});
  const name = fc.oneof(
    { arbitrary: fc.constantFrom(...names, "unknown"), weight: 9 },
    { arbitrary: fc.constantFrom("__proto__", "toString"), weight: 1 },
  );
  const wrong = name.chain((chosen) => {
    const other = schema.properties?.[chosen];
    const value = fc.oneof(
      { arbitrary: awkward, weight: 8 },
      { arbitrary: fc.array(awkward, { maxLength: 3 }), weight: 1 },
      { arbitrary: other === undefined ? awkward : valid(other, ids), weight: 2 },
    );
    return value.map((drawn) => [chosen, drawn] as const);
  });
  return fc.tuple(good, wrong).map(([value, [chosen, drawn]]) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return drawn;
    const field = { value: drawn, enumerable: true, configurable: true, writable: true };
    return Object.defineProperty({ ...value }, chosen, field);
  });
}

/** JSON of a value that may hold raw pieces. */
export function toJson(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(toJson).join()}]`;
  if (typeof value === "object" && value !== null)
    return `{${Object.entries(value)
      .map(([name, item]) => `${JSON.stringify(name)}:${toJson(item)}`)
      .join()}}`;
  return JSON.stringify(value) ?? "null";
}
