import { SessionError } from "../../domain/errors/errors.ts";
import type { Thread } from "../../domain/answers/answer.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { dataOf, type GraphQLApi } from "./graphql.ts";

const what = "resolution of a thread";
/** Pages of 100 threads of a pull request that are looked through. */
const pageLimit = 20;

/** The first comment of each thread of a pull request (https://docs.github.com/graphql/reference/objects#pullrequestreviewthread). */
export const threadsQuery = `query ($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        nodes { id isResolved comments(first: 1) { nodes { fullDatabaseId } } }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}`;

/** https://docs.github.com/graphql/reference/mutations#resolvereviewthread */
export const resolveMutation = `mutation ($threadId: ID!) {
  resolveReviewThread(input: { threadId: $threadId }) { thread { isResolved } }
}`;

interface ListedThread {
  readonly id: string;
  readonly isResolved: boolean;
  readonly comments: { readonly nodes?: readonly ({ readonly fullDatabaseId?: string | null } | null)[] | null };
}

interface ListedThreads {
  readonly repository?: {
    readonly pullRequest?: {
      readonly reviewThreads: {
        readonly nodes?: readonly (ListedThread | null)[] | null;
        readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor?: string | null };
      };
    } | null;
  } | null;
}

/**
 * Resolves the thread that a comment began: REST names threads by that, GraphQL by other ids, which no call for a
 * comment returns.
 * @param repository as GitHub names it: `owner/name`
 * @throws SessionError if there is no such thread, or it may not be resolved
 */
export async function resolveReviewThread(
  { host, ask }: GraphQLApi,
  repository: string,
  { subject: { number }, id }: Thread,
  signal: AbortSignal,
): Promise<void> {
  const [owner = "", name = ""] = repository.split("/");
  const thread = await findThread(host, (after) => ask(threadsQuery, { owner, name, number, after }, signal), id);
  if (thread === null) throw threadIsGone(host, number);
  if (!thread.isResolved) dataOf(host, await ask(resolveMutation, { threadId: thread.id }, signal), what);
}

async function findThread(
  host: string,
  askPage: (after: string | null) => Promise<ForgeAnswer>,
  firstComment: string,
): Promise<ListedThread | null> {
  let after: string | null = null;
  for (let page = 1; page <= pageLimit; page += 1) {
    const { repository } = dataOf(host, await askPage(after), what) as ListedThreads;
    const threads = repository?.pullRequest?.reviewThreads;
    const found = threads?.nodes?.find((each) => String(each?.comments.nodes?.[0]?.fullDatabaseId) === firstComment);
    if (found != null) return found;
    if (threads?.pageInfo.hasNextPage !== true) return null;
    after = threads.pageInfo.endCursor ?? null;
  }
  return null;
}

function threadIsGone(host: string, number: number): SessionError {
  return new SessionError({
    code: "pull_request_refused",
    reason: `${host} has no such thread on pull request ${number}: its first comment was deleted.`,
    retryable: false,
    remedy: "Nothing is to be done: a thread that is gone needs no resolution.",
  });
}
