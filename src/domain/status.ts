/**
 * Statuses of a session and the moves between them. `moveSession` in src/store writes every move, in one transaction
 * with the event that reports it.
 *
 *   draft ─▶ queued ─▶ running ─▶ completed | failed | cancelled
 *              ▲          ▲▼                     │
 *              │        waiting                  │
 *              └── follow-up message or retry ◀──┘
 *
 * draft, queued, running and waiting may be cancelled. If the worker of an attempt dies: running ─▶ queued.
 */
export const sessionStatuses = ["draft", "queued", "running", "waiting", "completed", "failed", "cancelled"] as const;
/** See `sessionStatuses`. */
export type SessionStatus = (typeof sessionStatuses)[number];

const moves: Readonly<Record<SessionStatus, readonly SessionStatus[]>> = {
  draft: ["queued", "cancelled"],
  queued: ["running", "cancelled"],
  running: ["completed", "failed", "cancelled", "waiting", "queued"],
  waiting: ["running", "cancelled"],
  completed: ["queued"],
  failed: ["queued"],
  cancelled: ["queued"],
};

/** Whether a session may go from one status to the other. */
export function canMove(from: SessionStatus, to: SessionStatus): boolean {
  return moves[from].includes(to);
}

/**
 * Whether the status is `completed`, `failed` or `cancelled`: no worker works on the session until a message or a retry
 * queues it again.
 */
export function isFinal(status: SessionStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
