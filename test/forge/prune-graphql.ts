import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Makes `github-graphql.json` of GitHub's published GraphQL schema: the fields and arguments of the types that Offstage asks for, each
 * with its type as GraphQL writes it, without prose.
 *
 *   npm pack @octokit/graphql-schema && tar xf octokit-graphql-schema-*.tgz
 *   node test/forge/prune-graphql.ts package/schema.json
 */
const kept: Readonly<Record<string, readonly string[]>> = {
  Query: ["repository"],
  Repository: ["pullRequest"],
  PullRequest: ["reviewThreads", "reviews"],
  PullRequestReviewConnection: ["nodes"],
  PullRequestReview: ["id", "fullDatabaseId"],
  PullRequestReviewThreadConnection: ["nodes", "pageInfo"],
  PageInfo: ["hasNextPage", "endCursor"],
  PullRequestReviewThread: ["id", "isResolved", "comments"],
  PullRequestReviewCommentConnection: ["nodes"],
  PullRequestReviewComment: ["fullDatabaseId"],
  Mutation: ["resolveReviewThread", "addReaction"],
  AddReactionInput: ["clientMutationId", "content", "subjectId"],
  AddReactionPayload: ["reaction"],
  Reaction: ["content"],
  ResolveReviewThreadInput: ["clientMutationId", "threadId"],
  ResolveReviewThreadPayload: ["thread"],
};

interface TypeReference {
  readonly kind: string;
  readonly name: string | null;
  readonly ofType: TypeReference | null;
}

interface Field {
  readonly name: string;
  readonly type: TypeReference;
  readonly args?: readonly Field[];
}

interface Type {
  readonly name: string;
  readonly fields?: readonly Field[] | null;
  readonly inputFields?: readonly Field[] | null;
}

const [source = ""] = process.argv.slice(2);
const read = JSON.parse(await readFile(source, "utf8")) as {
  readonly __schema?: { readonly types: readonly Type[] };
  readonly data?: { readonly __schema: { readonly types: readonly Type[] } };
};
const types = (read.__schema ?? read.data?.__schema)?.types ?? [];

await writeFile(
  join(import.meta.dirname, "github-graphql.json"),
  `${JSON.stringify(Object.fromEntries(Object.entries(kept).map(([name, fields]) => [name, fieldsOf(name, fields)])), null, 1)}\n`,
);

function fieldsOf(name: string, wanted: readonly string[]) {
  const type = types.find((each) => each.name === name);
  const all = type?.fields ?? type?.inputFields ?? [];
  return Object.fromEntries(
    wanted.map((field) => {
      const found = all.find((each) => each.name === field);
      if (found === undefined) throw new Error(`the schema has no ${name}.${field}`);
      const args = (found.args ?? []).map((each) => [each.name, written(each.type)]);
      return [field, { type: written(found.type), arguments: Object.fromEntries(args) as Record<string, string> }];
    }),
  );
}

/** As GraphQL writes it: `[Thread!]!`. */
function written({ kind, name, ofType }: TypeReference): string {
  if (kind === "NON_NULL" && ofType !== null) return `${written(ofType)}!`;
  if (kind === "LIST" && ofType !== null) return `[${written(ofType)}]`;
  return name ?? "";
}
