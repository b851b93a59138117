import { Webhook, WebhookVerificationError } from "standardwebhooks";
import type { WebhookEvent } from "./schema.ts";

export { WebhookVerificationError };

/**
 * Checks that a delivery came from the server and is not older than five minutes (Standard Webhooks).
 * @param body as it arrived, byte for byte
 * @param headers of the request, their names in lower case
 * @param secret that the webhook was created with: `whsec_…`
 * @throws WebhookVerificationError
 */
export function verifyWebhook(
  body: string,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  secret: string,
): WebhookEvent {
  const of = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    return typeof value === "string" ? value : "";
  };
  const signed = Object.fromEntries(
    ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => [name, of(name)]),
  );
  return new Webhook(secret).verify(body, signed) as WebhookEvent;
}
