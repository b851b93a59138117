import fc from "fast-check";
import type { Operation } from "./description.ts";
import { examplesOf } from "./examples.ts";
import { awkward, toJson, valid, withWrongField } from "./values.ts";

/** One request as it is sent. */
export interface FuzzRequest {
  readonly operation: string;
  readonly method: string;
  /** Path and query, as they stand in the first line. */
  readonly target: string;
  /** Names and values in turn, so that one may come twice. */
  readonly headers: readonly string[];
  readonly body: Buffer | null;
}

export interface Surroundings {
  /** Ids of what there is of this organization, by the word before them in paths. */
  readonly own: Readonly<Record<string, readonly string[]>>;
  /** Ids of everything: this organization's, another's, and of nothing. */
  readonly ids: readonly string[];
  /** Keys of each role, of another organization, and without an owner; null: none is sent. */
  readonly keys: readonly (string | null)[];
  /** The key that may do everything, which most requests have. */
  readonly mainKey: string;
}

/** Node reads 16 KiB of headers, the first line among them. */
const longestPiece = 12_000;

const encodings: readonly ((text: string) => Buffer)[] = [
  (text) => Buffer.from(`\ufeff${text}`),
  (text) => Buffer.from(text, "utf16le"),
  (text) => Buffer.from(`${text}é`, "latin1"),
  (text) => Buffer.concat([Buffer.from(text), Buffer.from([0xc0, 0x80, 0xff])]),
  (text) => Buffer.from(text.slice(0, Math.floor(text.length / 2))),
  (text) => Buffer.from(text + text),
  (text) => Buffer.from(text + " ".repeat(500_000)),
  () => Buffer.alloc(1024 * 1024, "["),
  () => Buffer.alloc(200_000),
  (text) => Buffer.from(`${text.slice(0, -1)}${text.length > 2 ? "," : ""}"prompt":"a","prompt":1}`),
];

const oddHeaders = fc.constantFrom<readonly string[]>(
  ["content-type", "text/plain"],
  ["content-type", "application/x-www-form-urlencoded"],
  ["content-type", "multipart/form-data; boundary=x"],
  ["content-type", "application/json; charset=utf-16"],
  ["content-type", "////"],
  ["content-type", ";"],
  ["content-type", "a".repeat(4_000)],
  ["content-encoding", "gzip"],
  ["accept", "text/event-stream"],
  ["accept", `*/*;q=${"0".repeat(2_000)}`],
  ["accept", "text/html"],
  ["accept-encoding", "gzip;q=nonsense, ,,"],
  ["idempotency-key", ""],
  ["idempotency-key", "same-for-all"],
  ["idempotency-key", "k".repeat(255)],
  ["idempotency-key", "k".repeat(4_000)],
  ["idempotency-key", "\u00e9"],
  ["last-event-id", "-1"],
  ["last-event-id", "9".repeat(400)],
  ["last-event-id", "x"],
  ["traceparent", `00-${"f".repeat(4_000)}`],
  ["traceparent", "00-00000000000000000000000000000000-0000000000000000-00"],
  ["x-forwarded-for", "a, ,::1,999.1.1.1"],
  ["x-forwarded-host", "evil.example"],
  ["x-http-method-override", "DELETE"],
  ["range", "bytes=9-1,-"],
  ["if-none-match", "*"],
  ["origin", "null"],
  ["sec-fetch-site", "cross-site"],
  ["cookie", "offstage_session=x"],
  ["cookie", `${"a=b;".repeat(2_000)}=;;;`],
  ["cookie", "offstage_session=%E0%A4%A; offstage_session=%00"],
  ["host", "evil.example"],
  ["host", "["],
  ["expect", "100-continue"],
  ["x-odd", "\u00ff\u0080"],
  ["x-request-id", "a".repeat(4_000)],
  ["authorization", "Basic YTpi"],
  ["authorization", `Bearer ${" ".repeat(8_000)}x y`],
  ["authorization", "Bearer \u00e9"],
);

const oddQueries = fc.constantFrom(
  "",
  "?",
  "&&==&",
  "apiKey=",
  "apiKey=x&apiKey=y",
  "limit=1&limit=2",
  "limit[]=1",
  "cursor=%00",
  "cursor=%ff",
  "q=%",
  "__proto__=1",
  "constructor[prototype]=1",
  "limit=1e9",
  "limit=-1",
  "limit=0x10",
  "cursor=e30",
  "a=1;b=2",

  `cursor=${"A".repeat(8_000)}`,
  `q=${"a ".repeat(3_000).replaceAll(" ", "+")}`,
  `q=${"%25".repeat(2_000)}`,
  "&a".repeat(3_000),
  `cursor=${Buffer.from(JSON.stringify(["0000-00-00", "x"])).toString("base64url")}`,
);

/** In what way a request is odd; most are so in one way, so that it is not another that refuses them. */
const oddities = [
  "none",
  "field",
  "field",
  "field",
  "body",
  "path",
  "query",
  "query",
  "header",
  "key",
  "encoding",
  "method",
] as const;
type Oddity = (typeof oddities)[number];

/** Requests of one operation. */
export function requestsOf(operation: Operation, around: Surroundings): fc.Arbitrary<FuzzRequest> {
  const kinds = fc
    .tuple(fc.constantFrom(...oddities), fc.option(fc.constantFrom(...oddities), { freq: 6 }))
    .map(([one, other]): ReadonlySet<Oddity> => new Set(other === null ? [one] : [one, other]));
  return kinds.chain((odd) => requestWith(operation, around, odd));
}

function requestWith(operation: Operation, around: Surroundings, odd: ReadonlySet<Oddity>): fc.Arbitrary<FuzzRequest> {
  const { method } = operation;
  return fc
    .record({
      target: targetOf(operation, around, odd),
      body: bodyOf(operation, around, odd),
      key: odd.has("key") ? fc.constantFrom(...around.keys) : fc.constant(around.mainKey),
      headers: odd.has("header") ? oddHeaders : fc.constant<readonly string[]>([]),
      encoding: odd.has("encoding") ? fc.constantFrom(...encodings) : fc.constant((text: string) => Buffer.from(text)),
      method: odd.has("method")
        ? fc.constantFrom("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "GET", "POST")
        : fc.constant(method),
    })
    .map((drawn) => {
      const hasBody = drawn.method !== "GET" && drawn.method !== "HEAD";
      const given = new Set(drawn.headers.filter((_, index) => index % 2 === 0));
      const usual = [
        ...(drawn.key === null || given.has("authorization") ? [] : ["authorization", `Bearer ${drawn.key}`]),
        ...(hasBody && !given.has("content-type") ? ["content-type", "application/json"] : []),
      ];
      return {
        operation: operation.operationId,
        method: drawn.method,
        target: drawn.target,
        headers: [...usual, ...drawn.headers],
        body: hasBody && drawn.body !== undefined ? drawn.encoding(toJson(drawn.body)) : null,
      };
    });
}

/** @returns undefined if none is sent */
function bodyOf(operation: Operation, around: Surroundings, odd: ReadonlySet<Oddity>): fc.Arbitrary<unknown> {
  const { body, operationId } = operation;
  if (odd.has("body")) return awkward;
  if (body === null) return fc.constant(undefined);
  const drawn = fc
    .string({ unit: fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"), minLength: 8, maxLength: 8 })
    .map((word) =>
      examplesOf(operationId, { repository: around.own["repository"]?.[0] ?? "", word, key: around.mainKey }),
    );
  const good = drawn.chain((example) => (example === undefined ? valid(body, around.ids) : fc.constant(example)));
  return odd.has("field")
    ? withWrongField(good, body, around.ids)
    : fc.oneof({ arbitrary: good, weight: 3 }, { arbitrary: valid(body, around.ids), weight: 1 });
}

function targetOf(operation: Operation, around: Surroundings, odd: ReadonlySet<Oddity>): fc.Arbitrary<string> {
  const inPath = (noun: string): fc.Arbitrary<unknown> =>
    odd.has("path")
      ? fc.oneof(fc.constantFrom(...around.ids), awkward)
      : fc.oneof(
          { arbitrary: fc.constantFrom(...(around.own[noun] ?? around.ids)), weight: 9 },
          { arbitrary: fc.constantFrom(...around.ids), weight: 1 },
        );
  const nouns = [...operation.path.matchAll(/([^/]+)\/\{\w+\}/gu)].map(([, noun = ""]) => noun);
  const path = fc.tuple(...nouns.map(inPath)).map((values) => {
    const left = values.values();
    return operation.path.replaceAll(/\{\w+\}/gu, () => pieceOf(left.next().value ?? ""));
  });
  return fc
    .tuple(path, queryOf(operation, around, odd))
    .map(([filled, query]) => (query === "" ? filled : `${filled}?${query}`));
}

function queryOf({ parameters }: Operation, { ids }: Surroundings, odd: ReadonlySet<Oddity>): fc.Arbitrary<string> {
  // A cursor is odd unless it is one that was given.
  const known = parameters.filter(
    (parameter) => parameter.in === "query" && parameter.name !== "cursor" && parameter.name !== "apiKey",
  );
  const pairs = fc.tuple(
    ...known.map(({ name, schema }) => valid(schema, ids).map((value) => `${name}=${pieceOf(value)}`)),
  );
  const some = pairs.chain((all) => fc.subarray(all)).map((chosen) => chosen.join("&"));
  if (!odd.has("query")) return some;
  const names = [...parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name), "unknown"];
  const wrong = fc.tuple(fc.constantFrom(...names), awkward).map(([name, value]) => `${name}=${pieceOf(value)}`);
  return fc.oneof(
    wrong,
    fc.tuple(some, wrong).map((both) => both.join("&")),
    oddQueries,
  );
}

/** What is cut in the middle of an escape sequence is odd too. */
function pieceOf(value: unknown): string {
  const text = typeof value === "string" ? value : toJson(value);
  return encodeURIComponent(text.slice(0, longestPiece).toWellFormed()).slice(0, longestPiece);
}
