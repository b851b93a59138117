import { z } from "zod";
import { NotFoundError } from "../../domain/errors.ts";
import { isUuid } from "../../domain/uuid.ts";
import { errorSchema } from "./errors.ts";

/** The answers of an operation: 200 and its body, and the errors that any may have. */
export function answers<Body extends z.ZodType>(body: Body) {
  return { 200: body, "4xx": errorSchema, "5xx": errorSchema };
}

export const idParameters = z.object({ id: z.string() });
export const keyOrIdParameters = z.object({ keyOrId: z.string() });

/** An id that is no UUID is of nothing that exists. @throws NotFoundError */
export function requireUuid(noun: string, id: string): string {
  if (!isUuid(id)) throw new NotFoundError(`${noun} ${id.slice(0, 100)} was not found`);
  return id.toLowerCase();
}
