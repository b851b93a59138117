import type { z } from "zod";

/**
 * Describes a schema's problem with a value as the end of a sentence that begins with the field's name, for example
 * `must be at most 100`.
 */
export function problemOf(issue: z.core.$ZodIssue): string {
  const { message } = issue;
  // Our schemas' own messages begin with a small letter, the library's with a capital.
  if (!/^[A-Z]/u.test(message)) return message;
  if (message.endsWith("received undefined")) return "is required";
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${oneOf(issue.values)}`;
    case "too_small":
      return boundProblem(issue.origin, issue.inclusive === false ? "more than" : "at least", issue.minimum);
    case "too_big":
      return boundProblem(issue.origin, issue.inclusive === false ? "less than" : "at most", issue.maximum);
    case "invalid_format":
      return `must be ${formats[issue.format] ?? `a valid ${issue.format}`}`;
    case "unrecognized_keys":
      return `has an unknown field: ${issue.keys.join(", ")}`;
    case "invalid_union":
      return "options" in issue ? `must be ${oneOf(issue.options)}` : "is not valid";
    case "invalid_key": {
      const [inner] = issue.issues;
      return inner === undefined ? "is not valid" : problemOf(inner);
    }
    default:
      return "is not valid";
  }
}

const kinds: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};

const formats: Readonly<Record<string, string>> = {
  url: "a URL, such as https://host.example",
  uuid: "a UUID",
  datetime: "a time in UTC, such as 2026-11-21T08:31:05Z",
};

function boundProblem(origin: string, relation: string, bound: number | bigint): string {
  if (origin === "string") return `must have ${relation} ${bound} ${bound === 1 ? "character" : "characters"}`;
  if (origin === "array") return `must have ${relation} ${bound} ${bound === 1 ? "entry" : "entries"}`;
  return `must be ${relation} ${bound}`;
}

/** Joins values as `a, b or c`. */
function oneOf(values: readonly unknown[]): string {
  const names = values.map(String);
  return [names.slice(0, -1).join(", "), names.at(-1)].filter((part) => part !== "").join(" or ");
}
