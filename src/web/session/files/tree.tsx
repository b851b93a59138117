import { useEffect, useRef, type KeyboardEvent } from "react";
import type { WorkspaceEntry } from "../../../domain/sessions/workspace-file.ts";
import { Icon } from "../../elements/icon.tsx";
import { formatBytes } from "../../texts/formats.ts";
import { useFilesTexts, type FilesTexts } from "../../texts/files.ts";
import { hasEntries, type Row } from "./rows.ts";

interface TreeActions {
  readonly onToggle: (path: string) => void;
  /** Loads more of a folder. */
  readonly onMore: (path: string) => void;
  /** Loads a folder again that could not be loaded. */
  readonly onRetry: (path: string) => void;
  readonly onOpen: (path: string) => void;
}

/**
 * A tree of folders and files, with the keys of such trees: arrows go through the rows and open and close folders
 * (https://www.w3.org/WAI/ARIA/apg/patterns/treeview/). It is one stop for Tab.
 */
export function Tree({
  rows,
  active,
  onActive,
  ...actions
}: TreeActions & {
  rows: readonly Row[];
  /** Key of the row that Tab leads to. */
  active: string | null;
  onActive: (key: string) => void;
}) {
  const texts = useFilesTexts();
  const tree = useRef<HTMLDivElement>(null);
  const current = rows.find(({ key }) => key === active) ?? rows[0];
  const isBack = useRef(active !== null);
  useEffect(() => {
    // Whoever comes back from a file goes on at it. The rows above it may still be loading.
    if (!isBack.current || current?.key !== active) return;
    isBack.current = false;
    if (document.activeElement === document.body) focusOn(tree.current, active);
  }, [active, current]);
  const place = useRef(0);
  useEffect(() => {
    const at = rows.findIndex(({ key }) => key === active);
    if (at !== -1) place.current = at;
    else if (active !== null && !isBack.current && document.activeElement === document.body) {
      // The row that had the focus has made way for what it loaded.
      const next = rows[Math.min(place.current, rows.length - 1)];
      if (next === undefined) return;
      onActive(next.key);
      focusOn(tree.current, next.key);
    }
  }, [rows, active, onActive]);
  const go = (row: Row | undefined): void => {
    if (row === undefined) return;
    onActive(row.key);
    focusOn(tree.current, row.key);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (current === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = rows.indexOf(current);
    const isFolder = current.kind === "entry" && hasEntries(current.entry) && current.entry.path !== null;
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => go(rows[at + 1]),
      ArrowUp: () => go(rows[at - 1]),
      Home: () => go(rows[0]),
      End: () => go(rows.at(-1)),
      ArrowRight() {
        if (!isFolder) return;
        if (!current.isOpen) activate(current, actions);
        else if ((rows[at + 1]?.level ?? 0) > current.level) go(rows[at + 1]);
      },
      ArrowLeft() {
        if (isFolder && current.isOpen) activate(current, actions);
        else go(rows.find(({ key }) => key === current.parent));
      },
      Enter: () => activate(current, actions),
      " ": () => activate(current, actions),
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    move();
  };
  return (
    <>
      <div ref={tree} role="tree" aria-label={texts.tree} className="text-sm">
        {rows.map((row) => (
          <div
            key={row.key}
            role="treeitem"
            data-key={row.key}
            tabIndex={row === current ? 0 : -1}
            aria-level={row.level}
            {...(row.kind === "entry" && {
              "aria-posinset": row.position,
              "aria-setsize": row.count,
              ...(hasEntries(row.entry) && row.entry.path !== null && { "aria-expanded": row.isOpen }),
              ...(!isOpenable(row.entry) && { "aria-disabled": true }),
            })}
            className="flex min-h-7 cursor-pointer items-center gap-1.5 rounded px-1 -outline-offset-2 hover:bg-sunken aria-disabled:cursor-default"
            style={{ paddingInlineStart: `${(Math.min(row.level, deepest) - 1) * 1 + 0.25}rem` }}
            onClick={() => {
              onActive(row.key);
              activate(row, actions);
            }}
            onKeyDown={onKeyDown}
            onFocus={() => onActive(row.key)}
          >
            {row.kind === "entry" ? <EntryRow row={row} /> : <OtherRow row={row} />}
          </div>
        ))}
      </div>
      {/* An alert within a row would be no part of its name. */}
      <output className="sr-only">{rows.map((row) => (row.kind === "failed" ? failureOf(row, texts) : ""))}</output>
    </>
  );
}

/** Deeper folders are not set in any further: there would be no room for names. */
const deepest = 12;

function focusOn(tree: HTMLElement | null, key: string): void {
  const row = [...(tree?.children ?? [])].find((child) => child instanceof HTMLElement && child.dataset["key"] === key);
  if (row instanceof HTMLElement) row.focus();
}

function isOpenable({ path, type }: WorkspaceEntry): boolean {
  return path !== null && type !== "other";
}

function activate(row: Row, { onToggle, onMore, onRetry, onOpen }: TreeActions): void {
  if (row.kind === "more") onMore(row.parent);
  else if (row.kind === "failed") onRetry(row.parent);
  else if (row.kind === "entry" && isOpenable(row.entry) && row.entry.path !== null) {
    if (hasEntries(row.entry)) onToggle(row.entry.path);
    else onOpen(row.entry.path);
  }
}

function EntryRow({ row: { entry, isOpen } }: { row: Extract<Row, { kind: "entry" }> }) {
  const texts = useFilesTexts();
  const { name, type, bytes, change, path } = entry;
  return (
    <>
      {hasEntries(entry) ? (
        <Icon name="chevron" className={`size-3 shrink-0 text-muted ${isOpen ? "rotate-90" : ""}`} />
      ) : (
        <Icon name={type === "file" ? "file" : "other"} className="size-3 shrink-0 text-muted" />
      )}
      <bdi
        className={`min-w-0 font-mono text-xs break-all ${isOpenable(entry) ? "" : "text-muted"}`}
        title={path === null ? texts.unnamed : undefined}
      >
        {name}
      </bdi>
      {type !== "folder" && type !== "file" && <span className="text-xs text-muted">{texts.types[type]}</span>}
      {change !== null && (
        <span className={`text-xs font-medium ${change === "added" ? "text-good" : "text-warn"}`}>
          {texts.changes[change]}
        </span>
      )}
      {bytes !== null && <span className="ms-auto shrink-0 text-xs text-muted tabular-nums">{formatBytes(bytes)}</span>}
    </>
  );
}

function failureOf({ error }: Extract<Row, { kind: "failed" }>, texts: FilesTexts): string {
  return texts.failed(error.message.replace(/\.$/u, ""));
}

function OtherRow({ row }: { row: Exclude<Row, { kind: "entry" }> }) {
  const texts = useFilesTexts();
  if (row.kind === "failed") {
    return <span className="text-xs text-bad">{failureOf(row, texts)}</span>;
  }
  const words = { loading: texts.loading, more: texts.more, empty: texts.noFilesIn, cut: texts.cut };
  return <span className={`text-xs ${row.kind === "more" ? "underline" : "text-muted"}`}>{words[row.kind]}</span>;
}
