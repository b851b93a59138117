import type { Automation } from "../../domain/automations/automation.ts";
import { Badge } from "../elements/badge.tsx";

/** Whether triggers start anything. */
export function AutomationBadge({ automation: { paused } }: { automation: Automation }) {
  return paused ? <Badge tone="warn" label="Paused" /> : <Badge tone="good" label="Active" />;
}
