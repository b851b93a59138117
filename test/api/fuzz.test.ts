import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createKey } from "../../src/store/keys.ts";
import { createTestApp, type Answer, type TestApp } from "./app.ts";

/** Every operation of the API's own description, called with what its schemas say and with what they do not. */
interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly additionalProperties?: Schema | boolean;
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: "path" | "query" | "header";
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

interface Target {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly operation: Operation;
}

const marker = "theirs-and-nobody-elses";
let testApp: TestApp;
let targets: Target[];
let ids: string[];

beforeAll(async () => {
  testApp = await createTestApp({ rateLimitPerMinute: 1_000_000 });
  const { body } = await testApp.request("GET", "/openapi.json", { key: null });
  targets = Object.entries(body.paths as Record<string, Record<string, Operation>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase() as "GET" | "POST",
      path,
      operation,
    })),
  );
  ids = await fill();
});

afterAll(() => testApp?.close());

/** Something of each kind, of this organization and of another. @returns the ids of all of it */
async function fill(): Promise<string[]> {
  const { database } = testApp.testDatabase;
  const other = crypto.randomUUID();
  await database.pool.query("insert into organization (id, name) values ($1, 'other')", [other]);
  const theirs = (await createKey(database, other, { name: "theirs", scopes: ["read", "write", "admin"] })).key;
  const made: string[] = [];
  for (const [key, word] of [
    [testApp.adminKey, "mine"],
    [theirs, marker],
  ] as const) {
    const session = await testApp.request("POST", "/session/create", {
      key,
      body: { prompt: word, repositories: [`https://git.example.com/acme/${word}`] },
    });
    const automation = await testApp.request("POST", "/automation/create", {
      key,
      body: { name: word, macro: "same", instructions: word },
    });
    const job = await testApp.request("POST", "/automation/same/trigger", { key });
    const { body } = await testApp.request("GET", "/repository/list", { key });
    made.push(session.body.id, automation.body.id, job.body.id, body.codeRepositories[0].id);
  }
  return made;
}

const awkward = fc.constantFrom<unknown>(
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  2 ** 53,
  "",
  " ",
  "\0",
  "\ud800",
  "a".repeat(5_000),
  "💥",
  "../..",
  "%00",
  "'; drop table session; --",
  "{{ event }}",
  "{% raw %}",
  [],
  {},
  [null],
  { a: { b: [] } },
  { __proto__: { admin: true } },
  "constructor",
  "__proto__",
);

/** A value that the schema describes. */
function valid(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined && choices.length > 0 && schema.properties === undefined)
    return fc.oneof(...choices.map(valid));
  if (schema.format === "uuid") return fc.oneof(fc.constantFrom(...ids), fc.uuid());
  switch (schema.type) {
    case "object":
      return fc.record(
        Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, valid(inner)])),
        { requiredKeys: [] },
      );
    case "array":
      return fc.array(valid(schema.items ?? {}), { maxLength: 4 });
    case "integer":
    case "number":
      return fc.integer({ min: schema.minimum ?? -10, max: Math.min(schema.maximum ?? 1_000, 1_000) });
    case "boolean":
      return fc.boolean();
    case "string":
      return fc.oneof(
        fc.string({ unit: "grapheme", maxLength: 40 }),
        fc.constantFrom("same", "main", "https://git.example.com/a/b", "opencode:m"),
        fc.constantFrom(...ids),
      );
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

/** A valid value, or one with a field that is not. */
function mutated(schema: Schema): fc.Arbitrary<unknown> {
  const wrongField = fc
    .tuple(valid(schema), fc.constantFrom(...Object.keys(schema.properties ?? { x: {} })), awkward)
    .map(([value, name, wrong]) =>
      typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value, [name]: wrong } : wrong,
    );
  return fc.oneof(
    { arbitrary: valid(schema), weight: 3 },
    { arbitrary: wrongField, weight: 3 },
    { arbitrary: awkward, weight: 1 },
  );
}

function requestOf({ path, operation }: Target): fc.Arbitrary<{ url: string; body: unknown }> {
  const parameters = (operation.parameters ?? []).filter((parameter) => parameter.in !== "header");
  const values = fc.tuple(
    ...parameters.map(({ schema, name }) =>
      fc.oneof(valid(schema), name === "id" ? fc.constantFrom(...ids, "same") : awkward),
    ),
  );
  const body = operation.requestBody?.content["application/json"]?.schema;
  return fc
    .record({ values, body: body === undefined ? fc.constant(undefined) : mutated(body) })
    .map(({ values: given, body: sent }) => {
      const text = given.map((value) => (typeof value === "string" ? value : JSON.stringify(value)).toWellFormed());
      const query = new URLSearchParams();
      let filled = path;
      for (const [index, { name, in: where }] of parameters.entries()) {
        if (where === "query") query.set(name, text[index] ?? "");
        else filled = filled.replace(`{${name}}`, encodeURIComponent(text[index] ?? ""));
      }
      return { url: `${filled}?${query.toString()}`, body: sent };
    });
}

/** What is wrong with an answer; null where nothing is. */
function complaint(request: string, { status, body }: Answer): string | null {
  const text = JSON.stringify(body);
  const isError = typeof body === "object" && body !== null && Object.keys(body as object).join() === "error";
  const wrong = status >= 500 || text.includes(marker) || (status >= 400 && !isError);
  return wrong ? `${request} → ${status} ${text.slice(0, 300)}` : null;
}

it("no operation breaks, hangs, or tells of another organization, whatever it is sent", async () => {
  expect(targets.length).toBeGreaterThan(30);
  for (const target of targets) {
    await fc.assert(
      fc.asyncProperty(requestOf(target), async ({ url, body }) => {
        const raw = body === undefined ? "" : JSON.stringify(body);
        const answer = await testApp.request(target.method, url, { raw });
        expect(complaint(`${target.method} ${url} ${raw.slice(0, 300)}`, answer)).toBeNull();
      }),
      { numRuns: 40 },
    );
  }
});

it("no body that is not what it says to be breaks an operation", async () => {
  const bodies = fc.oneof(
    fc.string(),
    fc.constantFrom("{", "[", "nul", "\u0000", '{"prompt":', '"x"', "1", "[]", "{}{}", "\ufeff{}"),
  );
  for (const { path } of targets.filter(({ method }) => method === "POST")) {
    await fc.assert(
      fc.asyncProperty(bodies, async (raw) => {
        const answer = await testApp.request("POST", path.replace("{id}", ids[0] ?? "").replace("{keyOrId}", "same"), {
          raw,
        });
        expect(complaint(`${path} ${JSON.stringify(raw)}`, answer)).toBeNull();
      }),
      { numRuns: 15 },
    );
  }
});
