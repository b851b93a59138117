import { AnsiUp } from "ansi_up";
import { lazy, Suspense, useState } from "react";
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
};

/** A tool call, folded: its title and state; unfolded, what it was given and what came out. */
export function ToolCall({ tool }: { tool: Tool }) {
  const [open, setOpen] = useState(false);
  const state = states[tool.status];
  return (
    <details className="card group text-sm" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="flex cursor-pointer list-none items-center gap-2 px-3 py-2 hover:bg-sunken">
        <span aria-hidden className="w-4 text-center text-muted">
          {marks[tool.kind] ?? "•"}
        </span>
        <span className="min-w-0 flex-1 truncate font-mono text-[0.85em]">{tool.title}</span>
        <span className={`text-xs ${state.className}`}>{state.word}</span>
        <span aria-hidden className="text-muted group-open:rotate-90">
          ›
        </span>
      </summary>
      {open && <ToolDetail tool={tool} />}
    </details>
  );
}

function ToolDetail({ tool }: { tool: Tool }) {
  const isEmpty = tool.input === undefined && tool.content.length === 0 && tool.locations.length === 0;
  return (
    <div className="space-y-2 border-t border-line p-3">
      {tool.locations.length > 0 && (
        <p className="font-mono text-xs break-all text-muted">
          {tool.locations.map(({ path, line }) => (line === undefined ? path : `${path}:${line}`)).join(", ")}
        </p>
      )}
      {tool.input !== undefined && <Output label="Input" text={prettyJson(tool.input)} />}
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

/** Terminal output with its colours. The library escapes what is HTML in it. */
function Output({ label, text }: { label: string; text: string }) {
  const ansi = new AnsiUp();
  ansi.use_classes = true;
  return (
    <figure>
      <figcaption className="text-xs text-muted">{label}</figcaption>
      <pre
        tabIndex={0}
        aria-label={label}
        className="mt-1 max-h-96 overflow-auto rounded-md bg-sunken p-2 font-mono text-xs whitespace-pre-wrap break-words"
        dangerouslySetInnerHTML={{ __html: ansi.ansi_to_html(text) }}
      />
    </figure>
  );
}

function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Cut in the middle, or no JSON at all: shown as it came.
    return text;
  }
}
