import type { Webhook } from "../../domain/webhooks/webhook.ts";
import { Badge } from "../elements/badge.tsx";

/** Whether the webhook is enabled. */
export function WebhookBadge({ webhook: { enabled, disabledReason } }: { webhook: Webhook }) {
  if (enabled) return <Badge tone="good" label="Enabled" />;
  // Offstage disabled it: its receiver needs a fix.
  return <Badge tone={disabledReason === null ? "muted" : "bad"} label="Disabled" />;
}

/** A webhook's events as one text. */
export function eventsText({ events }: Webhook): string {
  return events.length === 0 ? "everything" : events.join(", ");
}
