import { z } from "zod";
import { NotFoundError } from "../../domain/errors/errors.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { errorSchema } from "./errors.ts";

/** The response schemas of an operation: 200 with `body`, and the error format. */
export function answers<Body extends z.ZodType>(body: Body) {
  return { 200: body, "4xx": errorSchema, "5xx": errorSchema };
}

/** The response schemas of an operation that answers a text of one of these types. */
export function textAnswers(types: Readonly<Record<string, z.ZodType>>) {
  const content = Object.fromEntries(Object.entries(types).map(([type, schema]) => [type, { schema }]));
  return { 200: { content }, "4xx": errorSchema, "5xx": errorSchema } as never;
}

/** Path parameters of an operation on one object. */
export const idParameters = z.object({ id: z.string() });
/** Path parameters of an operation on one automation, which is named by macro or id. */
export const keyOrIdParameters = z.object({ keyOrId: z.string() });

/**
 * Checks that an id is a UUID and converts it to lower case. Another id belongs to nothing.
 * @param noun for the message
 * @throws NotFoundError
 */
export function requireUuid(noun: string, id: string): string {
  if (!isUuid(id)) throw new NotFoundError(`${noun} ${id.slice(0, 100)} was not found`);
  return id.toLowerCase();
}

/**
 * The id of the object that an operation is about, from the path.
 * @param noun for the message
 * @throws NotFoundError as `requireUuid`
 */
export function idOf({ params }: { readonly params: { readonly id: string } }, noun: string): string {
  return requireUuid(noun, params.id);
}
