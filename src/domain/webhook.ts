import { z } from "zod";

/** What an address can be told of. */
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
  "pullRequest.opened",
  "pullRequest.merged",
  "pullRequest.closed",
] as const;
/** Sent when somebody asks for it, whatever a webhook's events are. */
export const testEvent = "webhook.test";

const urlSchema = z
  .string()
  .max(2_000)
  .refine((value) => /^https?:$/u.test(urlOf(value)?.protocol ?? ""), "must be an http:// or https:// address")
  .refine(
    (value) => `${urlOf(value)?.username ?? ""}${urlOf(value)?.password ?? ""}` === "",
    "must not have credentials in it: the signature proves who sends",
  );

function urlOf(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null;
}

const eventsSchema = z
  .array(z.enum(webhookEvents))
  .transform((given) => webhookEvents.filter((event) => given.includes(event)));

export const createWebhookSchema = z.object({
  url: urlSchema,
  events: eventsSchema.default([]).meta({ description: "Default: all." }),
});
export const updateWebhookSchema = z.object({
  url: urlSchema.optional(),
  events: eventsSchema.optional(),
  enabled: z.boolean().optional(),
});

export const webhookSchema = z.object({
  id: z.uuid(),
  url: z.string(),
  events: z.array(z.enum(webhookEvents)),
  enabled: z.boolean(),
  disabledReason: z.string().nullable().meta({ description: "Why Offstage disabled it." }),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
export type Webhook = z.infer<typeof webhookSchema>;

/** As creation and rotation answer it, once. */
export const createdWebhookSchema = webhookSchema.extend({
  secret: z.string().meta({ description: "Signs deliveries. Never shown again." }),
});

export const deliveryStatuses = ["pending", "delivered", "dead"] as const;
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
export type Delivery = z.infer<typeof deliverySchema>;

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
export type DeliveryDetail = z.infer<typeof deliveryDetailSchema>;

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
/** Pauses after the first attempt, the second and so on: some 24 hours in all. */
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
 * How long to wait after so many attempts, in milliseconds; null where it was the last.
 * @param chance 0 to 1: those that failed together don't come back together
 */
export function retryPauseMs(attempts: number, chance: number): number | null {
  const pause = pausesMs[attempts - 1];
  return pause === undefined ? null : Math.round(pause * (0.9 + 0.2 * chance));
}
