import { useCallback, useEffect, useRef, useState, type RefObject } from "react";

/** Maximum distance in pixels from the page's end that counts as its end. */
const near = 80;
/** Keys that scroll up. */
const upKeys: ReadonlySet<string> = new Set(["ArrowUp", "PageUp", "Home"]);

/** State of `useTail`. */
export interface Tail {
  /** The element that grows. */
  readonly content: RefObject<HTMLDivElement | null>;
  /** Whether the end of the page is kept in sight. */
  readonly following: boolean;
  readonly follow: () => void;
  /** Lets go of the end, before something else is scrolled to. */
  readonly leave: () => void;
}

/**
 * Keeps the end of a growing page in sight. A reader who scrolls up, or opens something, stays there until they return
 * to the end.
 */
export function useTail(active: boolean): Tail {
  const content = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState(true);
  /** The page's last scroll position. */
  const before = useRef(0);

  useEffect(() => {
    if (!active || !following || content.current === null) return undefined;
    const toEnd = (): void => {
      scrollToEnd();
      // Its event comes later, and must not be taken for the user scrolling down.
      before.current = window.scrollY;
    };
    toEnd();
    const grown = new ResizeObserver(toEnd);
    grown.observe(content.current);
    return () => grown.disconnect();
  }, [active, following]);

  useEffect(() => {
    if (!active) return undefined;
    before.current = window.scrollY;
    const onScroll = (): void => {
      // A user who scrolls up is near the end, too, at first.
      if (window.scrollY > before.current && isAtEnd()) setFollowing(true);
      else if (window.scrollY < before.current && !isAtEnd()) setFollowing(false);
      before.current = window.scrollY;
    };
    // As soon as it is meant: a page that grows would otherwise take back each small step of a wheel or of smooth scrolling.
    const onWheel = ({ deltaY }: WheelEvent): void => {
      if (deltaY < 0 && !isWholeInSight()) setFollowing(false);
    };
    const onKey = ({ key, target }: KeyboardEvent): void => {
      const writes = target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
      if (upKeys.has(key) && !writes && !isWholeInSight()) setFollowing(false);
    };
    const onToggle = ({ target }: Event): void => {
      if (target instanceof HTMLDetailsElement && target.open) setFollowing(false);
    };
    const of = content.current;
    window.addEventListener("scroll", onScroll, { passive: true });
    window.addEventListener("wheel", onWheel, { passive: true });
    window.addEventListener("keydown", onKey);
    of?.addEventListener("toggle", onToggle, { capture: true });
    return () => {
      window.removeEventListener("scroll", onScroll);
      window.removeEventListener("wheel", onWheel);
      window.removeEventListener("keydown", onKey);
      of?.removeEventListener("toggle", onToggle, { capture: true });
    };
  }, [active]);

  return {
    content,
    following,
    follow: useCallback(() => setFollowing(true), []),
    leave: useCallback(() => setFollowing(isWholeInSight()), []),
  };
}

function isAtEnd(): boolean {
  return window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - near;
}

/** On a page that does not scroll yet, the beginning is also the end. */
function isWholeInSight(): boolean {
  return document.documentElement.scrollHeight <= window.innerHeight + near;
}

function scrollToEnd(): void {
  window.scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
}
