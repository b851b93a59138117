import { InvalidInputError, messageOf } from "../../domain/errors/errors.ts";
import { parseExactly } from "../../domain/fields/exact-json.ts";
import type { Terminal } from "../terminal/commands.ts";

/**
 * Reads a JSON object from stdin.
 * @throws InvalidInputError if it is none
 */
export async function readObject(terminal: Pick<Terminal, "readInput">): Promise<Record<string, unknown>> {
  return parseObject(await terminal.readInput());
}

/** @throws InvalidInputError if the text is no JSON object */
export function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    // As the server reads events: an id of nineteen digits stays that id.
    value = parseExactly(text);
  } catch (error) {
    throw new InvalidInputError(`this is no JSON: ${messageOf(error)}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new InvalidInputError('this must be a JSON object, such as {"title": "…"}');
}
