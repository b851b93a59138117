import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { linearError, type LinearService, startLinear } from "../../test/replies/linear-service.ts";
import { createLinearReply } from "./linear.ts";
import { createReplies } from "./replies.ts";
import { ReplyRefused } from "./reply.ts";

const id = "6f0f9a52-9c57-4a0f-8f0e-3b6d0a8f7c21";
let server: LinearService;

beforeEach(async () => {
  server = await startLinear();
});
afterEach(() => server.close());

const send = (options: { token?: string; issueId?: string; text?: string; id?: string } = {}) =>
  createLinearReply(server.apiUrl).send(
    { service: "linear", issueId: options.issueId ?? server.target.issueId },
    options.text ?? "Done.",
    {
      id: options.id ?? id,
      token: options.token ?? server.token,
      isRepeated: false,
      signal: new AbortController().signal,
    },
  );
const failureOf = (sent: Promise<unknown>): Promise<unknown> =>
  sent.then(
    () => null,
    (error: unknown) => error,
  );

it("comments on the issue under our id, with a person's key or an OAuth token", async () => {
  await expect(send()).resolves.toEqual({ id, url: "https://linear.app/acme/issue/ENG-42#comment-6f0f9a52" });
  expect(server.comments).toMatchObject([{ id, issueId: server.target.issueId, body: "Done." }]);
  await send({ token: server.oauthToken, id: "0d3f6b9f-5fd1-4f0f-8b7d-2a1a4c9e7b10" });
  expect(server.comments).toHaveLength(2);
});

it("subscribes no user to the issue, which would be an update of it", async () => {
  await send();
  expect(server.comments[0]).toMatchObject({ doNotSubscribeToIssue: true });
});

it("finds the comment of an attempt whose answer was lost, and makes no other", async () => {
  server.faults.push({ kind: "lost" });
  expect(await failureOf(send())).toMatchObject({ code: "reply_unavailable", isOpen: true });
  await expect(send()).resolves.toMatchObject({ id });
  expect(server.comments).toHaveLength(1);
});

it("takes no other issue's comment for its own", async () => {
  server.comments.push({ id, issueId: "another", body: "x" });
  const failure = await failureOf(send());
  expect(failure).toBeInstanceOf(ReplyRefused);
  expect(String(failure)).toContain("conflict on insert of Comment");
});

it("cuts what is too long in its middle", async () => {
  await send({ text: `begin ${"x".repeat(100_000)} end` });
  expect(server.comments[0]?.body.length).toBeLessThan(21_000);
  expect(server.comments[0]?.body).toMatch(/^begin [^]* end$/u);
});

describe("what passes", () => {
  const limited = JSON.stringify(linearError("Rate limit exceeded", "ratelimited").body);
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
    server.faults.push({ kind: "answer", status, body: JSON.stringify(linearError("oh", type).body) });
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
    expect(server.comments).toEqual([]);
  });
});

it("goes to the service of the target", async () => {
  const replies = createReplies({ slack: `${server.url}/api/`, linear: server.apiUrl });
  const call = { id, token: server.token, isRepeated: false, signal: new AbortController().signal };
  await replies.send(server.target, "Done.", call);
  await failureOf(replies.send({ service: "slack", channel: "C1", threadId: "1.2" }, "Done.", call));
  expect(server.calls.map(({ path }) => path)).toEqual(["/graphql", "/api/chat.postMessage"]);
});
