import { useSyncExternalStore } from "react";

interface Announcement {
  readonly text: string;
  readonly number: number;
}

let current: Announcement | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();
const shownMs = 6_000;

/** Announces an action in a corner of the page, and to screen readers. The next text replaces it. */
export function announce(text: string): void {
  show({ text, number: (current?.number ?? 0) + 1 });
  clearTimeout(timer);
  timer = setTimeout(() => show(null), shownMs);
}

function show(announcement: Announcement | null): void {
  current = announcement;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The element that shows and announces messages of `announce`; the frame has one. */
export function Announcements() {
  const shown = useSyncExternalStore(subscribe, () => current);
  return (
    <output className="pointer-events-none fixed inset-x-0 bottom-4 z-30 flex justify-center px-4 print:hidden">
      {shown !== null && (
        <span key={shown.number} className="max-w-xl rounded-md bg-ink px-3 py-2 text-sm text-ground shadow-lg">
          {shown.text}
        </span>
      )}
    </output>
  );
}
