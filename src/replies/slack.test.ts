import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SlackService, startSlack } from "../../test/replies/slack-service.ts";
import { ReplyRefused, ReplyUnavailable } from "./reply.ts";
import { createSlackReply } from "./slack.ts";

const id = "6f0f9a52-9c57-4a0f-8f0e-3b6d0a8f7c21";
let server: SlackService;

beforeEach(async () => {
  server = await startSlack();
});
afterEach(() => server.close());

const send = (
  options: { isRepeated?: boolean; token?: string; signal?: AbortSignal; text?: string; channel?: string } = {},
) =>
  createSlackReply(server.apiUrl).send(
    { ...server.target, channel: options.channel ?? "C1" },
    options.text ?? "Done.",
    {
      id,
      token: options.token ?? server.token,
      isRepeated: options.isRepeated ?? false,
      signal: options.signal ?? new AbortController().signal,
    },
  );
const failureOf = (sent: Promise<unknown>): Promise<unknown> =>
  sent.then(
    () => null,
    (error: unknown) => error,
  );
const says = (body: object, status = 200, headers = {}) =>
  ({ kind: "answer", status, headers, body: JSON.stringify(body) }) as const;

it("writes into the thread once, and gives the message's id", async () => {
  await expect(send()).resolves.toEqual({ id: "200.000001", url: null });
  expect(server.calls).toHaveLength(1);
  expect(server.calls[0]).toMatchObject({
    headers: { "content-type": "application/json; charset=utf-8" },
    body: { channel: "C1", thread_ts: server.target.threadId, text: "Done.", unfurl_links: false },
  });
});

it("lets nothing in an agent's words call people", async () => {
  await send({ text: "<!channel> & <@U1> a > b" });
  expect(server.thread[1]?.text).toBe("&lt;!channel&gt; &amp; &lt;@U1&gt; a &gt; b");
  expect(server.calls[0]?.body).toMatchObject({ mrkdwn: false, parse: "none", link_names: false });
});

it("links an address on a line of its own, and shows it as it is", async () => {
  await send({
    text: "Done.\n\nhttps://offstage.example/sessions/1?a=1&b=2\nsee https://a.example\nhttps://a.example|@channel",
  });
  expect(server.thread[1]?.text.split("\n").slice(2)).toEqual([
    "<https://offstage.example/sessions/1?a=1&amp;b=2>",
    "see https://a.example",
    "https://a.example|@channel",
  ]);
});

it("cuts what is too long in its middle, and keeps both ends", async () => {
  await send({ text: `begin ${"x".repeat(50_000)} end` });
  expect(server.thread[1]?.text.length).toBeLessThanOrEqual(4_000);
  expect(server.thread[1]?.text).toMatch(/^begin [^]* end$/u);
});

describe("an attempt whose answer was lost", () => {
  it("is found by the next one, and written once", async () => {
    server.faults.push({ kind: "lost" });
    expect(await failureOf(send())).toMatchObject({ code: "reply_unavailable", isOpen: true });
    await expect(send({ isRepeated: true })).resolves.toEqual({ id: "200.000001", url: null });
    expect(server.thread).toHaveLength(2);
  });
  it("is found on a later page of a long thread", async () => {
    server.thread.push(...Array.from({ length: 450 }, (_, index) => ({ ts: `150.${index}`, text: "talk" })));
    await send();
    await expect(send({ isRepeated: true })).resolves.toEqual({ id: "200.000451", url: null });
    expect(server.thread).toHaveLength(452);
  });
  it("is written if it never arrived", async () => {
    server.faults.push({ kind: "answer", status: 503, body: "" });
    await failureOf(send());
    await expect(send({ isRepeated: true })).resolves.toEqual({ id: "200.000001", url: null });
    expect(server.thread).toHaveLength(2);
  });
  it("is never written twice because the thread can't be read", async () => {
    server.faults.push(says({ ok: false, error: "missing_scope", needed: "channels:history", provided: "chat:write" }));
    const failure = await failureOf(send({ isRepeated: true }));
    expect(failure).toBeInstanceOf(ReplyRefused);
    expect(String(failure)).toContain("missing_scope: the app needs the scope channels:history");
    server.faults.push({ kind: "answer", status: 429, headers: { "retry-after": "30" }, body: "" });
    expect(await failureOf(send({ isRepeated: true }))).toMatchObject({ isOpen: true, retryAfterMs: 30_000 });
    expect(server.thread).toHaveLength(1);
  });
});

describe("what passes", () => {
  it("is a rate limit, with the time that Slack asks for", async () => {
    server.faults.push(says({ ok: false, error: "ratelimited" }, 429, { "retry-after": "7" }));
    const failure = await failureOf(send());
    expect(failure).toBeInstanceOf(ReplyUnavailable);
    expect(failure).toMatchObject({ isOpen: false, retryAfterMs: 7_000 });
  });
  it("asks for an hour at most", async () => {
    server.faults.push({ kind: "answer", status: 429, headers: { "retry-after": "999999" }, body: "" });
    expect(await failureOf(send())).toMatchObject({ retryAfterMs: 3_600_000 });
  });
  it.each([
    ["fatal_error", true],
    ["internal_error", true],
    ["ratelimited", false],
    ["team_added_to_org", false],
  ])("is %s, of which Slack may have written the message: %s", async (error, isOpen) => {
    server.faults.push(says({ ok: false, error }));
    expect(await failureOf(send())).toMatchObject({
      code: "reply_unavailable",
      isOpen,
      message: `Slack did not take the reply: ${error}`,
    });
  });
  it.each([
    [502, "<html>"],
    [200, "<html>"],
    [200, "null"],
    [200, '{"ok":true}'],
  ])("is an answer %s with %s", async (status, body) => {
    server.faults.push({ kind: "answer", status, body });
    expect(await failureOf(send())).toMatchObject({ code: "reply_unavailable", isOpen: true });
  });
  it("is a Slack that can't be reached: nothing was written", async () => {
    await server.close();
    expect(await failureOf(send())).toMatchObject({ code: "reply_unavailable", isOpen: false });
  });
});

describe("what does not pass", () => {
  it.each([
    ["a wrong token", { token: "xoxb-wrong" }, "invalid_auth: give the automation the app's present bot token"],
    ["a channel that the app is not in", { channel: "C2" }, "channel_not_found: invite the app"],
  ])("is %s, with what to do", async (_, options, words) => {
    const failure = await failureOf(send(options));
    expect(failure).toBeInstanceOf(ReplyRefused);
    expect(String(failure)).toContain(words);
    expect(String(failure)).not.toContain("xoxb");
  });
  it("is any error that is not known to pass, and a redirect, which gets no token", async () => {
    server.faults.push(says({ ok: false, error: "restricted_action_thread_locked" }));
    expect(await failureOf(send())).toBeInstanceOf(ReplyRefused);
    server.faults.push({ kind: "answer", status: 302, headers: { location: `${server.url}/elsewhere` }, body: "" });
    expect(await failureOf(send())).toBeInstanceOf(ReplyRefused);
    expect(server.calls.map(({ path }) => path)).not.toContain("/elsewhere");
  });
});

it("stops on request", async () => {
  server.faults.push({ kind: "hang" });
  const controller = new AbortController();
  const failure = failureOf(send({ signal: controller.signal }));
  await expect.poll(() => server.calls).toHaveLength(1);
  controller.abort(new Error("the worker stops"));
  expect(await failure).toEqual(new Error("the worker stops"));
});
