import { callExample, parameterExample } from "./example.ts";
import type { Operation } from "./operations.ts";

/** Languages of examples, in the order in which they are offered. */
export const exampleLanguages = ["curl", "TypeScript", "Python"] as const;
/** See `exampleLanguages`. */
export type ExampleLanguage = (typeof exampleLanguages)[number];

/**
 * A program that calls an operation, with the values of the schemas' examples. It reads the server's address and the key from
 * OFFSTAGE_SERVER and OFFSTAGE_API_KEY, as the clients do by themselves.
 */
export function snippet(operation: Operation, language: ExampleLanguage): string {
  if (language === "curl") return curl(operation);
  return language === "TypeScript" ? typeScript(operation) : python(operation);
}

function curl(operation: Operation): string {
  const { path, body } = callExample(operation);
  const lines = [`curl -s "$OFFSTAGE_SERVER${path}"`];
  if (operation.method === "POST" && body === null) lines[0] = `curl -s -X POST "$OFFSTAGE_SERVER${path}"`;
  if (!operation.isOpen) lines.push('-H "Authorization: Bearer $OFFSTAGE_API_KEY"');
  if (operation.isIdempotent) lines.push('-H "Idempotency-Key: a-text-of-yours"');
  if (body !== null) {
    lines.push('-H "Content-Type: application/json"');
    // Within the quotes of a shell only this one needs care.
    lines.push(`-d '${JSON.stringify(body).replaceAll("'", String.raw`'\''`)}'`);
  }
  if (operation.streams) {
    lines[0] = (lines[0] ?? "").replace("curl -s", "curl -sN");
    lines.push('-H "Accept: text/event-stream"');
  }
  return lines.join(" \\\n  ");
}

function typeScript(operation: Operation): string {
  const { noun, name, pathParameters, query } = operation;
  const { body } = callExample(operation);
  const head = 'import { createOffstage } from "@offstage/client";\n\nconst offstage = createOffstage();\n';
  const ids = pathParameters.map((parameter) => JSON.stringify(idOf(operation, parameter.name)));
  if (operation.streams && ids.length === 0) return `${typeScriptStream(callExample(operation).path)}\n`;
  if (operation.streams) {
    return `${head}for await (const event of offstage.events(${ids.join(", ")})) console.log(event.type, event.data);\n`;
  }
  const needed = Object.fromEntries(
    query.filter(({ required }) => required === true).map((each) => [each.name, parameterExample(each)]),
  );
  const given = body ?? (Object.keys(needed).length > 0 ? needed : null);
  const values = [...ids, ...(given === null ? [] : [literal(given)])];
  return `${head}console.log(await offstage.${noun}.${name}(${values.join(", ")}));\n`;
}

/** Reads a stream for which the client has no function. */
function typeScriptStream(path: string): string {
  return `const answer = await fetch(process.env.OFFSTAGE_SERVER + ${JSON.stringify(path)}, {
  headers: { Authorization: "Bearer " + process.env.OFFSTAGE_API_KEY, Accept: "text/event-stream" },
});
for await (const text of answer.body.pipeThrough(new TextDecoderStream())) console.log(text);`;
}

/** The same in Python. */
function pythonStream(path: string): string {
  return `import os
from urllib.request import Request, urlopen

headers = {"Authorization": "Bearer " + os.environ["OFFSTAGE_API_KEY"], "Accept": "text/event-stream"}
for line in urlopen(Request(os.environ["OFFSTAGE_SERVER"] + ${JSON.stringify(path)}, headers=headers)):
    print(line.decode(), end="")`;
}

function python(operation: Operation): string {
  const { noun, name, pathParameters, query } = operation;
  const { body } = callExample(operation);
  const head = "from offstage import Offstage\n\noffstage = Offstage()\n";
  const ids = pathParameters.map((parameter) => JSON.stringify(idOf(operation, parameter.name)));
  if (operation.streams && ids.length === 0) return `${pythonStream(callExample(operation).path)}\n`;
  if (operation.streams) {
    return `${head}for event in offstage.events(${ids.join(", ")}):\n    print(event["type"], event["data"])\n`;
  }
  const needed = query.filter(({ required }) => required === true);
  const values = [
    ...ids,
    ...(body === null ? [] : [pythonLiteral(body)]),
    ...needed.map((each) => `${snakeCase(each.name)}=${pythonLiteral(parameterExample(each))}`),
  ];
  return `${head}print(offstage.${snakeCase(noun)}.${snakeCase(name)}(${values.join(", ")}))\n`;
}

function idOf(operation: Operation, name: string): string {
  const at = operation.path.split("/").indexOf(`{${name}}`);
  return decodeURIComponent(callExample(operation).path.split("/")[at]?.replace(/\?.*$/u, "") ?? "");
}

/** A value as JavaScript writes it. */
function literal(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(/"([A-Za-z_$][\w$]*)":/gu, "$1:");
}

/** A value as Python writes it. */
function pythonLiteral(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value)
      .map(([name, inner]) => `${JSON.stringify(name)}: ${pythonLiteral(inner)}`)
      .join(", ")}}`;
  }
  return JSON.stringify(value);
}

/** Words of Python's own among those that names here may be (https://docs.python.org/3/reference/lexical_analysis.html#keywords). */
const pythonKeywords: ReadonlySet<string> = new Set(["from", "import", "in", "is", "as", "class", "global", "with"]);

/** A name as Python writes it; a word of its own gets a line at its end (PEP 8). */
export function snakeCase(name: string): string {
  const written = name.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
  return pythonKeywords.has(written) ? `${written}_` : written;
}
