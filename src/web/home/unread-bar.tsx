import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { announce } from "../elements/announce.tsx";
import { UnreadDot } from "../elements/unread-dot.tsx";
import { markRead, type Unread } from "../read-marks.ts";
import { formatNumber } from "../texts/formats.ts";
import { useHomeTexts } from "../texts/home.ts";

/** How many are unread, as it stands in the list's head and in the page's title. */
export function formatUnread({ count, more }: Unread): string {
  return `${formatNumber(count)}${more ? "+" : ""}`;
}

/** Marks all sessions that are over as looked at, and says so, or why not. */
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

/** In the list's head: how many sessions are unread, and what marks them all as read; nothing if none is. */
export function UnreadBar({ unread }: { unread: Unread | null }) {
  const texts = useHomeTexts().unread;
  const readAll = useReadAll();
  if (unread === null || unread.count === 0) return null;
  return (
    <div className="flex items-center gap-2">
      <p className="flex items-center gap-2 text-sm font-medium tabular-nums">
        <UnreadDot />
        {texts.count(formatUnread(unread))}
      </p>
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
