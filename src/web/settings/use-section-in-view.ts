import { useLocation } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState, type RefObject } from "react";
import { onReaderMove } from "../elements/reader-moves.ts";

/** Which of the sections is in view, and the way to another. */
export interface SectionInView {
  readonly current: string | undefined;
  /** Puts a section in sight, and the focus on its heading. */
  readonly open: (id: string) => void;
  /** Of what has the sections. */
  readonly content: RefObject<HTMLDivElement | null>;
}

/**
 * Follows which section is in view, and opens the one that the address names, also while the page loads: content that
 * loads above it must not push it out of sight, until the user moves on.
 * @param ids of the sections' headings, in their order
 */
export function useSectionInView(ids: readonly string[]): SectionInView {
  const hash = useLocation({ select: (location) => location.hash });
  const content = useRef<HTMLDivElement>(null);
  /** The section that was opened; null: none was, or the user moved on. */
  const opened = useRef<Opened | null>(null);
  const [current, setCurrent] = useState(ids[0]);
  const open = useCallback((id: string): void => {
    opened.current = focusOn(id, content.current);
    setCurrent(id);
  }, []);
  const all = ids.join(" ");
  useEffect(() => {
    const known = all.split(" ");
    if (known.includes(hash)) opened.current = focusOn(hash, content.current);
    const follow = (): void => {
      if (opened.current !== null && isLeft(opened.current, content.current)) opened.current = null;
      setCurrent(opened.current?.id ?? sectionInView(known));
    };
    const leaving = new AbortController();
    // Is called once at the beginning, too.
    const sizes = new ResizeObserver(() => {
      // An element that waits for the texts of another language is hidden meanwhile, and loses the focus.
      const putBack = document.activeElement === document.body ? focusOn : putInSight;
      if (opened.current !== null) opened.current = putBack(opened.current.id, content.current);
      follow();
    });
    if (content.current !== null) sizes.observe(content.current);
    addEventListener("scroll", follow, { passive: true, signal: leaving.signal });
    onReaderMove(() => (opened.current = null), leaving.signal);
    return () => {
      sizes.disconnect();
      leaving.abort();
    };
  }, [all, hash]);
  return { current, open, content };
}

interface Opened {
  readonly id: string;
  /** How far the page was scrolled for it, and how high the sections were then. */
  readonly at: number;
  readonly height: number;
}

/** Puts the focus on a heading, and the heading in sight. */
function focusOn(id: string, content: HTMLElement | null): Opened {
  document.getElementById(id)?.focus({ preventScroll: true });
  return putInSight(id, content);
}

function putInSight(id: string, content: HTMLElement | null): Opened {
  document.getElementById(id)?.scrollIntoView();
  return { id, at: scrollY, height: content?.offsetHeight ?? 0 };
}

/** Whether the page was scrolled away from it. If its height is another, the browser has scrolled it by itself. */
function isLeft({ at, height }: Opened, content: HTMLElement | null): boolean {
  // Browsers round.
  return Math.abs(scrollY - at) > 1 && content?.offsetHeight === height;
}

/** The last section that begins above a line, which goes down the window as the page is read: so each has its turn, also the last ones. */
function sectionInView(ids: readonly string[]): string | undefined {
  const room = document.documentElement.scrollHeight - innerHeight;
  const line = room > 0 ? (innerHeight * scrollY) / room : 0;
  return ids.findLast((id) => topOf(id) <= line) ?? ids[0];
}

function topOf(id: string): number {
  return document.getElementById(id)?.getBoundingClientRect().top ?? Infinity;
}
