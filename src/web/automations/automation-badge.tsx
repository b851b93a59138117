import type { Automation } from "../../domain/automations/automation.ts";
import { Badge } from "../elements/badge.tsx";

/** Whether triggers start anything. */
export function AutomationBadge({ automation: { paused, alert } }: { automation: Automation }) {
  if (paused) return <Badge tone="warn" label="Paused" />;
  return alert === null ? <Badge tone="good" label="Active" /> : <Badge tone="bad" label="Silent" />;
}
