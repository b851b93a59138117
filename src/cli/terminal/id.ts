import { InvalidArgumentError } from "commander";
import { isUuid } from "../../domain/fields/uuid.ts";

/**
 * Makes a parser of an argument that is an id.
 * @param noun what the id belongs to, for example "a session"
 */
export function parseId(noun: string): (value: string) => string {
  return (value) => {
    if (!isUuid(value)) throw new InvalidArgumentError(`must be ${noun}'s id.`);
    return value.toLowerCase();
  };
}
