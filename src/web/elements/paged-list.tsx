import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef, type FocusEvent, type ReactNode } from "react";
import { useElementTexts } from "../texts/elements.ts";
import { ErrorText, Loading } from "./notice.tsx";

/** A list loaded page by page, with its loading, error and empty states. */
export function PagedList<Page extends { readonly nextCursor: string | null }, Item>({
  label,
  queryKey,
  readPage,
  itemsOf,
  empty,
  refreshMs,
  className = "card divide-y divide-line",
  children,
}: {
  label: string;
  queryKey: readonly string[];
  readPage: (cursor: string | undefined) => Promise<Page>;
  itemsOf: (page: Page) => readonly Item[];
  /** Shown if the list is empty. */
  empty: ReactNode;
  /** Interval of reloads while the page is visible; default: reload only after changes made here. */
  refreshMs?: number;
  className?: string;
  /** Renders a row: a list item with its key. */
  children: (item: Item) => ReactNode;
}) {
  const texts = useElementTexts();
  const list = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => readPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.nextCursor ?? undefined,
    refetchInterval: refreshMs ?? false,
  });
  const found = list.data?.pages.flatMap(itemsOf);
  const focus = useKeptFocus();
  const rows = useRef<HTMLUListElement>(null);
  /** How many rows there were when more were asked for. */
  const asked = useRef<number | null>(null);
  useEffect(() => {
    if (asked.current === null || list.isFetchingNextPage || list.hasNextPage) return;
    // The button that had the focus is gone with the last page, whose first row comes next.
    const row = rows.current?.children[asked.current];
    asked.current = null;
    if (document.activeElement !== document.body || !(row instanceof HTMLElement)) return;
    row.tabIndex = -1;
    row.focus();
  });
  return (
    <>
      <ErrorText error={list.error} />
      {found === undefined && list.error === null && <Loading lines={6} />}
      {found === undefined && list.error !== null && (
        <button type="button" className="button" onClick={() => void list.refetch()}>
          {texts.tryAgain}
        </button>
      )}
      {found?.length === 0 && (
        <div {...focus} className="card px-4 py-12 text-center text-muted outline-none">
          {empty}
        </div>
      )}
      {found !== undefined && found.length > 0 && (
        <ul
          {...focus}
          ref={(shown) => {
            focus.ref(shown);
            rows.current = shown;
          }}
          aria-label={label}
          className={`outline-none ${className}`}
        >
          {found.map(children)}
        </ul>
      )}
      {list.hasNextPage && (
        // Not disabled while loading, because it would lose the focus.
        <button
          type="button"
          className="button"
          aria-busy={list.isFetchingNextPage}
          onClick={() => {
            if (list.isFetchingNextPage) return;
            asked.current = found?.length ?? 0;
            void list.fetchNextPage();
          }}
        >
          {texts.showMore}
        </button>
      )}
    </>
  );
}

/** Attributes of an element that takes the focus when what had it inside of it is gone, such as the row of something that was deleted. */
function useKeptFocus() {
  const element = useRef<HTMLElement>(null);
  const hasFocus = useRef(false);
  useEffect(() => {
    if (hasFocus.current && document.activeElement === document.body) element.current?.focus({ preventScroll: true });
  });
  return {
    ref: (shown: HTMLElement | null) => void (element.current = shown),
    tabIndex: -1,
    onFocus: () => void (hasFocus.current = true),
    // A button that is disabled or gone did not give it to anything else.
    onBlur: ({ target }: FocusEvent) => void (hasFocus.current = !target.isConnected || target.matches(":disabled")),
  };
}
