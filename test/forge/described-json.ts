/** A published description of an API, of which we keep what we use. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The object at a path of names. @throws Error if there is none */
export function objectAt(description: Json | undefined, path: readonly string[]): JsonObject {
  const found = path.reduce<Json | undefined>((value, key) => (isObject(value) ? value[key] : undefined), description);
  if (!isObject(found)) throw new Error(`the description has no ${path.join(" › ")}`);
  return found;
}
