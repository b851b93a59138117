import { createHmac } from "node:crypto";
import type { Database } from "../../database/database.ts";
import { retryPauseMs } from "../../domain/webhooks/webhook.ts";
import { createClaimLoop } from "../../lifecycle/claim-loop.ts";
import type { Service } from "../../lifecycle/service.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Logger } from "../../observability.ts";
import type { Proxies } from "../../outbound/proxies.ts";
import type { Vault } from "../../store/secrets/vault.ts";
import {
  claimDeliveries,
  disableWebhook,
  finishAttempt,
  type AttemptResult,
  type ClaimedDelivery,
} from "../../store/webhooks/deliveries.ts";
import { postTo, type PostResult } from "./http-post.ts";

/** Dependencies for sending webhooks. */
export interface WebhookSenderOptions {
  readonly database: Database;
  readonly vault: Vault;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "deliveryAttempted" | "deliveriesDied">;
  readonly publicUrl: () => string;
  /** Hosts in private networks that the operator allows webhooks to be sent to. */
  readonly privateHosts: readonly string[];
  /** The operator's proxies, which this process uses; none if omitted. */
  readonly proxies?: Proxies;
}

const pollEveryMs = 1_000;
/** Parallel deliveries: of all webhooks, and of one webhook, whose receiver may be slow. */
const concurrency = 32;
const concurrencyOfOne = 4;
const timeLimitMs = 15_000;
/** Longer than an attempt can take: if the lease has expired, the sender died, and another may take the delivery. */
const leaseMs = 60_000;
const gone = 410;

/**
 * Makes the sender of the outbox's webhook deliveries, by Standard Webhooks (https://www.standardwebhooks.com): each at least
 * once, with an id that stays the same over attempts. Any number of senders may run at the same time.
 * `stop` settles when the deliveries under way have ended.
 */
export function createWebhookSender(options: WebhookSenderOptions): Service {
  const { database, logger } = options;
  return createClaimLoop<ClaimedDelivery>({
    atOnce: concurrency,
    everyMs: pollEveryMs,
    claim: (underWay) => {
      const counts = Map.groupBy(underWay, ({ webhookId }) => webhookId);
      const busy = [...counts].filter(([, all]) => all.length >= concurrencyOfOne).map(([id]) => id);
      return claimDeliveries(database, { limit: concurrencyOfOne, leaseMs, busy });
    },
    work: (delivery, hurry) => send(options, delivery, hurry),
    graceMs: 0,
    onClaimFailure: (error) => logger.warn({ err: error }, "could not claim webhook deliveries; will retry"),
    onWorkFailure: (error, { id }) => logger.warn({ err: error, deliveryId: id }, "could not deliver a webhook"),
  });
}

async function send(options: WebhookSenderOptions, delivery: ClaimedDelivery, stopping: AbortSignal): Promise<void> {
  const { database, vault, metrics } = options;
  const secret = await vault.open(delivery.webhookId, delivery.secret).catch(async (error: Error) => {
    const unsigned = { status: null, error: error.message, retryAfterMs: null };
    await finish(options, delivery, unsigned, 0);
    return null;
  });
  if (secret === null) return;
  const body = bodyOf(delivery, options.publicUrl());
  const startedAt = performance.now();
  const posted = await postTo(delivery.url, {
    body,
    headers: {
      "content-type": "application/json",
      ...signedHeaders(delivery.id, Math.floor(Date.now() / 1_000), body, secret),
    },
    privateHosts: options.privateHosts,
    ...(options.proxies !== undefined && { proxies: options.proxies }),
    signal: AbortSignal.any([stopping, AbortSignal.timeout(timeLimitMs)]),
  });
  // This server stopped, the receiver did not answer: the delivery is due again when its lease expires.
  if (stopping.aborted && posted.status === null) return;
  await finish(options, delivery, posted, performance.now() - startedAt);
  if (posted.status !== gone) return;
  metrics.deliveriesDied(await disableWebhook(database, delivery.webhookId, "its address answered 410 Gone"));
}

async function finish(
  { database, metrics }: WebhookSenderOptions,
  delivery: ClaimedDelivery,
  posted: PostResult,
  durationMs: number,
): Promise<void> {
  const { status, error } = posted;
  const outcome = outcomeOf(delivery, posted);
  const result: AttemptResult = { durationMs: Math.round(durationMs), status, error };
  const counts = await finishAttempt(database, delivery, result, outcome);
  const answered = status === null ? "unanswered" : "refused";
  metrics.deliveryAttempted(outcome === "delivered" ? outcome : answered, durationMs / 1_000);
  if (outcome === "dead" && counts) metrics.deliveriesDied(1);
}

function outcomeOf({ attempts }: ClaimedDelivery, { status, retryAfterMs }: PostResult) {
  if (status !== null && status >= 200 && status < 300) return "delivered";
  const pauseMs = status === gone ? null : retryPauseMs(attempts);
  return pauseMs === null ? "dead" : { retryMs: Math.max(pauseMs, retryAfterMs ?? 0) };
}

/** The body of a delivery, identical at every attempt. */
function bodyOf({ type, data, createdAt, organizationId }: ClaimedDelivery, publicUrl: string): string {
  const sessionId = type.startsWith("session.") ? data["id"] : data["sessionId"];
  const htmlUrl = typeof sessionId === "string" ? { sessionHtmlUrl: `${publicUrl}/sessions/${sessionId}` } : {};
  return JSON.stringify({ type, timestamp: createdAt.toISOString(), data: { organizationId, ...data, ...htmlUrl } });
}

/**
 * The headers of Standard Webhooks, with an HMAC-SHA256 signature over id, time and body.
 * @param at seconds since 1970
 * @param secret `whsec_` followed by base64
 */
export function signedHeaders(id: string, at: number, body: string, secret: string): Record<string, string> {
  const key = Buffer.from(secret.replace(/^whsec_/u, ""), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${at}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": String(at), "webhook-signature": `v1,${signature}` };
}
