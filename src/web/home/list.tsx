import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { useNow } from "../elements/time.tsx";
import { formatRecentDay, formatWeekday } from "../texts/formats.ts";

/** The properties of a list's rows. */
export interface ListOf {
  readonly label: string;
  readonly sessions: readonly SessionDetail[];
  readonly children: (session: SessionDetail) => ReactNode;
}

/** A short list, drawn whole. */
export function ShortList({ label, sessions, children }: ListOf) {
  return (
    <ul aria-label={label} className="divide-y divide-line border-y border-line">
      {sessions.map((session) => (
        <li key={session.id}>{children(session)}</li>
      ))}
    </ul>
  );
}

/** Of a row without a day above it, in pixels, until it is measured. */
const usualHeight = 45;
/** Rows before the end from which on older ones are loaded. */
const nearEnd = 15;

/**
 * A list as long as may be, of which only what is in sight is drawn; with the days as headings.
 * @param wanted id of the session that the focus is to come to; null: none
 */
export function LongList({
  label,
  sessions,
  children,
  wanted,
  hasMore,
  loadMore,
}: ListOf & { readonly wanted: string | null; readonly hasMore: boolean; readonly loadMore: () => void }) {
  const list = useRef<HTMLUListElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  const virtualizer = useWindowVirtualizer({
    count: sessions.length,
    estimateSize: () => usualHeight,
    getItemKey: (index) => sessions[index]?.id ?? index,
    overscan: 10,
    scrollMargin,
  });
  // The content above the list changes its height.
  useLayoutEffect(() => {
    const top = (): void => setScrollMargin(list.current?.offsetTop ?? 0);
    top();
    const resized = new ResizeObserver(top);
    resized.observe(document.body);
    return () => resized.disconnect();
  }, []);
  const rows = virtualizer.getVirtualItems();
  const last = rows.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasMore && last >= sessions.length - nearEnd) loadMore();
  }, [hasMore, last, sessions.length, loadMore]);
  const wantedIndex = wanted === null ? -1 : sessions.findIndex(({ id }) => id === wanted);
  useEffect(() => {
    if (wantedIndex !== -1) virtualizer.scrollToIndex(wantedIndex, { align: "auto" });
  }, [virtualizer, wantedIndex]);
  return (
    <ul ref={list} aria-label={label} className="relative" style={{ height: virtualizer.getTotalSize() }}>
      {rows.map(({ index, key, start }) => {
        const session = sessions[index];
        if (session === undefined) return null;
        return (
          <li
            key={key}
            ref={virtualizer.measureElement}
            data-index={index}
            aria-setsize={hasMore ? -1 : sessions.length}
            aria-posinset={index + 1}
            className="absolute inset-x-0 top-0 border-b border-line"
            style={{ transform: `translateY(${start - scrollMargin}px)` }}
          >
            <DayHeading session={session} before={sessions[index - 1]} />
            {children(session)}
          </li>
        );
      })}
    </ul>
  );
}

const dayMs = 86_400_000;

/** The day of a session, if it is another than that of the one before. */
function DayHeading({ session, before }: { session: SessionDetail; before: SessionDetail | undefined }) {
  const now = useNow(60_000);
  const day = startOfDay(session.createdAt);
  if (before !== undefined && startOfDay(before.createdAt) === day) return null;
  const daysAgo = Math.round((startOfDay(now) - day) / dayMs);
  return (
    <h3 className="label border-b border-line px-3 pt-5 pb-1.5">
      {daysAgo === 0 || daysAgo === 1 ? formatRecentDay(daysAgo) : formatWeekday(session.createdAt)}
    </h3>
  );
}

function startOfDay(at: string | number): number {
  return new Date(at).setHours(0, 0, 0, 0);
}
