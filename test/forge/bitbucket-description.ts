import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Ajv } from "ajv";
import formats from "ajv-formats";
import type { TestForge } from "./server.ts";

interface Operation {
  readonly query: readonly string[];
  readonly body: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
}

/** What Bitbucket publishes of the operations that Offstage calls, of Cloud or Data Center: see `prune-bitbucket.ts`. */
interface Description {
  readonly operations: Readonly<Record<string, Operation>>;
  readonly definitions: Readonly<Record<string, unknown>>;
}

/** Compares requests and the test forge's answers with a description. */
export interface DescriptionCheck {
  /** What is wrong with a value, by a schema of the description. */
  readonly wrong: (schema: unknown, value: unknown) => readonly string[];
  /** @throws Error if it is not described */
  readonly operationOf: (name: string) => Operation;
  /**
   * Sends a request, both as the description has it.
   * @param sent.read fields that the adapter reads, which the answer must have; of a list, of its first item
   * @returns the answer's status, and what is wrong with the request and the answer, a field that the description lacks too
   */
  readonly problems: (
    operation: readonly [method: string, path: string],
    path: string,
    sent?: { readonly body?: unknown; readonly read?: readonly string[] },
  ) => Promise<{ readonly status: number; readonly wrong: readonly string[]; readonly body: unknown }>;
}

/**
 * Reads a description, to check a test forge by it.
 * @param options.base path of the API
 * @param options.alsoKnown parameters of queries that only its texts describe
 */
export async function readDescription(
  file: string,
  forge: TestForge,
  { base, alsoKnown }: { readonly base: string; readonly alsoKnown: readonly string[] },
): Promise<DescriptionCheck> {
  const description = JSON.parse(await readFile(join(import.meta.dirname, file), "utf8")) as Description;
  const ajv = new Ajv({ strict: false, allErrors: true });
  formats.default(ajv, ["date-time"]);

  function wrong(schema: unknown, value: unknown): readonly string[] {
    const validate = ajv.compile(
      schema === true ? {} : { ...(schema as object), definitions: description.definitions },
    );
    validate(value);
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  function operationOf(name: string): Operation {
    const found = description.operations[name];
    if (found === undefined) throw new Error(`Bitbucket does not describe ${name}`);
    return found;
  }

  return {
    wrong,
    operationOf,
    async problems([method, operation], path, { body, read = [] } = {}) {
      const name = `${method} ${operation}`;
      const { body: sentSchema, query, responses } = operationOf(name);
      const answer = await fetch(`${forge.url}${base}${path}`, {
        method,
        headers: { Authorization: `Bearer ${forge.token}` },
        redirect: "manual",
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      const answered: unknown = text === "" ? {} : JSON.parse(text);
      const schema = responses[String(answer.status)];
      const known = new Set([...query, ...alsoKnown]);
      const unknown = [...new URL(`http://x${path}`).searchParams.keys()].filter((key) => !known.has(key));
      const values = valueOf(answered, "values");
      const one: unknown = Array.isArray(values) ? values[0] : answered;
      return {
        status: answer.status,
        wrong: [
          ...(schema === undefined ? [`${name} never answers ${answer.status}`] : wrong(schema, answered)),
          ...(body === undefined ? [] : wrong(sentSchema, body)),
          ...unknown,
          ...read.filter((field) => valueOf(one, field) === undefined).map((field) => `${field} is not there`),
        ],
        body: answered,
      };
    },
  };
}

function valueOf(body: unknown, field: string): unknown {
  return field.split(".").reduce((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], body);
}
