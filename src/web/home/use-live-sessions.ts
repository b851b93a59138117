import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { client } from "../query.ts";
import type { Read } from "./newest-first.ts";

/** Shortest time between two reads of the lists, in ms: many sessions may change at once. */
const readAgainMs = 1_000;

/**
 * Keeps the lists of sessions current while the page is visible. A session whose change leaves it in its place is
 * updated there; any other change makes the lists be read again.
 */
export function useLiveSessions(): void {
  const queries = useQueryClient();
  useEffect(() => {
    let ended = new AbortController();
    const begin = (): void => {
      ended.abort();
      // A hidden page takes none of the few connections that a browser has for a server.
      if (document.hidden) return;
      ended = new AbortController();
      void follow(queries, ended.signal);
    };
    begin();
    document.addEventListener("visibilitychange", begin);
    return () => {
      document.removeEventListener("visibilitychange", begin);
      ended.abort();
    };
  }, [queries]);
}

async function follow(queries: QueryClient, signal: AbortSignal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const readAgain = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      for (const queryKey of [["sessions"], ["unread"]]) void queries.invalidateQueries({ queryKey });
    }, readAgainMs);
  };
  try {
    for await (const change of client.streamSessions({ signal })) {
      if (change.type !== "session" || !replace(queries, change.session)) readAgain();
    }
  } catch (error) {
    // If the user is signed out, the lists show it.
    if (!signal.aborted && error instanceof Error) readAgain();
  } finally {
    if (signal.aborted) clearTimeout(timer);
  }
}

/** Replaces a session in all lists. @returns false if that does not do: it is in no list, or belongs into others now */
function replace(queries: QueryClient, session: SessionDetail): boolean {
  let isKnown = false;
  let isMoved = false;
  for (const [key, read] of queries.getQueriesData<Read>({ queryKey: ["sessions"] })) {
    const index = read?.sessions.findIndex(({ id }) => id === session.id) ?? -1;
    const before = read?.sessions[index];
    if (read === undefined || before === undefined) continue;
    isKnown = true;
    isMoved ||= placeOf(before) !== placeOf(session);
    queries.setQueryData<Read>(key, { ...read, sessions: read.sessions.with(index, asSeenBefore(before, session)) });
  }
  return isKnown && !isMoved;
}

/** All that decides in which lists a session is, and whether its end is unread. */
function placeOf({ status, attention, archivedAt, labels, finishedAt }: SessionDetail): string {
  return JSON.stringify([status, attention, archivedAt, labels, finishedAt]);
}

/** A stream is the same for all users: it has neither the queue's length, nor a user's read marks. */
function asSeenBefore(before: SessionDetail, session: SessionDetail): SessionDetail {
  return session.status === "queued"
    ? { ...session, queuePosition: session.queuePosition ?? before.queuePosition }
    : { ...session, unread: before.unread && session.finishedAt === before.finishedAt };
}
