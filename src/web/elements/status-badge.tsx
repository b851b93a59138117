import type { SessionStatus } from "../../domain/sessions/status.ts";
import { Badge, type Tone } from "./badge.tsx";

const looks: Record<SessionStatus, { label: string; tone: Tone }> = {
  draft: { label: "Draft", tone: "muted" },
  queued: { label: "Queued", tone: "warn" },
  running: { label: "Running", tone: "accent" },
  waiting: { label: "Waiting", tone: "warn" },
  completed: { label: "Completed", tone: "good" },
  failed: { label: "Failed", tone: "bad" },
  cancelled: { label: "Cancelled", tone: "muted" },
};

/** Badge of a session's status. */
export function StatusBadge({ status }: { status: SessionStatus }) {
  return <Badge {...looks[status]} moving={status === "running"} />;
}

/** A status as people read it. */
export function statusLabel(status: SessionStatus): string {
  return looks[status].label;
}
