import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { Icon } from "../../elements/icon.tsx";
import { formatPercent } from "../../texts/formats.ts";
import { useSessionTexts } from "../../texts/session.ts";
import type { SessionView } from "../view/view.ts";
import { FoldsContext, type Folds } from "./folds.tsx";
import { Line } from "./line.tsx";
import { rowsOf, type Row } from "./rows.ts";

/** A shorter transcript is drawn whole, so that the browser finds words in all of it. */
const drawnWhole = 300;
const usualHeight = 30;

/** Messages and events of the session, in order. Only the visible part of a long one is drawn. */
export function Transcript({
  view,
  isRunning,
  isShortened,
  isAutomated,
  queued,
  onWithdraw,
}: {
  view: SessionView;
  isRunning: boolean;
  /** Whether events before were deleted. */
  isShortened: boolean;
  /** Whether an automation wrote the first message. */
  isAutomated: boolean;
  /** Ids of messages that wait for their turn. */
  queued: readonly string[];
  /** Takes such a message back; null: this person may not. */
  onWithdraw: ((messageId: string, text: string) => void) | null;
}) {
  const texts = useSessionTexts().transcript;
  const rows = useMemo(() => rowsOf(view.items), [view.items]);
  const [folds] = useState<Folds>(() => new Set());
  const first = view.items.find(({ kind }) => kind === "user");
  const list = useRef<HTMLOListElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => usualHeight,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: rows.length > drawnWhole ? 15 : drawnWhole,
    scrollMargin,
  });
  useLayoutEffect(() => {
    const top = (): void => {
      const box = list.current?.getBoundingClientRect();
      if (box !== undefined) setScrollMargin(Math.round(box.top + window.scrollY));
    };
    top();
    const resized = new ResizeObserver(top);
    resized.observe(document.body);
    return () => resized.disconnect();
  }, []);
  return (
    <FoldsContext value={folds}>
      {isShortened && <p className="text-sm text-muted">{texts.removed}</p>}
      <ol ref={list} aria-label={texts.label} className="relative" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const item = row.kind === "item" ? row.item : null;
          const isQueued = item?.kind === "user" && queued.includes(item.messageId);
          return (
            <li
              key={key}
              ref={virtualizer.measureElement}
              data-index={index}
              className={`absolute inset-x-0 top-0 ${gapAbove(rows[index - 1], row)}`}
              style={{ transform: `translateY(${start - scrollMargin}px)` }}
            >
              <Line
                row={row}
                isAutomated={isAutomated && item === first && !isShortened}
                onWithdraw={isQueued ? onWithdraw : null}
              />
            </li>
          );
        })}
      </ol>
      {view.seq === 0 && !isShortened && <p className="text-sm text-muted">{texts.loading}</p>}
      {isRunning && <AtWork view={view} />}
    </FoldsContext>
  );
}

/** Tool calls and notes are close together; messages are apart. */
function gapAbove(before: Row | undefined, row: Row): string {
  if (before === undefined) return "";
  const isSaid = ({ kind, ...rest }: Row): boolean =>
    kind === "item" && "item" in rest && ["user", "message", "refused"].includes(rest.item.kind);
  return isSaid(before) || isSaid(row) ? "pt-3" : "pt-px";
}

function AtWork({ view: { usage } }: { view: SessionView }) {
  const texts = useSessionTexts().transcript;
  const { contextUsed, contextSize } = usage;
  return (
    <p className="flex items-center gap-2 px-1.5 pt-3 text-xs text-muted">
      <span className="text-accent">
        <Icon name="lamp-running" className="size-3 animate-pulse" />
      </span>
      {texts.atWork}
      {contextUsed !== undefined && contextSize !== undefined && contextSize > 0 && (
        <span className="tabular-nums"> · {texts.context(formatPercent(contextUsed / contextSize))}</span>
      )}
    </p>
  );
}
