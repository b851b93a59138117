import type { Reaction } from "../../domain/answers/answer.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import { dataOf, type GraphQLApi } from "./graphql.ts";

/** The newest reviews of a pull request (https://docs.github.com/graphql/reference/objects#pullrequestreview). */
export const reviewsQuery = `query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { reviews(last: 100) { nodes { id fullDatabaseId } } }
  }
}`;

/** https://docs.github.com/graphql/reference/mutations#addreaction */
export const reactionMutation = `mutation ($subjectId: ID!, $content: ReactionContent!) {
  addReaction(input: { subjectId: $subjectId, content: $content }) { reaction { content } }
}`;

const contents: Readonly<Record<Reaction, string>> = {
  eyes: "EYES",
  "+1": "THUMBS_UP",
  "-1": "THUMBS_DOWN",
  rocket: "ROCKET",
  confused: "CONFUSED",
};

interface ListedReviews {
  readonly repository?: {
    readonly pullRequest?: {
      readonly reviews?: {
        readonly nodes?: readonly ({ readonly id: string; readonly fullDatabaseId?: string | null } | null)[] | null;
      } | null;
    } | null;
  } | null;
}

/**
 * Reacts to a review, which REST names by another id than GraphQL. Nothing happens if the reaction is there.
 * @param repository as GitHub names it: `owner/name`
 * @throws SessionError if there is no such review among the newest hundred, or it is refused
 */
export async function reactToReview(
  { host, ask }: GraphQLApi,
  repository: string,
  { number, id }: { readonly number: number; readonly id: string },
  reaction: Reaction,
  signal: AbortSignal,
): Promise<void> {
  const [owner = "", name = ""] = repository.split("/");
  const listed = dataOf(host, await ask(reviewsQuery, { owner, name, number }, signal), "reaction") as ListedReviews;
  const reviews = listed.repository?.pullRequest?.reviews?.nodes ?? [];
  const found = reviews.find((review) => String(review?.fullDatabaseId) === id);
  if (found == null) throw reviewIsGone(host, number);
  const variables = { subjectId: found.id, content: contents[reaction] };
  dataOf(host, await ask(reactionMutation, variables, signal), "reaction");
}

function reviewIsGone(host: string, number: number): SessionError {
  return new SessionError({
    code: "pull_request_refused",
    reason: `${host} has no such review on pull request ${number}.`,
    retryable: false,
    remedy: "Nothing is to be done: a review that is gone needs no sign.",
  });
}
