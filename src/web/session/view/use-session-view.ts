import { useEffect, useRef, useState } from "react";
import type { SessionEvent } from "../../../domain/sessions/event.ts";
import { client } from "../../query.ts";
import { applyEvents, emptyView, type SessionView } from "./view.ts";

/** A session's view while its events arrive. */
export interface LiveSession {
  readonly view: SessionView;
  /** False while the connection is lost and being restored. */
  readonly connected: boolean;
  readonly error: Error | null;
}

/**
 * Follows a session's events while the page is open. Events that arrive together are applied together, so that a long
 * history is drawn at once.
 * @param active whether more events may come: the stream ends with the session, and begins again after a follow-up
 * message
 * @param onNews called on events that change the session itself (status, branch, pull request)
 */
export function useSessionView(id: string, active: boolean, onNews: () => void): LiveSession {
  const [view, setView] = useState(emptyView);
  const [connected, setConnected] = useState(true);
  const [error, setError] = useState<Error | null>(null);
  const seen = useRef(0);
  const complete = useRef(false);
  const news = useRef(onNews);
  useEffect(() => {
    news.current = onNews;
  });

  useEffect(() => {
    if (!active && complete.current) return undefined;
    const ended = new AbortController();
    let waiting: SessionEvent[] = [];
    const take = (): void => {
      const events = waiting;
      waiting = [];
      setView((known) => applyEvents(known, events));
      if (events.some(isNews)) news.current();
    };
    const onConnection = (isConnected: boolean): void => {
      setConnected(isConnected);
      if (isConnected) setError(null);
    };
    const follow = async (): Promise<void> => {
      complete.current = false;
      const stream = client.streamEvents(id, { after: seen.current, signal: ended.signal, onConnection });
      for await (const event of stream) {
        seen.current = event.seq;
        // A timer, because a hidden page draws no frames.
        if (waiting.push(event) === 1) setTimeout(take, 40);
      }
      if (ended.signal.aborted) return;
      complete.current = true;
      news.current();
    };
    follow().catch((cause: unknown) => {
      if (!ended.signal.aborted) setError(cause instanceof Error ? cause : new Error(String(cause)));
    });
    return () => ended.abort();
  }, [id, active]);

  return { view, connected, error };
}

function isNews({ type }: SessionEvent): boolean {
  return (
    type === "session.status" ||
    type === "step.completed" ||
    type.startsWith("message.") ||
    type === "agent.started" ||
    type.startsWith("pullRequest.")
  );
}
