import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { graphqlUrlOf } from "../../src/forges/github/graphql.ts";
import { reactionMutation, reviewsQuery } from "../../src/forges/github/review-reactions.ts";
import { resolveMutation, threadsQuery } from "../../src/forges/github/review-threads.ts";
import { startForge } from "./server.ts";

/** GitHub's published GraphQL schema, as far as Offstage asks for it: see `prune-graphql.ts`. */
type Schema = Readonly<
  Record<
    string,
    Readonly<Record<string, { readonly type: string; readonly arguments: Readonly<Record<string, string>> }>>
  >
>;

let schema: Schema;

beforeAll(async () => {
  schema = JSON.parse(await readFile(join(import.meta.dirname, "github-graphql.json"), "utf8")) as Schema;
});

const bare = (type: string): string => type.replaceAll(/[[\]!]/gu, "");

/**
 * What is wrong with an operation by the schema: a field or an argument that it lacks, an argument that is missing, a variable of
 * another type; of an answer, a field that was not asked for, or is missing.
 */
function problems(operation: string, answer?: unknown): string[] {
  const words = operation.match(/[A-Za-z$]\w*!?|\d+|[{}()[\]:]/gu) ?? [];
  const wrong: string[] = [];
  const variables = new Map<string, string>();
  let at = 0;
  const next = (): string => words[at++] ?? "";
  const root = next() === "mutation" ? "Mutation" : "Query";
  if (words[at] === "(") {
    at += 1;
    for (let word = next(); word !== ")"; word = next()) {
      at += 1;
      variables.set(word, next());
    }
  }

  function value(type: string, where: string): void {
    const word = next();
    if (word.startsWith("$")) {
      const given = variables.get(word);
      if (given !== type && given !== `${type}!`) wrong.push(`${where} is of type ${type}, not ${given}`);
    } else if (word === "{") {
      for (let name = next(); name !== "}"; name = next()) {
        at += 1;
        const field = schema[bare(type)]?.[name];
        if (field === undefined) wrong.push(`${bare(type)} has no ${name}`);
        value(field?.type ?? "", `${where}.${name}`);
      }
    } else if (bare(type) !== (/^\d+$/u.test(word) ? "Int" : ""))
      wrong.push(`${where} is of type ${type}, not ${word}`);
  }

  function fields(type: string, of: unknown, where: string): void {
    at += 1;
    const asked: string[] = [];
    for (let name = next(); name !== "}"; name = next()) {
      asked.push(name);
      const field = schema[type]?.[name];
      if (field === undefined) wrong.push(`${type} has no ${name}`);
      const given = new Set<string>();
      if (words[at] === "(") {
        at += 1;
        for (let argument = next(); argument !== ")"; argument = next()) {
          at += 1;
          given.add(argument);
          const wanted = field?.arguments[argument];
          if (wanted === undefined) wrong.push(`${type}.${name} has no ${argument}`);
          value(wanted ?? "", `${name}.${argument}`);
        }
      }
      for (const [argument, wanted] of Object.entries(field?.arguments ?? {}))
        if (wanted.endsWith("!") && !given.has(argument)) wrong.push(`${type}.${name} needs ${argument}`);
      const inner = (of as Readonly<Record<string, unknown>> | null | undefined)?.[name];
      if (of != null && inner === undefined) wrong.push(`${where}.${name} is not answered`);
      const one: unknown = Array.isArray(inner) ? inner[0] : inner;
      if (words[at] === "{") fields(bare(field?.type ?? ""), one, `${where}.${name}`);
      else if (schema[bare(field?.type ?? "")] !== undefined) wrong.push(`${type}.${name} needs a selection`);
    }
    for (const name of Object.keys(of ?? {}))
      if (!asked.includes(name)) wrong.push(`${where}.${name} was not asked for`);
  }

  fields(root, answer, "data");
  return wrong;
}

it("what is asked of GitHub's GraphQL API is in its schema, and answered so by the test forge", async () => {
  await using forge = await disposableForge();
  await forge.createRepository("acme", "shop", { "a.txt": "a\n" });
  await forge.commit("acme", "shop", "work", { "b.txt": "b\n" });
  forge.describe("acme", "shop", { threads: ["77"], reviews: ["9"] });
  const headers = { Authorization: `Bearer ${forge.token}` };
  const body = JSON.stringify({ head: "work", base: "main", title: "Work" });
  await fetch(`${forge.apiUrl}/repos/acme/shop/pulls`, { method: "POST", headers, body });
  const ask = async (query: string, variables: object): Promise<unknown> => {
    const sent = { method: "POST", headers, body: JSON.stringify({ query, variables }) };
    return ((await (await fetch(graphqlUrlOf(forge.apiUrl), sent)).json()) as { data: unknown }).data;
  };
  const threads = await ask(threadsQuery, { owner: "acme", name: "shop", number: 1, after: null });
  expect(problems(threadsQuery, threads)).toEqual([]);
  const [, threadId] = /"id":"([^"]+)"/u.exec(JSON.stringify(threads)) ?? [];
  const resolved = await ask(resolveMutation, { threadId });
  expect(problems(resolveMutation, resolved)).toEqual([]);
  expect(resolved).toEqual({ resolveReviewThread: { thread: { isResolved: true } } });
  const reviews = await ask(reviewsQuery, { owner: "acme", name: "shop", number: 1 });
  expect(problems(reviewsQuery, reviews)).toEqual([]);
  const [, subjectId] = /"id":"([^"]+)"/u.exec(JSON.stringify(reviews)) ?? [];
  const reacted = await ask(reactionMutation, { subjectId, content: "EYES" });
  expect(problems(reactionMutation, reacted)).toEqual([]);
  expect(reacted).toEqual({ addReaction: { reaction: { content: "EYES" } } });
});

async function disposableForge() {
  const forge = await startForge();
  return { ...forge, [Symbol.asyncDispose]: () => forge.close() };
}

it("the check sees a field, an argument and a type that the schema lacks, and what is missing", () => {
  const without = (from: string, to: string): string[] => problems(threadsQuery.replace(from, to));
  expect(without("fullDatabaseId", "number")).toEqual(["PullRequestReviewComment has no number"]);
  expect(without("after: $after", "page: $after")).toContain("PullRequest.reviewThreads has no page");
  expect(without("$number: Int!", "$number: String!")).toEqual(["pullRequest.number is of type Int!, not String!"]);
  expect(without("(number: $number)", "")).toEqual(["Repository.pullRequest needs number"]);
  expect(problems(resolveMutation, { resolveReviewThread: { thread: { id: "1" } } })).toEqual([
    "data.resolveReviewThread.thread.isResolved is not answered",
    "data.resolveReviewThread.thread.id was not asked for",
  ]);
});

it.each([
  ["https://api.github.com", "https://api.github.com/graphql"],
  ["https://api.acme.ghe.com", "https://api.acme.ghe.com/graphql"],
  ["https://github.acme.example/api/v3", "https://github.acme.example/api/graphql"],
])("GraphQL of %s is at %s", (apiUrl, url) => expect(graphqlUrlOf(apiUrl)).toBe(url));
