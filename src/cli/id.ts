import { InvalidArgumentError } from "commander";
import { isUuid } from "../domain/uuid.ts";

/** Reads an argument that is an id. @param noun of what, as in "a session's id" */
export function parseId(noun: string): (value: string) => string {
  return (value) => {
    if (!isUuid(value)) throw new InvalidArgumentError(`must be ${noun}'s id.`);
    return value.toLowerCase();
  };
}
