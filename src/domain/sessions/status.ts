/**
 * Statuses of a session and the moves between them. The database function `move_session` (src/store/sql) checks and
 * writes every move, in one transaction with the event that reports it.
 *
 *   draft ─▶ queued ─▶ running ─▶ completed | failed | cancelled
 *              ▲          ▲▼                     │
 *              │        waiting                  │
 *              └── follow-up message or retry ◀──┘
 *
 * draft, queued, running and waiting may be cancelled. If the worker of an attempt dies, or the attempt fails for a reason that
 * passes by itself: running ─▶ queued.
 */
export const sessionStatuses = ["draft", "queued", "running", "waiting", "completed", "failed", "cancelled"] as const;
/** See `sessionStatuses`. */
export type SessionStatus = (typeof sessionStatuses)[number];

/**
 * Whether the status is `completed`, `failed` or `cancelled`: no worker works on the session until a message or a retry
 * queues it again.
 */
export function isFinal(status: SessionStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
