import type { SourceAccount, SourceEvent } from "../../domain/automations/source-event.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { InboundDelivery, ReadDelivery } from "../delivery.ts";
import { hasHmac, isRecent } from "../signatures.ts";
import {
  at,
  contentKey,
  deliveryIdOf,
  listAt,
  type Payload,
  prose,
  proseAt,
  readPayload,
  requiredText,
  textAt,
} from "./payload.ts";
import { readableText } from "./slack-text.ts";
import { deliveryOf, type SourceHappening, type Source, type SourceSample } from "./source.ts";

const sampleFrame: Payload = {
  team_id: "T061EG9R6",
  api_app_id: "A0KRD7HC3",
  type: "event_callback",
  event_time: 1_787_140_800,
  is_ext_shared_channel: false,
  authorizations: [
    { enterprise_id: null, team_id: "T061EG9R6", user_id: "U0LAN0Z89", is_bot: true, is_enterprise_install: false },
  ],
};
const sampleMessage = {
  user: "U061F7AUR",
  team: "T061EG9R6",
  channel: "C0LAN2Q65",
  client_msg_id: "5f1b7f3e-2f5d-4d7e-9b0a-7d0c5f0e1a2b",
};
const samples: readonly SourceSample[] = [
  {
    event: "mention",
    title: "The app was mentioned",
    headers: { "content-type": "application/json" },
    payload: {
      ...sampleFrame,
      event_id: "Ev0LAN670R",
      event: {
        type: "app_mention",
        ...sampleMessage,
        text: "<@U0LAN0Z89> please fix <https://example.com/issues/7|the crash> on empty files",
        ts: "1787140800.000100",
        event_ts: "1787140800.000100",
      },
    },
  },
  {
    event: "message.posted",
    title: "A reply in a thread of a channel",
    headers: { "content-type": "application/json" },
    payload: {
      ...sampleFrame,
      event_id: "Ev0LAN671S",
      event: {
        type: "message",
        ...sampleMessage,
        channel_type: "channel",
        text: "It fails only if a &lt; b, see <#C0LAN2Q66|errors>",
        ts: "1787140860.000200",
        event_ts: "1787140860.000200",
        thread_ts: "1787140800.000100",
        parent_user_id: "U061F7AUR",
      },
    },
  },
  {
    event: "message.postedByBot",
    title: "Another app's message in a channel",
    headers: { "content-type": "application/json" },
    payload: {
      ...sampleFrame,
      event_id: "Ev0LAN672T",
      event: {
        type: "message",
        subtype: "bot_message",
        bot_id: "B19LU7CSY",
        app_id: "A0MONITOR",
        username: "monitor",
        channel: "C0LAN2Q65",
        channel_type: "channel",
        text: "Checkout answers 500",
        ts: "1787140920.000300",
        event_ts: "1787140920.000300",
      },
    },
  },
];

/**
 * Slack, by the Events API of an app (https://docs.slack.dev/apis/events-api/). A message that mentions the app comes as
 * `app_mention` and, if the app listens to the channel, as `message`: one happening, so both have the same content key. Messages
 * of the app itself are no events, since their answers would be the next ones.
 */
export const slack: Source = { name: "slack", reader: { verify, read, handshake }, samples };

/** https://docs.slack.dev/authentication/verifying-requests-from-slack: at most five minutes old. */
function verify({ headers, body }: InboundDelivery, secrets: readonly string[], now: number): boolean {
  const time = headers["x-slack-request-timestamp"] ?? "";
  if (!/^\d{1,12}$/u.test(time) || !isRecent(Number(time) * 1_000, now)) return false;
  const signed = Buffer.concat([Buffer.from(`v0:${time}:`), body]);
  const options = { algorithm: "sha256", encoding: "hex", prefix: "v0=" } as const;
  return hasHmac(headers["x-slack-signature"], signed, secrets, options);
}

/** Longest challenge that is sent back; Slack's have about 50 characters. */
const longestChallenge = 500;

/** Slack confirms an address by a text that it wants back: https://docs.slack.dev/reference/events/url_verification. */
function handshake(delivery: InboundDelivery): { contentType: string; body: string } | null {
  const payload = payloadOf(delivery);
  if (textAt(payload, "type") !== "url_verification") return null;
  const challenge = requiredText(payload, "challenge");
  if (challenge.length > longestChallenge) throw new InvalidInputError("challenge is longer than any of Slack");
  return { contentType: "text/plain; charset=utf-8", body: challenge };
}

function payloadOf(delivery: InboundDelivery): Payload {
  if (/^application\/x-www-form-urlencoded\b/iu.test(delivery.headers["content-type"] ?? "")) {
    throw new InvalidInputError(
      "the body is a form: this address takes Slack's event subscriptions, not slash commands or interactivity",
    );
  }
  return readPayload(delivery);
}

function read(delivery: InboundDelivery): ReadDelivery {
  const payload = payloadOf(delivery);
  if (requiredText(payload, "type") !== "event_callback") return deliveryOf(null, []);
  const happening = happeningOf(payload);
  // The same if Slack tries again (`X-Slack-Retry-Num`).
  return deliveryOf(deliveryIdOf(requiredText(payload, "event_id")), happening === null ? [] : [happening]);
}

/** Kinds of messages that people and programs write; the others are about channels, or changed and deleted messages. */
const written = new Set([null, "file_share", "thread_broadcast", "me_message", "bot_message"]);

function happeningOf(payload: Payload): SourceHappening | null {
  const type = requiredText(payload, "event", "type");
  if (type !== "message" && type !== "app_mention") return null;
  const data = at(payload, "event");
  if (!written.has(textAt(data, "subtype")) || at(data, "hidden") === true || isOwn(payload)) return null;
  const user = userOf(data);
  const name = user?.isBot === true ? "message.postedByBot" : type === "app_mention" ? "mention" : "message.posted";
  const message = messageOf(payload, user);
  const event: SourceEvent = { name, source: "slack", actor: user, message, payload: withoutToken(payload) };
  return {
    event,
    contentKey: contentKey("slack", message.channel, message.id),
    subject: `slack:${message.channel}:${message.threadId}`,
  };
}

function messageOf(payload: Payload, user: SourceAccount | null): NonNullable<SourceEvent["message"]> {
  const data = at(payload, "event");
  const id = requiredText(payload, "event", "ts");
  const threadId = textAt(data, "thread_ts") ?? id;
  return {
    id,
    text: readableText(markupOf(data), botUserOf(payload)),
    channel: requiredText(payload, "event", "channel"),
    channelType: textAt(data, "channel_type"),
    threadId,
    isReply: threadId !== id,
    isShared: at(payload, "is_ext_shared_channel") === true,
    team: textAt(payload, "team_id"),
    user,
  };
}

/**
 * The payload without Slack's old verification token, by which apps that don't check signatures still know Slack: no event may
 * carry a credential to an agent.
 */
function withoutToken({ token: _token, ...payload }: Payload): Payload {
  return payload;
}

/** A message's markup: its text, or that of its attachments, in which many programs have all that they say. */
function markupOf(data: unknown): string {
  const text = proseAt(data, "text");
  if (text !== "") return text;
  const parts = listAt(data, "attachments").map((attachment) => {
    const lines = ["pretext", "title", "text"].map((name) => proseAt(attachment, name)).filter((line) => line !== "");
    return lines.length === 0 ? proseAt(attachment, "fallback") : lines.join("\n");
  });
  return prose(parts.join("\n\n"));
}

/** Whether the app to which Slack sent this wrote the message. */
function isOwn(payload: Payload): boolean {
  const app = textAt(payload, "api_app_id");
  const authors = [textAt(payload, "event", "app_id"), textAt(payload, "event", "bot_profile", "app_id")];
  if (app !== null && authors.includes(app)) return true;
  const user = textAt(payload, "event", "user");
  return user !== null && user === botUserOf(payload);
}

/** The app's own user; null if Slack doesn't say. */
function botUserOf(payload: Payload): string | null {
  const own = listAt(payload, "authorizations").find((authorization) => at(authorization, "is_bot") === true);
  return textAt(own, "user_id");
}

function userOf(data: unknown): SourceAccount | null {
  const user = textAt(data, "user");
  const bot = textAt(data, "bot_id");
  const id = user ?? bot;
  if (id === null) return null;
  const isBot = bot !== null || textAt(data, "subtype") === "bot_message" || user === "USLACKBOT";
  return { id, name: textAt(data, "username") ?? textAt(data, "user_profile", "display_name"), isBot };
}
