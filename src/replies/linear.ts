import type { ReplyTarget } from "../domain/automations/reply-target.ts";
import { cutMiddle } from "../domain/fields/text.ts";
import { retryAfterMs } from "../domain/time/retry-after.ts";
import { callService, type ServiceAnswer, wordsOf } from "./call-service.ts";
import { type Reply, type ReplyCall, ReplyRefused, ReplyUnavailable, type SentReply } from "./reply.ts";

type Issue = Extract<ReplyTarget, { service: "linear" }>;

const longestText = 20_000;
const longestWaitMs = 60 * 60 * 1_000;

const createComment = `mutation CreateComment($input: CommentCreateInput!) {
  commentCreate(input: $input) { success comment { id url } }
}`;
const readComment = `query ReadComment($id: String!) { comment(id: $id) { id url issue { id } } }`;

/**
 * Linear, by `commentCreate` with our own id: a comment that is there already can't be made twice, and is looked up instead. A key
 * of a person or an OAuth token with the scope `comments:create`.
 * @param apiUrl such as `https://api.linear.app/graphql`
 */
export function createLinearReply(apiUrl: string): Reply<Issue> {
  return {
    async send(target, text, call) {
      try {
        const body = cutMiddle(text, longestText);
        // Subscribers are a field of an issue: an answer must not be an update that starts a trigger.
        const input = { id: call.id, issueId: target.issueId, body, doNotSubscribeToIssue: true };
        const data = await ask(apiUrl, createComment, { input }, call);
        return sentOf(at(data, "commentCreate", "comment"));
      } catch (error) {
        // Linear refuses an id that it has: the comment of an attempt whose answer was lost.
        const found = error instanceof ReplyRefused ? await find(apiUrl, target, call) : null;
        if (found === null) throw error;
        return found;
      }
    },
  };
}

/** The comment with our id on the issue; null if there is none, or it can't be seen. */
async function find(apiUrl: string, target: Issue, call: ReplyCall): Promise<SentReply | null> {
  try {
    const data = await ask(apiUrl, readComment, { id: call.id }, call);
    const comment = at(data, "comment");
    return at(comment, "issue", "id") === target.issueId ? sentOf(comment) : null;
  } catch (error) {
    if (error instanceof ReplyRefused) return null;
    throw error;
  }
}

function sentOf(comment: unknown): SentReply {
  const [id, url] = [at(comment, "id"), at(comment, "url")];
  if (typeof id !== "string") throw new ReplyUnavailable("Linear", "its answer has no comment", { isOpen: true });
  return { id, url: typeof url === "string" ? url : null };
}

/** @returns `data` of the answer @throws ReplyUnavailable, ReplyRefused */
async function ask(apiUrl: string, query: string, variables: object, { token, signal }: ReplyCall): Promise<unknown> {
  const answer = await callService("Linear", apiUrl, {
    method: "POST",
    // A person's key is sent as it is, an OAuth token as a bearer token:
    // https://linear.app/developers/graphql#authentication.
    headers: { authorization: token.startsWith("lin_api_") ? token : `Bearer ${token}` },
    body: { query, variables },
    signal,
  });
  const errors = at(answer.body, "errors");
  if (Array.isArray(errors) && errors.length > 0) throw failureOf(errors[0], answer);
  const data = at(answer.body, "data");
  if (typeof data === "object" && data !== null) return data;
  if (answer.status >= 300) throw new ReplyRefused("Linear", `it answered ${answer.status}`);
  throw new ReplyUnavailable("Linear", "its answer is not in the documented form", { isOpen: true });
}

/** Types of errors that pass, as `@linear/sdk` knows them, without spaces. */
const passing = new Set(["ratelimited", "internalerror", "networkerror", "locktimeout", "bootstraperror"]);

/**
 * The failure for an error of GraphQL. Linear answers a rate limit with 400 and its type
 * (https://linear.app/developers/rate-limiting).
 */
function failureOf(error: unknown, { headers }: ServiceAnswer): ReplyUnavailable | ReplyRefused {
  const types = [at(error, "extensions", "type"), at(error, "extensions", "code")].map((type) =>
    typeof type === "string" ? type.toLowerCase().replaceAll(/[^a-z]/gu, "") : "",
  );
  const words = wordsOf(at(error, "extensions", "userPresentableMessage") ?? at(error, "message"));
  const isLimit = types.includes("ratelimited");
  if (!types.some((type) => passing.has(type))) return new ReplyRefused("Linear", words);
  return new ReplyUnavailable("Linear", words, { isOpen: !isLimit, retryAfterMs: isLimit ? waitMsOf(headers) : null });
}

/** Until when to wait: Retry-After, else the reset of the limit that is used up, in ms since 1970; null if neither is given. */
function waitMsOf(headers: Headers): number | null {
  const asked = retryAfterMs(headers.get("retry-after"));
  const resets = ["requests", "complexity", "endpoint-requests"]
    .filter((limit) => headers.get(`x-ratelimit-${limit}-remaining`) === "0")
    .map((limit) => Number(headers.get(`x-ratelimit-${limit}-reset`) ?? NaN) - Date.now())
    .filter((wait) => Number.isFinite(wait));
  const wait = asked ?? (resets.length === 0 ? null : Math.max(0, ...resets));
  return wait === null ? null : Math.min(wait, longestWaitMs);
}

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, name)
        ? (inner as Record<string, unknown>)[name]
        : undefined,
    value,
  );
}
