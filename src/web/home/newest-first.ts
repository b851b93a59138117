import type { SessionDetail } from "../../domain/sessions/session.ts";

/** Sessions that were read so far, newest first. */
export interface Read {
  readonly sessions: readonly SessionDetail[];
  /** Cursor of the next older page; null: there is none. */
  readonly next: string | null;
}

/** The known list with its newest page replaced: items newer than the page's end that are not in it are removed. */
export function withNewest(known: Read | undefined, newest: Read): Read {
  const last = newest.sessions.at(-1);
  if (known === undefined || last === undefined || newest.next === null) return newest;
  const at = known.sessions.findIndex(({ id }) => id === last.id);
  // So much is new that the page does not reach what is known.
  if (at === -1 && !known.sessions.some((session) => newest.sessions.some(({ id }) => id === session.id)))
    return newest;
  const older = known.sessions.filter((session) => isOlder(session, last));
  return { sessions: [...newest.sessions, ...older], next: older.length === 0 ? newest.next : known.next };
}

function isOlder(session: SessionDetail, than: SessionDetail): boolean {
  return session.createdAt < than.createdAt || (session.createdAt === than.createdAt && session.id < than.id);
}
