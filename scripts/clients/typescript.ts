import { compile, type JSONSchema } from "json-schema-to-typescript";
import type { Description, Operation, Schema } from "../../src/description/operations.ts";

const head = "// Written by scripts/build-clients.ts from the API's description: change that, and run it.\n";

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
/** Name of the types of an operation, such as `SessionCreate`. */
const typeName = ({ noun, name }: Operation): string => capital(noun) + capital(name);

/** The types of all requests and answers. */
export async function typeScriptSchema(description: Description, operations: readonly Operation[]): Promise<string> {
  const schemas: Record<string, Schema> = { ...description.components?.schemas };
  for (const operation of operations) {
    const name = typeName(operation);
    if (operation.body !== null) schemas[`${name}Body`] = operation.body;
    if (operation.query.length > 0) schemas[`${name}Query`] = querySchema(operation);
    if (operation.answer !== null) schemas[`${name}Answer`] = operation.answer;
  }
  schemas["SessionEvent"] = eventsIn(schemas["SessionEventsAnswer"]);
  schemas["WebhookEvent"] = webhookEvent;
  const { shared, aliases } = withReferences(schemas);
  const root = {
    type: "object",
    additionalProperties: false,
    required: Object.keys(shared),
    properties: Object.fromEntries(Object.keys(shared).map((name) => [name, { $ref: `#/definitions/${name}` }])),
    definitions: Object.fromEntries(Object.entries(shared).map(([name, schema]) => [name, { title: name, ...schema }])),
  };
  const types = await compile(root as JSONSchema, "Schemas", {
    bannerComment: "",
    additionalProperties: false,
    format: true,
    style: { printWidth: 120 },
    unknownAny: true,
  });
  const same = aliases.map(([name, other]) => `export type ${name} = ${other};\n`).join("");
  return `${head}/* eslint-disable */\n${types.replace(/export interface Schemas \{[\s\S]*?\n\}\n/u, "")}${same}`;
}

/**
 * The schemas, each written out once: an equal schema, or part of a schema, is a reference to it. An answer that shows
 * one thing gives its name to the others that show it.
 */
function withReferences(schemas: Readonly<Record<string, Schema>>): {
  readonly shared: Record<string, Schema>;
  readonly aliases: readonly (readonly [name: string, other: string])[];
} {
  const rank = (name: string): number =>
    /(?:Get|Events)Answer$|^SessionEvent$/u.test(name) ? 0 : name.endsWith("CreateAnswer") ? 1 : 2;
  const names = new Map<string, string>();
  for (const [name, schema] of Object.entries(schemas).toSorted(([a], [b]) => rank(a) - rank(b))) {
    const text = JSON.stringify(schema);
    if (text.length > 200 && !names.has(text)) names.set(text, name);
  }
  const referring = (value: unknown, own: string): unknown => {
    if (Array.isArray(value)) return value.map((each) => referring(each, ""));
    if (value === null || typeof value !== "object") return value;
    const name = names.get(JSON.stringify(value));
    if (name !== undefined && name !== own) return { $ref: `#/definitions/${name}` };
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, referring(inner, "")]));
  };
  const aliases = Object.entries(schemas).flatMap(([name, schema]) => {
    const other = names.get(JSON.stringify(schema));
    return other === undefined || other === name ? [] : [[name, other] as const];
  });
  const dropped = new Set(aliases.map(([name]) => name));
  const kept = Object.entries(schemas).filter(([name]) => !dropped.has(name));
  return {
    shared: Object.fromEntries(kept.map(([name, schema]) => [name, local(referring(schema, name) as Schema)])),
    aliases,
  };
}

/** References within the description, as they are within the types. */
function local(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema).replaceAll("#/components/schemas/", "#/definitions/")) as Schema;
}

function querySchema({ query }: Operation): Schema {
  return {
    type: "object",
    properties: Object.fromEntries(
      query.map(({ name, schema, description }) => [
        name,
        { ...schema, ...(description !== undefined && { description }) },
      ]),
    ),
    required: query.filter(({ required }) => required === true).map(({ name }) => name),
    additionalProperties: false,
  };
}

/** The union of events, which a page of them has in its list. */
function eventsIn(page: Schema | undefined): Schema {
  const events = page?.properties?.["events"]?.items;
  if (events === undefined) throw new Error("the description has no events");
  return events;
}

const webhookEvent: Schema = {
  type: "object",
  description: "What a webhook delivers: docs/webhooks.md.",
  properties: {
    type: { type: "string", description: "Such as `session.completed`." },
    timestamp: { type: "string", format: "date-time" },
    data: { type: "object", additionalProperties: true },
  },
  required: ["type", "timestamp", "data"],
  additionalProperties: false,
};

/** The operations as methods, by their nouns. */
export function typeScriptOperations(operations: readonly Operation[]): string {
  const nouns = Map.groupBy(operations, ({ noun }) => noun);
  const used = new Set<string>();
  const typeOf = (name: string): string => (used.add(name), name);
  const declared = [...nouns].map(
    ([noun, all]) =>
      `  readonly ${noun}: {\n${all.map((operation) => `    /** ${operation.summary} */\n    ${operation.name}(${signature(operation, typeOf)}): Promise<${answerType(operation, typeOf)}>;`).join("\n")}\n  };`,
  );
  const made = [...nouns].map(
    ([noun, all]) =>
      `    ${noun}: {\n${all.map((operation) => `      ${operation.name}: ${implementation(operation)},`).join("\n")}\n    },`,
  );
  return `${head}import type {
${[...used]
  .toSorted()
  .map((name) => `  ${name},`)
  .join("\n")}
} from "./schema.ts";
import { readJson, type Call, type CallOptions, type Send } from "./send.ts";

/** Every operation of the API, by the nouns of their paths. */
export interface Operations {
${declared.join("\n")}
}

/** Makes the operations of a client. */
export function createOperations(send: Send): Operations {
  const call = async <Answer>(request: Call): Promise<Answer> => (await send(request, readJson)) as Answer;
  const part = encodeURIComponent;
  return {
${made.join("\n")}
  };
}
`;
}

function signature(operation: Operation, typeOf: (name: string) => string): string {
  const name = typeName(operation);
  const ids = operation.pathParameters.map((parameter) => `${parameter.name}: string`);
  const isQueryNeeded = operation.query.some(({ required }) => required === true);
  return [
    ...ids,
    ...(operation.body === null ? [] : [`body${operation.isBodyRequired ? "" : "?"}: ${typeOf(`${name}Body`)}`]),
    ...(operation.query.length === 0 ? [] : [`query${isQueryNeeded ? "" : "?"}: ${typeOf(`${name}Query`)}`]),
    "options?: CallOptions",
  ].join(", ");
}

function answerType(operation: Operation, typeOf: (name: string) => string): string {
  return operation.answer === null ? "Response" : typeOf(`${typeName(operation)}Answer`);
}

function implementation(operation: Operation): string {
  const { method, path, pathParameters, body, query, isIdempotent, answer } = operation;
  const names = [
    ...pathParameters.map(({ name }) => name),
    ...(body === null ? [] : ["body"]),
    ...(query.length === 0 ? [] : ["query"]),
    "options",
  ];
  const target =
    pathParameters.length === 0 ? JSON.stringify(path) : `\`${path.replaceAll(/\{(\w+)\}/gu, "${part($1)}")}\``;
  const fields = [
    `method: "${method}"`,
    `path: ${target}`,
    ...(body === null ? [] : ["body"]),
    ...(query.length === 0 ? [] : ["query"]),
    `isIdempotent: ${method === "GET" || isIdempotent}`,
    "...options",
  ];
  return `(${names.join(", ")}) => ${answer === null ? "send" : "call"}({ ${fields.join(", ")} })`;
}
