import type { Operation, Parameter, Schema } from "./operations.ts";

/** Texts of fields that no schema gives an example of, by how the field is called. */
const usualTexts: Readonly<Record<string, string>> = {
  name: "nightly",
  description: "What it is for",
  q: "empty cart",
  url: "https://git.example.com/acme/project",
  cursor: "MjAyNi0wMS0wMVQwMDowMDowMC4wMDAwMDBaIDAx",
};
const exampleId = "0b9f6d0e-6f0c-4f3e-9a57-3f6c1a2b4c5d";

/**
 * An example that a schema takes: its own if it has one, else the smallest that its rules allow.
 * @param name of the field, which says what kind of text it is
 */
export function exampleOf(schema: Schema, name = ""): unknown {
  const [own] = schema.examples ?? [];
  if (own !== undefined) return own;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  const [choice] = schema.anyOf ?? schema.oneOf ?? [];
  // Beside properties, choices only say what is required.
  if (choice !== undefined && schema.properties === undefined) return exampleOf(choice, name);
  const type = typeof schema.type === "string" ? schema.type : schema.type?.[0];
  switch (type) {
    case "object":
      return objectExample(schema);
    case "array":
      return schema.items === undefined ? [] : [exampleOf(schema.items, name)];
    case "integer":
    case "number":
      return numberExample(schema);
    case "boolean":
      return schema.default ?? true;
    case "null":
      return null;
    case "string":
      return textExample(schema, name);
    default:
      return {};
  }
}

function objectExample({ properties = {}, required = [], anyOf = [] }: Schema): Record<string, unknown> {
  const needed = new Set([...required, ...(anyOf[0]?.required ?? [])]);
  const optional = Object.keys(properties).filter((name) => !needed.has(name));
  const shown = [...needed, ...(needed.size === 0 ? optional.slice(0, 1) : [])];
  return Object.fromEntries(
    shown.flatMap((name) => (properties[name] === undefined ? [] : [[name, exampleOf(properties[name], name)]])),
  );
}

function numberExample({ default: usual, minimum = 0, maximum = Number.MAX_SAFE_INTEGER }: Schema): unknown {
  return usual ?? Math.min(Math.max(minimum, 1), maximum);
}

function textExample({ format, default: usual }: Schema, name: string): unknown {
  if (usual !== undefined) return usual;
  if (format === "uuid") return exampleId;
  if (format === "date-time") return "2030-01-31T12:00:00Z";
  if (format === "uri") return usualTexts["url"];
  return usualTexts[name] ?? (/(?:^|[a-z])Id$/u.test(name) || name === "id" ? exampleId : "text");
}

/** The value of a parameter in examples. */
export function parameterExample({ name, schema }: Parameter): string {
  if (name === "keyOrId") return "fix-bug";
  return String(exampleOf(schema, name === "id" ? "id" : name));
}

/** An operation's example: its path with ids in it, and its body. */
export function callExample(operation: Operation): { readonly path: string; readonly body: unknown } {
  const path = operation.pathParameters.reduce(
    (made, parameter) => made.replace(`{${parameter.name}}`, encodeURIComponent(idExample(parameter))),
    operation.path,
  );
  const needed = operation.query.filter(({ required }) => required === true);
  const query = needed
    .map((parameter) => `${parameter.name}=${encodeURIComponent(parameterExample(parameter))}`)
    .join("&");
  return {
    path: query === "" ? path : `${path}?${query}`,
    body: operation.body === null ? null : (operation.bodyExample ?? exampleOf(operation.body)),
  };
}

/** Ids of paths have no format: what is of an organization is not found by another, whatever it looks like. */
function idExample(parameter: Parameter): string {
  return parameter.name === "keyOrId" ? "fix-bug" : exampleId;
}
