import { z } from "zod";
import { text } from "../fields/text.ts";
import { shortened } from "../time/backoff.ts";

/** Events of which a webhook can be notified. */
export const webhookEvents = [
  "session.draft",
  "session.queued",
  "session.running",
  "session.waiting",
  "session.completed",
  "session.failed",
  "session.cancelled",
  "job.pending",
  "job.running",
  "job.completed",
  "job.failed",
  "job.cancelled",
  "pullRequest.opened",
  "pullRequest.merged",
  "pullRequest.closed",
  "pullRequest.conflicted",
  "automation.paused",
  "automation.silent",
  "automation.recovered",
] as const;
/** Event of a test delivery, sent on request to a webhook whatever events it is for. */
export const testEvent = "webhook.test";

const urlSchema = text(2_000)
  .refine((value) => /^https?:$/u.test(URL.parse(value)?.protocol ?? ""), "must be an http:// or https:// address")
  .refine(
    (value) => `${URL.parse(value)?.username ?? ""}${URL.parse(value)?.password ?? ""}` === "",
    "must not contain credentials: the signature proves who the sender is",
  );

const eventsSchema = z
  .array(z.enum(webhookEvents))
  .transform((given) => webhookEvents.filter((event) => given.includes(event)));

/** Body of a webhook's creation. */
export const createWebhookSchema = z.object({
  url: urlSchema,
  events: eventsSchema.default([]).meta({ description: "Default: all." }),
});
/** Body of an update of a webhook: fields that are not sent keep their value. */
export const updateWebhookSchema = z.object({
  url: urlSchema.optional(),
  events: eventsSchema.optional(),
  enabled: z.boolean().optional(),
});

/** A webhook as the API shows it: without its secret. */
export const webhookSchema = z.object({
  id: z.uuid(),
  url: z.string(),
  // Not the enum: while a fleet is upgraded, a newer node may have stored events that this one does not know.
  events: z.array(z.string()).meta({ description: "Those of creation; a newer Offstage may have more. Empty: all." }),
  enabled: z.boolean(),
  disabledReason: z.string().nullable().meta({ description: "Why Offstage disabled it." }),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `webhookSchema`. */
export type Webhook = z.infer<typeof webhookSchema>;

/** Answer to a webhook's creation and to a rotation of its secret: the only answers that contain the secret. */
export const createdWebhookSchema = webhookSchema.extend({
  secret: z.string().meta({ description: "Signs deliveries. Never shown again." }),
});

/** Statuses of a delivery; `dead`: the last attempt failed. */
export const deliveryStatuses = ["pending", "delivered", "dead"] as const;
/** A delivery: one event sent, or to be sent, to one webhook. */
export const deliverySchema = z.object({
  id: z.uuid().meta({ description: "The header webhook-id; the same for every attempt." }),
  webhookId: z.uuid(),
  type: z.string(),
  status: z.enum(deliveryStatuses),
  attempts: z.number().int(),
  nextAttemptAt: z.iso.datetime().nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `deliverySchema`. */
export type Delivery = z.infer<typeof deliverySchema>;

/** A delivery with its body and its attempts. */
export const deliveryDetailSchema = deliverySchema.extend({
  data: z.record(z.string(), z.unknown()),
  log: z.array(
    z.object({
      at: z.iso.datetime(),
      durationMs: z.number().int(),
      status: z.number().int().nullable().meta({ description: "HTTP status of the answer." }),
      error: z.string().nullable(),
    }),
  ),
});
/** See `deliveryDetailSchema`. */
export type DeliveryDetail = z.infer<typeof deliveryDetailSchema>;

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
/** Pause after each failed attempt, from the first on: some 24 hours in all. */
const pausesMs = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  hour,
  2 * hour,
  3 * hour,
  4 * hour,
  6 * hour,
  7 * hour,
];

/**
 * How long to wait before the next attempt, in ms; null if the attempt was the last.
 * @param attempts attempts made, from 1
 */
export function retryPauseMs(attempts: number): number | null {
  const pause = pausesMs[attempts - 1];
  return pause === undefined ? null : Math.round(shortened(pause, 0.1));
}
