import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { announce } from "../elements/announce.tsx";
import { UnreadDot } from "../elements/sessions/unread-dot.tsx";
import { markRead, type Unread } from "../read-marks.ts";
import { formatNumber } from "../texts/formats.ts";
import { useHomeTexts } from "../texts/home.ts";
import { useSessionFilter } from "./filter.ts";

/** How many are unread, as shown in the list's head and in the page's title. */
export function formatUnread({ count, more }: Unread): string {
  return `${formatNumber(count)}${more ? "+" : ""}`;
}

/** Marks all ended sessions as read, and announces that, or the error. */
export function useReadAll(): () => void {
  const texts = useHomeTexts().unread;
  const queries = useQueryClient();
  return useCallback(() => {
    markRead(queries, null).then(
      () => announce(texts.allRead),
      (error: Error) => announce(error.message),
    );
  }, [queries, texts]);
}

/** @returns a function that narrows the list to what is unread, or no longer */
export function useOnlyUnread(): () => void {
  const [filter, change] = useSessionFilter();
  return () => change({ unread: filter.unread === true ? undefined : true });
}

/** In the list's head: how many sessions are unread, which narrows the list to them, and what marks them all as read; nothing if none is. */
export function UnreadBar({ unread }: { unread: Unread | null }) {
  const texts = useHomeTexts().unread;
  const readAll = useReadAll();
  const [filter] = useSessionFilter();
  const onlyUnread = useOnlyUnread();
  if (unread === null || unread.count === 0) return null;
  return (
    <div className="flex items-center gap-2">
      <button
        type="button"
        className="button button-quiet tabular-nums aria-pressed:bg-accent-soft"
        aria-pressed={filter.unread === true}
        onClick={onlyUnread}
      >
        <UnreadDot />
        {texts.count(formatUnread(unread))}
      </button>
      <button
        type="button"
        className="button button-quiet"
        onClick={() => {
          // The button is gone then, and the focus must not be lost with it.
          document.getElementById("main")?.focus({ preventScroll: true });
          readAll();
        }}
      >
        {texts.readAll}
      </button>
    </div>
  );
}
