import type { SessionStatus } from "../../../domain/sessions/status.ts";
import { useElementTexts } from "../../texts/elements.ts";
import { Icon } from "../icon.tsx";

const colours: Record<SessionStatus, string> = {
  draft: "text-muted",
  queued: "text-warn",
  running: "text-accent",
  waiting: "text-warn",
  completed: "text-good",
  failed: "text-bad",
  cancelled: "text-muted",
};

/** A session's status as a lamp: a form and a colour. @param word false: it is said to screen readers alone */
export function StatusBadge({ status, word = true }: { status: SessionStatus; word?: boolean }) {
  const { statuses } = useElementTexts();
  return (
    <span className={`inline-flex shrink-0 items-center gap-1.5 text-xs font-medium ${colours[status]}`}>
      <Icon name={`lamp-${status}`} className={`size-3 ${status === "running" ? "animate-pulse" : ""}`} />
      <span className={word ? "" : "sr-only"}>{statuses[status]}</span>
    </span>
  );
}
