/** The used fields of a JSON Schema in the OpenAPI description. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly $ref?: string;
}

/** A parameter of an operation. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

/** An operation of the API, as clients and the reference need it. */
export interface Operation {
  readonly id: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Its name in clients: `session.create`. */
  readonly noun: string;
  readonly name: string;
  readonly summary: string;
  readonly tag: string;
  readonly pathParameters: readonly Parameter[];
  readonly query: readonly Parameter[];
  readonly headers: readonly Parameter[];
  /** Null: it takes none. */
  readonly body: Schema | null;
  /** A body as the description shows one; undefined: it shows none. */
  readonly bodyExample: unknown;
  readonly isBodyRequired: boolean;
  /** Null: it answers something else than JSON. */
  readonly answer: Schema | null;
  /** Statuses other than 200, with what they mean. */
  readonly errors: readonly string[];
  /** Whether it can answer with a stream of events. */
  readonly streams: boolean;
  /** Whether the same Idempotency-Key gives the first answer again. */
  readonly isIdempotent: boolean;
  /** Whether it needs no key. */
  readonly isOpen: boolean;
}

/** An OpenAPI description, as `/openapi.json` answers it. */
export interface Description {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

interface Described {
  readonly operationId: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly security?: readonly unknown[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
  };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }>
  >;
}

/**
 * Every operation of a description, in its order. If two would have the same name in clients, the second is named by
 * its id.
 */
export function operationsOf({ paths }: Description): Operation[] {
  const names = new Set<string>();
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => {
      const operation = operationOf(path, method.toUpperCase() as Operation["method"], described);
      const name = names.has(`${operation.noun}.${operation.name}`) ? operation.id : operation.name;
      names.add(`${operation.noun}.${name}`);
      return { ...operation, name };
    }),
  );
}

function operationOf(path: string, method: Operation["method"], described: Described): Operation {
  const { operationId: id, summary = "", tags = [], parameters = [], requestBody, responses, security } = described;
  const content = responses["200"]?.content ?? {};
  const of = (place: Parameter["in"]): Parameter[] => parameters.filter((parameter) => parameter.in === place);
  return {
    id,
    method,
    path,
    ...clientName(path, method),
    summary,
    tag: tags[0] ?? "Other",
    pathParameters: of("path"),
    query: of("query"),
    headers: of("header"),
    body: requestBody?.content["application/json"]?.schema ?? null,
    bodyExample: requestBody?.content["application/json"]?.example,
    isBodyRequired: requestBody?.required !== false && requestBody !== undefined,
    answer: content["application/json"]?.schema ?? null,
    errors: Object.keys(responses).filter((status) => status !== "200"),
    streams: content["text/event-stream"] !== undefined,
    isIdempotent: of("header").some(({ name }) => name === "Idempotency-Key"),
    isOpen: security?.length === 0,
  };
}

/** An operation's name in clients: the words of its path, which all have the form `/noun/…/verb`. */
function clientName(path: string, method: string): { readonly noun: string; readonly name: string } {
  const [noun = "", ...rest] = path.split("/").filter((part) => part !== "");
  const words = rest.filter((part) => !part.startsWith("{"));
  if (words.length > 0) return { noun, name: camelCase(words.join("-")) };
  return { noun, name: method === "GET" ? "get" : "deliver" };
}

function camelCase(text: string): string {
  return text.replaceAll(/-(\w)/gu, (_all, letter: string) => letter.toUpperCase());
}
