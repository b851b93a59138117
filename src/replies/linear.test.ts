import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startService, type ServiceCall, type ServiceServer } from "../../test/replies/service-server.ts";
import { createLinearReply } from "./linear.ts";
import { createReplies } from "./replies.ts";
import { ReplyRefused } from "./reply.ts";

const id = "6f0f9a52-9c57-4a0f-8f0e-3b6d0a8f7c21";
const issueId = "2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9";
const token = "lin_api_right";
let server: ServiceServer;
let comments: { id: string; issueId: string; body: string }[];

beforeEach(async () => {
  comments = [];
  server = await startService(linear);
});
afterEach(() => server.close());

const failed = (message: string, type: string, status = 200) => ({
  status,
  body: { data: null, errors: [{ message, extensions: { type, userPresentableMessage: message } }] },
});
const shown = (comment: { id: string; issueId: string }) => ({
  id: comment.id,
  url: `https://linear.app/acme/issue/ENG-42#comment-${comment.id.slice(0, 8)}`,
  issue: { id: comment.issueId },
});

/** As https://linear.app/developers/graphql has it: errors stand in `errors`, each with its type. */
function linear({ headers, body }: ServiceCall): { status?: number; body: unknown } {
  const accepted = [token, "Bearer lin_oauth_right"];
  if (!accepted.includes(headers.authorization ?? ""))
    return failed("It looks like you are trying to use a wrong key", "authentication error", 400);
  const { query, variables } = body as {
    query: string;
    variables: { id?: string; input?: { id: string; issueId: string; body: string } };
  };
  const known = comments.find((comment) => comment.id === (variables.input?.id ?? variables.id));
  if (query.includes("comment(id: $id)")) {
    return known === undefined
      ? failed("Entity not found: Comment", "invalid input")
      : { body: { data: { comment: shown(known) } } };
  }
  const { input } = variables;
  if (!query.includes("commentCreate(input: $input)") || input === undefined)
    return failed("Cannot query field", "graphql error", 400);
  if (input.issueId !== issueId) return failed("Entity not found: Issue", "invalid input");
  if (known !== undefined) return failed("conflict on insert of Comment", "invalid input");
  comments.push(input);
  return { body: { data: { commentCreate: { success: true, comment: shown(input) } } } };
}

const send = (options: { token?: string; issueId?: string; text?: string; id?: string } = {}) =>
  createLinearReply(`${server.url}/graphql`).send(
    { service: "linear", issueId: options.issueId ?? issueId },
    options.text ?? "Done.",
    { id: options.id ?? id, token: options.token ?? token, isRepeated: false, signal: new AbortController().signal },
  );
const failureOf = (sent: Promise<unknown>): Promise<unknown> =>
  sent.then(
    () => null,
    (error: unknown) => error,
  );

it("comments on the issue under our id, with a person's key or an OAuth token", async () => {
  await expect(send()).resolves.toEqual({ id, url: "https://linear.app/acme/issue/ENG-42#comment-6f0f9a52" });
  expect(comments).toEqual([{ id, issueId, body: "Done." }]);
  await send({ token: "lin_oauth_right", id: "0d3f6b9f-5fd1-4f0f-8b7d-2a1a4c9e7b10" });
  expect(comments).toHaveLength(2);
});

it("finds the comment of an attempt whose answer was lost, and makes no other", async () => {
  server.faults.push({ kind: "lost" });
  expect(await failureOf(send())).toMatchObject({ code: "reply_unavailable", isOpen: true });
  await expect(send()).resolves.toMatchObject({ id });
  expect(comments).toHaveLength(1);
});

it("takes no other issue's comment for its own", async () => {
  comments.push({ id, issueId: "another", body: "x" });
  const failure = await failureOf(send());
  expect(failure).toBeInstanceOf(ReplyRefused);
  expect(String(failure)).toContain("conflict on insert of Comment");
});

it("cuts what is too long in its middle", async () => {
  await send({ text: `begin ${"x".repeat(100_000)} end` });
  expect(comments[0]?.body.length).toBeLessThan(21_000);
  expect(comments[0]?.body).toMatch(/^begin [^]* end$/u);
});

describe("what passes", () => {
  const limited = JSON.stringify(failed("Rate limit exceeded", "ratelimited").body);
  it("is a rate limit, answered with 400 and the time of its end in ms", async () => {
    const reset = String(Date.now() + 90_000);
    const headers = {
      "x-ratelimit-requests-remaining": "0",
      "x-ratelimit-requests-reset": reset,
      "x-ratelimit-complexity-remaining": "100",
      "x-ratelimit-complexity-reset": String(Date.now() + 900_000),
    };
    server.faults.push({ kind: "answer", status: 400, headers, body: limited });
    const failure = (await failureOf(send())) as { retryAfterMs: number };
    expect(failure).toMatchObject({ code: "reply_unavailable", isOpen: false });
    expect(failure.retryAfterMs).toBeGreaterThan(60_000);
    expect(failure.retryAfterMs).toBeLessThanOrEqual(90_000);
  });
  it("is a rate limit by its code, with or without a time", async () => {
    const body = JSON.stringify({ errors: [{ message: "slow down", extensions: { code: "RATELIMITED" } }] });
    server.faults.push(
      { kind: "answer", status: 400, headers: { "retry-after": "5" }, body },
      { kind: "answer", status: 400, body },
    );
    expect(await failureOf(send())).toMatchObject({ retryAfterMs: 5_000 });
    expect(await failureOf(send())).toMatchObject({
      retryAfterMs: null,
      message: "Linear did not take the reply: slow down",
    });
  });
  it.each([
    ["internal error", 200],
    ["lock timeout", 400],
    ["network error", 200],
  ])("is %s with %i", async (type, status) => {
    server.faults.push({ kind: "answer", status, body: JSON.stringify(failed("oh", type).body) });
    expect(await failureOf(send())).toMatchObject({ code: "reply_unavailable", isOpen: true });
  });
  it.each(["<html>", "null", "{}", '{"data":null}', '{"data":{"commentCreate":null}}'])(
    "is the answer %s",
    async (body) => {
      server.faults.push({ kind: "answer", status: 200, body });
      expect(await failureOf(send())).toMatchObject({ code: "reply_unavailable", isOpen: true });
    },
  );
});

describe("what does not pass", () => {
  it.each([
    ["a wrong key", { token: "lin_api_wrong" }, "wrong key"],
    ["an issue that is gone", { issueId: "gone" }, "Entity not found: Issue"],
  ])("is %s, in Linear's words", async (_, options, words) => {
    const failure = await failureOf(send(options));
    expect(failure).toBeInstanceOf(ReplyRefused);
    expect(String(failure)).toContain(words);
    expect(String(failure)).not.toContain("lin_api");
    expect(comments).toEqual([]);
  });
});

it("goes to the service of the target", async () => {
  const replies = createReplies({ slack: `${server.url}/api/`, linear: `${server.url}/graphql` });
  const call = { id, token, isRepeated: false, signal: new AbortController().signal };
  await replies.send({ service: "linear", issueId }, "Done.", call);
  await failureOf(replies.send({ service: "slack", channel: "C1", threadId: "1.2" }, "Done.", call));
  expect(server.calls.map(({ path }) => path)).toEqual(["/graphql", "/api/chat.postMessage"]);
});
