import { Environment, type ParseResult } from "@marcbachmann/cel-js";
import { InvalidInputError, messageOf } from "../domain/errors/errors.ts";
import type { ConditionVariables, Expression, Verdict } from "../domain/automations/condition.ts";
import { storable } from "../domain/fields/text.ts";

/** Bounds of one expression. Its processor time is bounded from outside. */
const limits = { maxAstNodes: 500, maxDepth: 50, maxListElements: 200, maxMapEntries: 100, maxCallArguments: 10 };
/** Characters of compiled expressions that are kept: a process evaluates the same ones again and again, in a small heap. */
const mostKept = 300_000;
/** An error's message may quote the expression, so it is cut to this many characters. */
const longestProblem = 300;
/** Characters of a concurrency key; longer ones are refused, since two of them must not become one by cutting. */
const longestKey = 500;

/** The Common Expression Language (https://cel.dev) over what a trigger knows. */
const environment = new Environment({ limits })
  .registerVariable("event", "map<string, dyn>")
  .registerVariable("trigger", "map<string, dyn>")
  .registerVariable("repository", "dyn");
const kept = new Map<string, ParseResult>();
let keptCharacters = 0;

function compile(expression: string): ParseResult {
  const known = kept.get(expression);
  if (known !== undefined) return known;
  const compiled = environment.parse(expression);
  if (keptCharacters + expression.length > mostKept) {
    kept.clear();
    keptCharacters = 0;
  }
  kept.set(expression, compiled);
  keptCharacters += expression.length;
  return compiled;
}

/**
 * Checks that an expression can be evaluated, and what it gives.
 * @param gives the type of its value; what depends on the event counts as right
 * @throws InvalidInputError with the place of the fault
 */
export function checkCel(expression: string, gives: "bool" | "string"): void {
  const { valid, type, error } = environment.check(expression);
  if (!valid) throw new InvalidInputError(firstLine(error));
  if (type !== undefined && type !== gives && type !== "dyn" && !type.startsWith("dyn<")) {
    throw new InvalidInputError(`gives a ${type}, and must give a ${gives}`);
  }
}

/**
 * Evaluates a condition and the key of runs with the variables of one event; what can't be evaluated says why.
 * @param shared of `celVariables`
 */
export function evaluateCel(
  { condition, key, trigger }: Expression,
  shared: Readonly<Record<string, unknown>>,
): Verdict {
  let part = "condition";
  const variables = { ...shared, trigger };
  try {
    const passes = condition === "" ? true : compile(condition)(variables);
    if (typeof passes !== "boolean") return { problem: `${part}: gave ${kindOf(passes)}, and must give a bool` };
    if (!passes || key === null) return { passes, key: null };
    part = "concurrency.key";
    const value = compile(key)(variables);
    if (typeof value !== "string") return { problem: `${part}: gave ${kindOf(value)}, and must give a string` };
    if (value.length > longestKey) return { problem: `${part}: gave more than ${longestKey} characters` };
    return { passes, key: storable(value) };
  } catch (error) {
    return { problem: `${part}: ${firstLine(error)}` };
  }
}

/**
 * Values of JSON as CEL has them: whole numbers are ints, so that `event.number + 1` and `event.number % 2` work.
 * @param given as JSON.parse gives them
 */
export function celVariables(given: ConditionVariables): Readonly<Record<string, unknown>> {
  return { event: celValue(given.event), repository: celValue(given.repository) };
}

function celValue(value: unknown): unknown {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value !== "object" || value === null) return value;
  return new Map(Object.entries(value).map(([name, inner]) => [name, celValue(inner)]));
}

const kinds: Readonly<Record<string, string>> = {
  bigint: "an int",
  number: "a double",
  boolean: "a bool",
  string: "a string",
};

/** The kind of a value, in CEL's words. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (value instanceof Map) return "a map";
  return value === null ? "null" : (kinds[typeof value] ?? "another value");
}

/** An error's first line: what it quotes may have NUL by an escape, or be cut inside a character. */
function firstLine(error: unknown): string {
  return storable((messageOf(error).split("\n", 1)[0] ?? "").slice(0, longestProblem));
}
