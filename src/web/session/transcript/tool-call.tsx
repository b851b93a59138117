import { lazy, Suspense } from "react";
import { Icon, type IconName } from "../../elements/icon.tsx";
import { formatDuration } from "../../texts/formats.ts";
import { useSessionTexts } from "../../texts/session.ts";
import type { Item, ToolCall as Tool } from "../view/view.ts";
import { inWorkspace } from "../view/workspace-path.ts";
import { useFold } from "./folds.tsx";
import { Output } from "./output.tsx";
import { countKinds } from "./rows.ts";

const FileChange = lazy(() =>
  import("../changes/file-diff.tsx").then(({ FileChange: component }) => ({ default: component })),
);

const icons: Readonly<Record<string, IconName>> = {
  read: "read",
  edit: "edit",
  delete: "delete",
  move: "move",
  search: "search",
  execute: "execute",
  setup: "execute",
  think: "think",
  fetch: "fetch",
  gate: "filter",
};
const colours: Record<Tool["status"], string> = {
  pending: "text-muted",
  in_progress: "text-accent",
  completed: "text-muted",
  failed: "text-bad",
  stopped: "text-warn",
};

type ToolItem = Extract<Item, { kind: "tool" }>;

/** A tool call that took less is not worth its time. */
const worthMs = 1_000;

/** A tool call. Folded: its title and state; unfolded: also its input and output. */
export function ToolCall({ item }: { item: ToolItem }) {
  const { tool, at, key } = item;
  const texts = useSessionTexts().tools;
  const [open, setOpen] = useFold(`tool ${key}`);
  const ms = tool.endedAt === null ? null : Date.parse(tool.endedAt) - Date.parse(at);
  return (
    <details className="group min-w-0 text-sm" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="flex min-h-7 cursor-pointer list-none items-center gap-2 rounded px-1.5 -outline-offset-2 hover:bg-hover">
        <Icon name={icons[tool.kind] ?? "other"} className={`size-3.5 ${colours[tool.status]}`} />
        <span className="min-w-0 flex-1 truncate font-mono text-xs">
          <bdi>{titleOf(tool, texts)}</bdi>
        </span>
        <LineCount tool={tool} />
        <span className={tool.status === "completed" ? "sr-only" : `text-xs ${colours[tool.status]}`}>
          {texts.states[tool.status]}
        </span>
        {ms !== null && ms >= worthMs && <span className="text-xs text-muted tabular-nums">{formatDuration(ms)}</span>}
        <Icon name="chevron" className="size-3 text-muted group-open:rotate-90" />
      </summary>
      {open && <ToolDetail tool={tool} />}
    </details>
  );
}

/** Several quiet calls in a row as one line, which unfolds to a line for each. */
export function ToolCalls({ calls }: { calls: readonly ToolItem[] }) {
  const texts = useSessionTexts().tools;
  const first = calls[0];
  const [open, setOpen] = useFold(`calls ${first?.key}`);
  const kinds: Readonly<Record<string, (count: number) => string>> = texts.kinds;
  const words = countKinds(calls).map(([kind, count]) => kinds[kind]?.(count) ?? String(count));
  const last = calls.at(-1);
  return (
    <details
      className="group/calls min-w-0 text-sm"
      open={open}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary className="flex min-h-7 cursor-pointer list-none items-center gap-2 rounded px-1.5 -outline-offset-2 hover:bg-hover">
        <Icon name={icons[first?.tool.kind ?? ""] ?? "other"} className="size-3.5 text-muted" />
        <span className="shrink-0 text-xs">{words.join(", ")}</span>
        <span className="min-w-0 flex-1 truncate font-mono text-xs text-muted">
          <bdi>{last === undefined ? "" : titleOf(last.tool, texts)}</bdi>
        </span>
        <Icon name="chevron" className="size-3 text-muted group-open/calls:rotate-90" />
      </summary>
      {open && (
        <div className="ms-2 border-s border-line ps-2">
          {calls.map((item) => (
            <ToolCall key={item.key} item={item} />
          ))}
        </div>
      )}
    </details>
  );
}

function titleOf({ kind, title }: Tool, texts: ReturnType<typeof useSessionTexts>["tools"]): string {
  if (kind === "setup") return texts.setUp(title);
  if (kind === "gate") return texts.gate[title as keyof typeof texts.gate] ?? title;
  return inWorkspace(title);
}

/** How many lines an edit adds and removes, as far as it says. */
function LineCount({ tool }: { tool: Tool }) {
  const diffs = tool.content.flatMap((content) => (content.type === "diff" ? [content] : []));
  if (diffs.length === 0) return null;
  const count = (text: string | null): number =>
    text === null || text === "" ? 0 : text.replace(/\n$/u, "").split("\n").length;
  const added = diffs.reduce((sum, { newText }) => sum + count(newText), 0);
  const removed = diffs.reduce((sum, { oldText }) => sum + count(oldText), 0);
  return (
    <span aria-hidden className="text-xs tabular-nums">
      <span className="text-good">+{added}</span> <span className="text-bad">−{removed}</span>
    </span>
  );
}

function ToolDetail({ tool }: { tool: Tool }) {
  const texts = useSessionTexts().tools;
  const places = tool.locations
    .map(({ path, line }) => (line === undefined ? inWorkspace(path) : `${inWorkspace(path)}:${line}`))
    .filter((place) => !place.endsWith(tool.title));
  const input = inputOf(tool);
  const isEmpty = input === null && tool.content.length === 0 && places.length === 0;
  return (
    <div className="ms-2 space-y-2 border-s border-line py-1 ps-3.5">
      {places.length > 0 && <p className="font-mono text-xs break-all text-muted">{places.join(", ")}</p>}
      {input !== null && <Output label={texts.input} what={texts.copyInput} text={input} />}
      {tool.content.map((content, index) =>
        content.type === "text" ? (
          <Output key={index} label={texts.output} what={texts.copyOutput} text={content.text} />
        ) : (
          <Suspense key={index} fallback={<p className="text-xs text-muted">{texts.loadingChange}</p>}>
            <FileChange path={inWorkspace(content.path)} before={content.oldText} after={content.newText} />
          </Suspense>
        ),
      )}
      {isEmpty && <p className="text-xs text-muted">{texts.nothing}</p>}
    </div>
  );
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
