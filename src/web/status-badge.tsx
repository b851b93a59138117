import type { SessionStatus } from "../domain/status.ts";

const looks: Record<SessionStatus, { label: string; className: string }> = {
  draft: { label: "Draft", className: "bg-sunken text-muted" },
  queued: { label: "Queued", className: "bg-warn-soft text-warn" },
  running: { label: "Running", className: "bg-accent-soft text-accent" },
  waiting: { label: "Waiting", className: "bg-warn-soft text-warn" },
  completed: { label: "Completed", className: "bg-good-soft text-good" },
  failed: { label: "Failed", className: "bg-bad-soft text-bad" },
  cancelled: { label: "Cancelled", className: "bg-sunken text-muted" },
};

export function StatusBadge({ status }: { status: SessionStatus }) {
  const { label, className } = looks[status];
  return (
    <span
      className={`inline-flex shrink-0 items-center gap-1.5 rounded-full px-2.5 py-0.5 text-xs font-medium ${className}`}
    >
      <span aria-hidden className={`size-1.5 rounded-full bg-current ${status === "running" ? "animate-pulse" : ""}`} />
      {label}
    </span>
  );
}
