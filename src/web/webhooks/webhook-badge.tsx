import type { Webhook } from "../../domain/webhook.ts";
import { Badge } from "../elements/badge.tsx";

/** Whether it is told anything. */
export function WebhookBadge({ webhook: { enabled, disabledReason } }: { webhook: Webhook }) {
  if (enabled) return <Badge tone="good" label="Enabled" />;
  // Offstage did it, and somebody has to mend something.
  return <Badge tone={disabledReason === null ? "muted" : "bad"} label="Disabled" />;
}

export function eventsText({ events }: Webhook): string {
  return events.length === 0 ? "everything" : events.join(", ");
}
