import { AnsiUp } from "ansi_up";
import { lazy, Suspense, useState } from "react";
import { CopyButton } from "../elements/copy-button.tsx";
import type { ToolCall as Tool } from "./session-view.ts";

const FileChange = lazy(() => import("./diff.tsx").then(({ FileChange: component }) => ({ default: component })));

const marks: Record<string, string> = {
  read: "▤",
  edit: "✎",
  delete: "✕",
  move: "⇄",
  search: "⌕",
  execute: "❯",
  think: "…",
  fetch: "↓",
};
const states: Record<Tool["status"], { word: string; className: string }> = {
  pending: { word: "waiting", className: "text-muted" },
  in_progress: { word: "running", className: "text-accent" },
  completed: { word: "done", className: "text-muted" },
  failed: { word: "failed", className: "text-bad" },
  stopped: { word: "stopped", className: "text-warn" },
};

/** A tool call. Folded: its title and state; unfolded: also its input and output. */
export function ToolCall({ tool }: { tool: Tool }) {
  const [open, setOpen] = useState(false);
  const state = states[tool.status];
  const isDone = tool.status === "completed";
  return (
    <details className="card group text-sm" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="flex cursor-pointer list-none items-center gap-2 px-3 py-2 -outline-offset-2 hover:bg-sunken">
        <span aria-hidden className="w-4 text-center text-muted">
          {marks[tool.kind] ?? "•"}
        </span>
        <span className="min-w-0 flex-1 truncate font-mono text-[0.85em]">{tool.title}</span>
        <span className={isDone ? "sr-only" : `text-xs ${state.className}`}>{state.word}</span>
        <span aria-hidden className="text-muted group-open:rotate-90">
          ›
        </span>
      </summary>
      {open && <ToolDetail tool={tool} />}
    </details>
  );
}

function ToolDetail({ tool }: { tool: Tool }) {
  const places = tool.locations
    .map(({ path, line }) => (line === undefined ? inWorkspace(path) : `${inWorkspace(path)}:${line}`))
    .filter((place) => !place.endsWith(tool.title));
  const input = inputOf(tool);
  const isEmpty = input === null && tool.content.length === 0 && places.length === 0;
  return (
    <div className="space-y-2 border-t border-line p-3">
      {places.length > 0 && <p className="font-mono text-xs break-all text-muted">{places.join(", ")}</p>}
      {input !== null && <Output label="Input" text={input} />}
      {tool.content.map((content, index) =>
        content.type === "text" ? (
          <Output key={index} label="Output" text={content.text} />
        ) : (
          <Suspense key={index} fallback={<p className="text-muted">Loading the change …</p>}>
            <FileChange path={content.path} before={content.oldText} after={content.newText} />
          </Suspense>
        ),
      )}
      {isEmpty && <p className="text-muted">Nothing to show.</p>}
    </div>
  );
}

/** Terminal output with its colours. The library escapes HTML in it. */
function Output({ label, text }: { label: string; text: string }) {
  const ansi = new AnsiUp();
  ansi.use_classes = true;
  return (
    <figure>
      <figcaption className="flex items-baseline gap-3 text-xs text-muted">
        <span className="mr-auto">{label}</span>
        <CopyButton text={text} what={`the ${label.toLowerCase()}`} className="cursor-pointer hover:text-ink" />
      </figcaption>
      <pre
        tabIndex={0}
        aria-label={label}
        className="mt-1 max-h-96 overflow-auto rounded-md bg-sunken p-2 font-mono text-xs whitespace-pre-wrap break-words"
        dangerouslySetInnerHTML={{ __html: ansi.ansi_to_html(text) }}
      />
    </figure>
  );
}

/** Removes the workspace's path in the sandbox. */
function inWorkspace(path: string): string {
  return path.replace(/^.*\/sessions\/[0-9a-f-]{36}\/workspace\//u, "");
}

/** The input, without what the title or the diff already shows. */
function inputOf({ input, title, content }: Tool): string | null {
  if (input === undefined || content.some(({ type }) => type === "diff")) return null;
  let value: unknown;
  try {
    value = JSON.parse(input);
  } catch {
    // Cut in the middle, or not JSON: shown unchanged.
    return input;
  }
  const all = typeof value === "object" && value !== null ? Object.values(value) : [value];
  const isShown = all.every((each) => typeof each === "string" && each.endsWith(title));
  return isShown ? null : JSON.stringify(value, null, 2);
}
