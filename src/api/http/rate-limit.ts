import type { FastifyReply } from "fastify";
import { TooManyRequestsError } from "../../domain/errors/errors.ts";
import type { Principal } from "../../domain/people/key.ts";

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** Above this number of buckets, the full ones are deleted. */
const pruneAbove = 10_000;

/**
 * Makes a token bucket for each key, each signed-in user and each link to a session, as `createRateLimitById`.
 * @returns a function that takes a token; it throws TooManyRequestsError if the bucket is empty
 */
export function createRateLimit(
  perMinute: number,
  now: () => number = () => performance.now(),
): (principal: Principal, reply: FastifyReply) => void {
  const take = createRateLimitById(perMinute, "this key", now);
  return ({ keyId, userId, shareId, organizationId }, reply) =>
    take(keyId ?? userId ?? shareId ?? organizationId, reply);
}

/**
 * Makes a token bucket for each id: `perMinute` requests at once, refilled evenly over a minute.
 * @param who makes the requests, for the message
 * @param now a clock in milliseconds that never goes back
 * @returns a function that takes a token and sets the `RateLimit-*` headers; it throws TooManyRequestsError if the
 * bucket is empty
 */
export function createRateLimitById(
  perMinute: number,
  who: string,
  now: () => number = () => performance.now(),
): (id: string, reply: FastifyReply) => void {
  const buckets = new Map<string, Bucket>();
  const perMs = perMinute / 60_000;

  return (id, reply) => {
    const at = now();
    const bucket = buckets.get(id) ?? { tokens: perMinute, filledAt: at };
    bucket.tokens = Math.min(perMinute, bucket.tokens + (at - bucket.filledAt) * perMs);
    bucket.filledAt = at;
    buckets.set(id, bucket);
    if (buckets.size > pruneAbove) prune(buckets, at);
    const allowed = bucket.tokens >= 1;
    if (allowed) bucket.tokens -= 1;
    const resetSeconds = Math.ceil((perMinute - bucket.tokens) / perMs / 1_000);
    void reply.headers({
      "RateLimit-Limit": String(perMinute),
      "RateLimit-Remaining": String(Math.floor(bucket.tokens)),
      "RateLimit-Reset": String(resetSeconds),
    });
    if (allowed) return;
    const waitSeconds = Math.max(1, Math.ceil((1 - bucket.tokens) / perMs / 1_000));
    void reply.header("Retry-After", String(waitSeconds));
    throw new TooManyRequestsError(
      `${who} made more than ${perMinute} requests a minute: try again in ${waitSeconds} s`,
    );
  };
}

function prune(buckets: Map<string, Bucket>, at: number): void {
  for (const [id, bucket] of buckets) if (at - bucket.filledAt > 60_000) buckets.delete(id);
}
