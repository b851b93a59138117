import { expect, it } from "vitest";
import type { EventContext } from "../domain/automations/automation.ts";
import { celVariables, evaluateCel } from "./cel.ts";

const evaluate = (condition: string, key: string | null, event: EventContext) =>
  evaluateCel({ condition, key, trigger: { id: "t", type: "webhook" } }, celVariables({ event, repository: null }));

it.each([
  [{ a: { b: 1 } }, "a map"],
  [{ a: [1] }, "a list"],
  [{ a: null }, "null"],
  [{ a: 1 }, "an int"],
  [{ a: 1.5 }, "a double"],
  [{ a: true }, "a bool"],
  [{ a: "x".repeat(501) }, "more than 500 characters"],
])("a key that is no short text for %j says that it gave %s", (event, kind) => {
  expect(evaluate("", "event.a", event)).toEqual({ problem: expect.stringContaining(`concurrency.key: gave ${kind}`) });
});

it.each([
  ["event.a.b == 1", {}, "No such key: a"],
  ["event.a.b == 1", { a: null }, "No such key: b"],
  ["event.a.b == 1", { a: "text" }, "No such key: b"],
  ["has(event.a.b)", {}, "No such key: a"],
  ["event.__proto__.x == 1", {}, "No such key: __proto__"],
  ["event.a", { a: "yes" }, "gave a string, and must give a bool"],
])("%s with %j starts nothing, and says why", (condition, event, words) => {
  expect(evaluate(condition, null, event)).toEqual({ problem: expect.stringContaining(words) });
});

it("nothing that an expression makes has what no database keeps", () => {
  const nul = String.raw`"a\u0000b"`;
  expect(evaluate("", nul, {})).toEqual({ passes: true, key: "a\u2400b" });
  expect(evaluate(`event[${nul}] == 1`, null, {})).toEqual({ problem: "condition: No such key: a\u2400b" });
  const { problem } = evaluate(`event["${"x".repeat(286)}😀"] == 1`, null, {}) as { problem: string };
  expect(problem).toMatch(/x\ufffd$/u);
});
