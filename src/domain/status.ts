/**
 * The life of a session. Every move is written by one function of the store, with the event that tells of it.
 *
 *   draft ─▶ queued ─▶ running ─▶ completed | failed | cancelled
 *              ▲          ▲▼                     │
 *              │        waiting                  │
 *              └── follow-up message or retry ◀──┘
 *
 * draft, queued, running and waiting may be cancelled. A run whose worker died goes running ─▶ queued.
 */
export const sessionStatuses = ["draft", "queued", "running", "waiting", "completed", "failed", "cancelled"] as const;
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

export function canMove(from: SessionStatus, to: SessionStatus): boolean {
  return moves[from].includes(to);
}

export function isFinal(status: SessionStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
