/** What the fuzz reads of an OpenAPI description. */
export interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly schema: Schema;
}

export interface Operation {
  readonly operationId: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: Schema | null;
}

interface Described {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

/** Every operation of a description, as `/openapi.json` answers it. */
export function operationsOf(description: unknown): Operation[] {
  const { paths } = description as { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, parameters = [], requestBody }]) => ({
      operationId,
      method: method.toUpperCase() as Operation["method"],
      path,
      parameters,
      body: requestBody?.content["application/json"]?.schema ?? null,
    })),
  );
}
