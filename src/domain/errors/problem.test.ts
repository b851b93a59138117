import { expect, test } from "vitest";
import { z } from "zod";
import { problemOf } from "./problem.ts";

const forge = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("gitea"), url: z.url() }),
  z.strictObject({ kind: z.literal("git") }),
]);

test.each([
  [z.string(), undefined, "is required"],
  [z.string(), 5, "must be a string"],
  [z.coerce.number(), "abc", "must be a number"],
  [z.number().int(), 1.5, "must be a whole number"],
  [z.boolean(), "no", "must be true or false"],
  [z.array(z.string()), {}, "must be an array"],
  [z.record(z.string(), z.string()), [], "must be an object"],
  [z.number().min(1), 0, "must be at least 1"],
  [z.number().positive(), 0, "must be more than 0"],
  [z.number().max(100), 1_000, "must be at most 100"],
  [z.string().max(3), "abcd", "must have at most 3 characters"],
  [z.array(z.string()).min(1), [], "must have at least 1 entry"],
  [z.enum(["read", "write", "admin"]), "foo", "must be read, write or admin"],
  [z.literal("x"), "y", "must be x"],
  [z.url(), "foo", "must be a URL, such as https://host.example"],
  [z.uuid(), "foo", "must be a UUID"],
  [forge, { kind: "gitlab" }, "must be gitea or git"],
  [forge, { kind: "git", uRL: "x" }, "has an unknown field: uRL"],
  [z.string().min(32, "must be longer"), "x", "must be longer"],
  [z.union([z.string(), z.number()]), true, "is not valid"],
])("a schema's problem with a value is one sentence (%#)", (schema, value, sentence) => {
  const [issue] = schema.safeParse(value).error?.issues ?? [];
  expect(issue === undefined ? null : problemOf(issue)).toBe(sentence);
});
