import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { complaintsBelow, complaintsOf } from "./docstrings.ts";

// The header of that file says of all its exports what they are.
const ofOneKind = /^client-schemas\.ts:/u;

it("each exported declaration has a docstring, and each @param is in its signature", async () => {
  const complaints = await complaintsBelow(join(import.meta.dirname, "../src"));
  expect(complaints.filter(({ place }) => !ofOneKind.test(place))).toEqual([]);
});

describe("the check itself", () => {
  const problemsOf = (source: string): string[] => complaintsOf("a.ts", source).map(({ problem }) => problem);

  it("knows names of parameters, of what they are taken apart into, and of their types' fields in the same file", () => {
    const source = `
      interface Options { readonly limit: number }
      /**
       * @param first the first
       * @param options.limit the limit
       * @param name the name
       */
      export function f(first: string, options: Options, { id: name }: { id: string }, ...rest: string[]): void {}
    `;
    expect(problemsOf(`/** Options. */ export ${source.trim()}`)).toEqual([]);
    expect(problemsOf(`/** Options. */ export ${source.replace("first: string", "second: string").trim()}`)).toEqual([
      "names @param first, which its signature does not",
    ]);
    expect(problemsOf(`/** Options. */ export ${source.replace("limit: number", "most: number").trim()}`)).toEqual([
      "names @param options.limit, which its signature does not",
    ]);
  });

  it("reads methods of interfaces, and functions that are values", () => {
    expect(
      problemsOf("/** A forge. */ export interface Forge { /** @param number its number */ read(id: string): void }"),
    ).toEqual(["names @param number, which its signature does not"]);
    expect(problemsOf("/** @param id its id */ export const read = (name: string): string => name;")).toEqual([
      "names @param id, which its signature does not",
    ]);
  });

  it("names what is exported without a docstring, but for a further signature of a function", () => {
    expect(complaintsOf("a.ts", "\n\nexport const a = 1;")).toEqual([
      { place: "a.ts:3", problem: "is exported without a docstring" },
    ]);
    const overloads = "/** Reads. */ export function f(a: 1): 1; export function f(a: 2): 2; export function f(a) {}";
    expect(problemsOf(overloads)).toEqual([]);
  });
});
