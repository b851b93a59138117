import fc from "fast-check";
import type { Operation } from "./description.ts";
import { awkward, mutated, toJson, valid } from "./values.ts";

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
  /** Of what there is: this organization's, another's, and of nothing. */
  readonly ids: readonly string[];
  /** Keys of each role, of another organization, and of nobody; null: none is sent. */
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
  ...[
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
  ],
  ...["__proto__=1", "constructor[prototype]=1", "limit=1e9", "limit=-1", "limit=0x10", "cursor=e30", "a=1;b=2"],
  ...[
    `cursor=${"A".repeat(8_000)}`,
    `q=${"a ".repeat(3_000).replaceAll(" ", "+")}`,
    `q=${"%25".repeat(2_000)}`,
    "&a".repeat(3_000),
  ],
  `cursor=${Buffer.from(JSON.stringify(["0000-00-00", "x"])).toString("base64url")}`,
);

/** Requests of one operation, most of them odd in one way. */
export function requestsOf(operation: Operation, { ids, keys, mainKey }: Surroundings): fc.Arbitrary<FuzzRequest> {
  const parameters = operation.parameters.filter((parameter) => parameter.in !== "header");
  const values = fc.tuple(
    ...parameters.map(({ schema, in: where }) =>
      fc.oneof(
        { arbitrary: where === "path" ? fc.constantFrom(...ids, "same") : valid(schema, ids), weight: 4 },
        { arbitrary: awkward, weight: 1 },
      ),
    ),
  );
  const body = operation.body === null ? fc.option(awkward, { freq: 5 }) : mutated(operation.body, ids);
  return fc
    .record({
      values,
      body,
      key: fc.oneof({ arbitrary: fc.constant(mainKey), weight: 3 }, { arbitrary: fc.constantFrom(...keys), weight: 1 }),
      headers: fc.oneof({ arbitrary: fc.constant([]), weight: 3 }, { arbitrary: oddHeaders, weight: 1 }),
      query: fc.oneof({ arbitrary: fc.constant(null), weight: 6 }, { arbitrary: oddQueries, weight: 1 }),
      encoding: fc.oneof(
        { arbitrary: fc.constant(Buffer.from), weight: 12 },
        { arbitrary: fc.constantFrom(...encodings), weight: 1 },
      ),
      method: fc.oneof(
        { arbitrary: fc.constant(operation.method), weight: 30 },
        { arbitrary: fc.constantFrom("HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "GET", "POST"), weight: 1 },
      ),
    })
    .map((drawn) => {
      const hasBody = drawn.method === "POST" || (drawn.method !== "GET" && drawn.method !== "HEAD");
      const odd = new Set(drawn.headers.filter((_, index) => index % 2 === 0));
      const usual = [
        ...(drawn.key === null || odd.has("authorization") ? [] : ["authorization", `Bearer ${drawn.key}`]),
        ...(hasBody && !odd.has("content-type") ? ["content-type", "application/json"] : []),
      ];
      return {
        operation: operation.operationId,
        method: drawn.method,
        target: targetOf(operation, drawn.values, drawn.query),
        headers: [...usual, ...drawn.headers],
        body: hasBody && drawn.body !== null ? drawn.encoding(toJson(drawn.body)) : null,
      };
    });
}

function targetOf(operation: Operation, values: readonly unknown[], oddQuery: string | null): string {
  const query: string[] = [];
  let path = operation.path;
  for (const [index, { name, in: where }] of operation.parameters.filter((each) => each.in !== "header").entries()) {
    const value = values[index];
    const text = encodeURIComponent((typeof value === "string" ? value : toJson(value)).toWellFormed()).slice(
      0,
      longestPiece,
    );
    // What is cut in the middle of an escape sequence is odd too.
    if (where === "query") query.push(`${name}=${text}`);
    else path = path.replace(`{${name}}`, () => text);
  }
  const all = oddQuery ?? query.join("&").slice(0, longestPiece);
  return all === "" ? path : `${path}?${all}`;
}
