import type { Answer } from "./api-request.ts";
import { feedbackOf, resolveThread } from "./feedback.ts";
import type { ForgeState } from "./state.ts";

/** A request of GraphQL. */
export interface GraphQLRequest {
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Threads of a page: a pull request with more has several. */
const pageSize = 100;

/** The requests about reviews and their threads that Offstage makes, distinguished by their fields. */
export function answerGraphQL(state: ForgeState, { query, variables }: GraphQLRequest): Answer {
  if (query.includes("addReaction(")) return react(state, variables);
  if (query.includes("reviews(")) return listReviews(state, variables);
  return query.includes("resolveReviewThread(") ? resolveById(state, variables) : listThreads(state, variables);
}

/** Every review that is asked for is there: nothing makes one by the API. */
function listReviews(state: ForgeState, variables: GraphQLRequest["variables"]): Answer {
  const { owner, name, number } = variables as { owner: string; name: string; number: number };
  const key = `${owner}/${name}`;
  const reviews = state.facts.get(key)?.reviews ?? [];
  const nodes = reviews.map((review) => ({ id: `PRR_${key}/${number}/${review}`, fullDatabaseId: review }));
  return { status: 200, body: { data: { repository: { pullRequest: { reviews: { nodes } } } } } };
}

function react(state: ForgeState, { subjectId, content }: GraphQLRequest["variables"]): Answer {
  const [, owner = "", name = "", number = "", review = ""] =
    /^PRR_(.+)\/([^/]+)\/(\d+)\/([^/]+)$/u.exec(String(subjectId)) ?? [];
  if (state.facts.get(`${owner}/${name}`)?.reviews?.includes(review) !== true)
    return refused("NOT_FOUND", `Could not resolve to a node with the global id of '${String(subjectId)}'`, {
      addReaction: null,
    });
  feedbackOf(state, { owner, name }).reactions.add(
    `pulls/${number}/reviews/${review} ${String(content).toLowerCase()}`,
  );
  return { status: 200, body: { data: { addReaction: { reaction: { content } } } } };
}

function listThreads(state: ForgeState, variables: GraphQLRequest["variables"]): Answer {
  const { owner, name, number, after } = variables as { owner: string; name: string; number: number; after?: string };
  const key = `${owner}/${name}`;
  const pulls = state.pulls.get(key);
  if (pulls === undefined)
    return refused("NOT_FOUND", `Could not resolve to a Repository with the name '${key}'.`, { repository: null });
  if (!pulls.some((pull) => pull.number === number))
    return refused("NOT_FOUND", `Could not resolve to a PullRequest with the number of ${number}.`, {
      repository: { pullRequest: null },
    });
  const { resolved } = feedbackOf(state, { owner, name });
  const from = Number(after ?? 0);
  const threads = state.facts.get(key)?.threads ?? [];
  const nodes = threads.slice(from, from + pageSize).map((thread) => ({
    id: idOf(key, thread),
    isResolved: resolved.has(thread),
    comments: { nodes: [{ fullDatabaseId: thread }] },
  }));
  const hasNextPage = from + pageSize < threads.length;
  const pageInfo = { hasNextPage, endCursor: nodes.length === 0 ? null : String(from + nodes.length) };
  return { status: 200, body: { data: { repository: { pullRequest: { reviewThreads: { nodes, pageInfo } } } } } };
}

function resolveById(state: ForgeState, { threadId }: GraphQLRequest["variables"]): Answer {
  const [, owner = "", name = "", thread = ""] = /^PRRT_(.+)\/([^/]+)\/([^/]+)$/u.exec(String(threadId)) ?? [];
  if (state.facts.get(`${owner}/${name}`)?.resolvesNothing === true)
    return refused("FORBIDDEN", "Resource not accessible by personal access token", { resolveReviewThread: null });
  if (resolveThread(state, { owner, name }, thread) === null)
    return refused("NOT_FOUND", `Could not resolve to a node with the global id of '${String(threadId)}'`, {
      resolveReviewThread: null,
    });
  return { status: 200, body: { data: { resolveReviewThread: { thread: { isResolved: true } } } } };
}

const idOf = (key: string, thread: string): string => `PRRT_${key}/${thread}`;

/** GraphQL refuses with 200. */
function refused(type: string, message: string, data: unknown): Answer {
  return { status: 200, body: { data, errors: [{ type, message, path: [], locations: [{ line: 1, column: 1 }] }] } };
}
