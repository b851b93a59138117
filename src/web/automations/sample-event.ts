import type { EventContext } from "../../domain/automations/automation.ts";

/** Liquid tags `{% … %}` and `{{ … }}`; the rest is text. */
const tags = /\{[{%](.*?)[}%]\}/gsu;
const named = /(?<![\w.])event((?:\.[A-Za-z_][\w-]*)+)/gu;

/** A sample event for instructions: every value that they name, empty. */
export function sampleEvent(instructions: string): EventContext {
  const sample: EventContext = {};
  for (const [, inside = ""] of instructions.matchAll(tags)) {
    for (const [, path = ""] of inside.matchAll(named)) put(sample, path.slice(1).split("."));
  }
  return sample;
}

function put(into: EventContext, [name = "", ...rest]: readonly string[]): void {
  const known = Object.hasOwn(into, name) ? into[name] : undefined;
  if (rest.length === 0) {
    if (known === undefined) into[name] = "";
    return;
  }
  const inner = isObject(known) ? known : {};
  // An assignment to `__proto__` would set no property.
  Object.defineProperty(into, name, { value: inner, enumerable: true, writable: true, configurable: true });
  put(inner, rest);
}

function isObject(value: unknown): value is EventContext {
  return typeof value === "object" && value !== null;
}
