import type { EventContext } from "../domain/automations/automation.ts";
import type { Verification } from "../domain/automations/trigger.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { parseExactly } from "../domain/fields/exact-json.ts";
import { compressedProblem } from "./compressed.ts";
import { idWithBody, type InboundDelivery } from "./delivery.ts";
import { hasHmac, hasStandardSignature } from "./signatures.ts";

/**
 * Headers in which senders send a delivery's id, the same if they send it again: Standard Webhooks, by Svix's own name
 * too, the header of the draft for idempotent requests (GitLab's too), GitHub, Gitea, Forgejo, Bitbucket, and Shopify.
 */
const idHeaders = [
  "webhook-id",
  "svix-id",
  "idempotency-key",
  "x-github-delivery",
  "x-gitea-delivery",
  "x-forgejo-delivery",
  "x-request-uuid",
  "x-shopify-webhook-id",
] as const;
const longestId = 500;

/**
 * Whether a delivery to a webhook is signed as it must be.
 * @param now ms since the epoch
 */
export function verifyWebhook(
  verification: Verification,
  delivery: InboundDelivery,
  secrets: readonly string[],
  now: number,
): boolean {
  switch (verification.type) {
    case "none":
      return true;
    case "hmac":
      return hasHmac(delivery.headers[verification.header], delivery.body, secrets, verification);
    case "standardWebhooks":
      return hasStandardSignature(delivery, secrets, now);
  }
}

/** The sender's id of a delivery; null if there is none. */
export function webhookDeliveryId({ headers, body }: InboundDelivery): string | null {
  const given = idHeaders.map((name) => headers[name]).find((value) => value !== undefined && value !== "");
  if (given !== undefined) return given.length > longestId ? null : given;
  const setOffBy = headers["x-gitlab-event-uuid"];
  return setOffBy === undefined || setOffBy === "" || setOffBy.length > longestId ? null : idWithBody(setOffBy, body);
}

/**
 * Reads a delivery of any sender: JSON, whatever its content type says, or a form. A value that is no object is put
 * into the field `body`.
 * @throws InvalidInputError if it is neither
 */
export function readWebhook({ headers, body }: InboundDelivery): EventContext {
  if (body.length === 0) return {};
  const text = decoded(headers, body);
  const isForm = headers["content-type"]?.toLowerCase().startsWith("application/x-www-form-urlencoded") === true;
  try {
    const value = parseExactly(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as EventContext) : { body: value };
  } catch (error) {
    if (isForm) return Object.fromEntries(new URLSearchParams(text));
    throw unreadable(headers, "must be JSON, or a form (application/x-www-form-urlencoded)", error);
  }
}

function decoded(headers: InboundDelivery["headers"], body: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch (error) {
    throw unreadable(headers, "must be UTF-8", error);
  }
}

function unreadable(headers: InboundDelivery["headers"], problem: string, cause: unknown): InvalidInputError {
  return new InvalidInputError(`the body: ${compressedProblem(headers) ?? problem}`, { cause });
}
