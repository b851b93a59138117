import type { Webhook } from "../../domain/webhooks/webhook.ts";
import { Badge } from "../elements/badge.tsx";
import { useWebhookTexts, type WebhookTexts } from "../texts/webhooks.ts";

/** Whether the webhook is enabled. */
export function WebhookBadge({ webhook: { enabled, disabledReason } }: { webhook: Webhook }) {
  const texts = useWebhookTexts();
  if (enabled) return <Badge tone="good" label={texts.enabled} />;
  // Offstage disabled it: its receiver needs a fix.
  return <Badge tone={disabledReason === null ? "muted" : "bad"} label={texts.disabled} />;
}

/** A webhook's events as one text. */
export function eventsText({ events }: Webhook, texts: WebhookTexts): string {
  return events.length === 0 ? texts.everyEvent : events.join(", ");
}
