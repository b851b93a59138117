import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { objectAt } from "./payload.ts";
import { slack } from "./slack.ts";
import { readableText } from "./slack-text.ts";

const [mention, reply, bot] = slack.samples.map(({ payload }) => payload);
const json = (payload: object | undefined) => ({
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(payload)),
});
const read = (payload: object | undefined) => slack.reader.read(json(payload));
const withEvent = (payload: object | undefined, changes: object) => ({
  ...payload,
  event: { ...objectAt(payload, "event"), ...changes },
});
const namesOf = (payload: object | undefined) => read(payload).events.map(({ name }) => name);

describe("the signature", () => {
  // https://docs.slack.dev/authentication/verifying-requests-from-slack
  const time = 1_531_420_618;
  const headers = {
    "x-slack-request-timestamp": String(time),
    "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
  };
  const body = Buffer.from(
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
  );
  const secrets = ["8f742231b10e8888abcd99yyyzzz85a5"];

  it("that Slack publishes is taken for five minutes", () => {
    expect(slack.reader.verify({ headers, body }, secrets, time * 1_000)).toBe(true);
    expect(slack.reader.verify({ headers, body }, secrets, (time + 300) * 1_000)).toBe(true);
    expect(slack.reader.verify({ headers, body }, secrets, (time + 301) * 1_000)).toBe(false);
    expect(slack.reader.verify({ headers, body }, secrets, (time - 301) * 1_000)).toBe(false);
  });
  it("is over the time too", () => {
    const later = { ...headers, "x-slack-request-timestamp": String(time + 1) };
    expect(slack.reader.verify({ headers: later, body }, secrets, time * 1_000)).toBe(false);
  });
  it("is refused with a time that is no number of seconds, although it was signed", () => {
    const odd = `${time}.0`;
    const forged = createHmac("sha256", secrets[0] ?? "")
      .update(`v0:${odd}:`)
      .update(body)
      .digest("hex");
    const signed = { "x-slack-request-timestamp": odd, "x-slack-signature": `v0=${forged}` };
    expect(slack.reader.verify({ headers: signed, body }, secrets, time * 1_000)).toBe(false);
  });
});

describe("the handshake", () => {
  it("gives Slack's challenge back, and is no event", () => {
    const payload = {
      token: "t",
      challenge: "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
      type: "url_verification",
    };
    expect(slack.reader.handshake?.(json(payload))).toEqual({
      contentType: "text/plain; charset=utf-8",
      body: payload.challenge,
    });
    expect(read(payload)).toEqual({ deliveryId: null, events: [] });
    expect(slack.reader.handshake?.(json(mention))).toBeNull();
  });
  it("refuses what is no challenge of Slack", () => {
    const payload = { type: "url_verification", challenge: "x".repeat(501) };
    expect(() => slack.reader.handshake?.(json(payload))).toThrow(InvalidInputError);
    expect(() => slack.reader.handshake?.(json({ type: "url_verification" }))).toThrow("challenge must be a text");
  });
});

it("refuses slash commands and interactive components with the way out", () => {
  const form = {
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: Buffer.from("command=%2Ffix&text=it"),
  };
  expect(() => slack.reader.read(form)).toThrow("event subscriptions, not slash commands");
  expect(() => slack.reader.handshake?.(form)).toThrow(InvalidInputError);
});

it("gives a mention's fields, without the mention", () => {
  expect(read(mention)).toMatchObject({
    deliveryId: "Ev0LAN670R",
    events: [
      {
        name: "mention",
        subject: "slack:C0LAN2Q65:1787140800.000100",
        event: {
          actor: { id: "U061F7AUR", name: null, isBot: false },
          message: {
            text: "please fix the crash (https://example.com/issues/7) on empty files",
            channel: "C0LAN2Q65",
            threadId: "1787140800.000100",
            isReply: false,
            isShared: false,
          },
        },
      },
    ],
  });
});

it("knows a mention and the message that it is as one happening", () => {
  const message = withEvent(mention, { type: "message", channel_type: "channel" });
  const [one] = read(mention).events;
  const [other] = read({ ...message, event_id: "Ev0LAN999Z" }).events;
  expect(other?.name).toBe("message.posted");
  expect(other?.contentKey).toBe(one?.contentKey);
  expect(read(withEvent(mention, { ts: "1787140800.000101" })).events[0]?.contentKey).not.toBe(one?.contentKey);
});

it("carries no verification token of Slack's to an agent", () => {
  const [event] = read({ ...mention, token: "one-long-verification-token" }).events;
  expect(event?.event["payload"]).toEqual(mention);
});

it("gives all replies of a thread the subject of the thread", () => {
  expect(read(reply).events[0]).toMatchObject({
    subject: read(mention).events[0]?.subject,
    event: { message: { isReply: true, text: "It fails only if a < b, see #errors" } },
  });
});

it("hears nothing of what the app itself wrote, however Slack says so", () => {
  expect(namesOf(reply)).toEqual(["message.posted"]);
  expect(namesOf(withEvent(reply, { bot_id: "B1", app_id: "A0KRD7HC3" }))).toEqual([]);
  expect(namesOf(withEvent(reply, { bot_id: "B1", bot_profile: { app_id: "A0KRD7HC3" } }))).toEqual([]);
  expect(namesOf(withEvent(reply, { user: "U0LAN0Z89" }))).toEqual([]);
  expect(namesOf(withEvent(mention, { bot_id: "B1", app_id: "A0KRD7HC3" }))).toEqual([]);
});

it("hears other bots only under a name of their own, mentions included", () => {
  expect(namesOf(bot)).toEqual(["message.postedByBot"]);
  expect(namesOf(withEvent(reply, { bot_id: "B1", app_id: "A2" }))).toEqual(["message.postedByBot"]);
  expect(namesOf(withEvent(mention, { bot_id: "B1", app_id: "A2" }))).toEqual(["message.postedByBot"]);
  expect(namesOf(withEvent(reply, { user: "USLACKBOT" }))).toEqual(["message.postedByBot"]);
});

it("reads a program's message in its attachments, if that is where it is", () => {
  const attachments = [
    { fallback: "Checkout is down", title: "<https://status.example|Checkout>", text: "answers 500" },
    { fallback: "see the log" },
  ];
  const [event] = read(withEvent(bot, { text: "", attachments })).events;
  expect(event?.event["message"]).toMatchObject({
    text: "Checkout (https://status.example)\nanswers 500\n\nsee the log",
  });
});

it("hears files and replies that are sent to the channel too, and nothing of edits, deletions and people who join", () => {
  for (const subtype of ["file_share", "thread_broadcast", "me_message"]) {
    expect(namesOf(withEvent(reply, { subtype }))).toEqual(["message.posted"]);
  }
  for (const subtype of ["message_changed", "message_deleted", "message_replied", "channel_join", "channel_topic"]) {
    expect(namesOf(withEvent(reply, { subtype }))).toEqual([]);
  }
  expect(namesOf(withEvent(reply, { type: "reaction_added" }))).toEqual([]);
  expect(namesOf({ type: "app_rate_limited", team_id: "T061EG9R6" })).toEqual([]);
});

it.each([
  ["a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"],
  ["<@U1> and <@U2|sam>", "@U1 and @sam"],
  ["<#C1> <#C2|general>", "#C1 #general"],
  ["<!here> <!subteam^S1|@team> <!date^1392734382^{date}|Feb 18>", "@here @team Feb 18"],
  ["<https://a.example/x?y=1&amp;z=2>", "https://a.example/x?y=1&z=2"],
  ["<https://a.example|a &lt;b>", "a <b (https://a.example)"],
  ["<mailto:sam@a.example|sam@a.example>", "sam@a.example"],
  ["&lt;!channel&gt;", "<!channel>"],
  ["a < b", "a < b"],
])("reads %j as %j", (markup, text) => {
  expect(readableText(markup, null)).toBe(text);
});

it("leaves out the app's mention at the beginning only", () => {
  expect(readableText(" <@U1|app>  fix this", "U1")).toBe("fix this");
  expect(readableText("ask <@U1>", "U1")).toBe("ask @U1");
  expect(readableText("<@U12> hi", "U1")).toBe("@U12 hi");
});
