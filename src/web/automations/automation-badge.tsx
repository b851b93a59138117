import type { Automation } from "../../domain/automation.ts";
import { Badge } from "../elements/badge.tsx";

/** Whether a trigger starts anything. */
export function AutomationBadge({ automation: { paused } }: { automation: Automation }) {
  return paused ? <Badge tone="warn" label="Paused" /> : <Badge tone="good" label="Active" />;
}
