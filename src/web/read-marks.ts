import { useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { SessionDetail } from "../domain/sessions/session.ts";
import { client, useMe } from "./query.ts";

let opened: BroadcastChannel | null = null;
/** Notifies the other tabs of this browser of what was marked as read: a session's id, or null for all. */
const tabs = (): BroadcastChannel => (opened ??= new BroadcastChannel("offstage-read-marks"));

/** The unread sessions of the signed-in user. */
export interface Unread {
  readonly count: number;
  /** Whether there are more than were counted. */
  readonly more: boolean;
}

/** How many ended sessions the signed-in user has not looked at; null: unknown, or there is no user. */
export function useUnread(): Unread | null {
  const queries = useQueryClient();
  const isPerson = useMe().data?.userId != null;
  const unread = useQuery({ queryKey: ["unread"], queryFn: () => client.session.unread(), enabled: isPerson });
  useEffect(() => {
    const onRead = ({ data }: MessageEvent<string | null>): void => showRead(queries, data);
    tabs().addEventListener("message", onRead);
    return () => tabs().removeEventListener("message", onRead);
  }, [queries]);
  return unread.data ?? null;
}

/**
 * Marks a session as looked at by the signed-in user, and has all tabs of this browser show it. @param id null: all
 * ended ones
 */
export async function markRead(queries: QueryClient, id: string | null): Promise<void> {
  await (id === null ? client.session.markAllRead() : client.session.markRead(id));
  showRead(queries, id);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of one origin, and takes no other argument
  tabs().postMessage(id);
}

/** Marks an ended session as looked at while its page is visible. It is never unread for anyone but its requester. */
export function useReadWhileSeen({ id, unread }: SessionDetail): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (!unread) return undefined;
    const mark = (): void => {
      // A failed mark is retried when the page is visible again.
      if (!document.hidden) markRead(queries, id).catch(() => undefined);
    };
    mark();
    document.addEventListener("visibilitychange", mark);
    return () => document.removeEventListener("visibilitychange", mark);
  }, [queries, id, unread]);
}

function showRead(queries: QueryClient, id: string | null): void {
  const asRead = (session: SessionDetail): SessionDetail =>
    id === null || id === session.id ? { ...session, unread: false } : session;
  queries.setQueriesData<{ readonly sessions: readonly SessionDetail[] }>({ queryKey: ["sessions"] }, (known) =>
    known === undefined ? undefined : { ...known, sessions: known.sessions.map(asRead) },
  );
  if (id !== null) queries.setQueryData<SessionDetail>(["session", id], (known) => known && asRead(known));
  // Answers that are on their way may still have the marks.
  for (const queryKey of [["sessions"], ["unread"]]) void queries.invalidateQueries({ queryKey });
}
