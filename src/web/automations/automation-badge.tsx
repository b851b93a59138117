import type { Automation } from "../../domain/automations/automation.ts";
import { Badge } from "../elements/badge.tsx";
import { useAutomationTexts } from "../texts/automations.ts";

/** Whether triggers start anything. */
export function AutomationBadge({ automation: { paused, alert } }: { automation: Automation }) {
  const texts = useAutomationTexts().badges;
  if (paused) return <Badge tone="warn" label={texts.paused} />;
  return alert === null ? <Badge tone="good" label={texts.active} /> : <Badge tone="bad" label={texts.silent} />;
}
