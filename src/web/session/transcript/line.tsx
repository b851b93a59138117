import { memo } from "react";
import { Ago } from "../../elements/time.tsx";
import { useSessionTexts } from "../../texts/session.ts";
import type { Item } from "../view/view.ts";
import { useFold } from "./folds.tsx";
import { Markdown } from "./markdown.tsx";
import { NoteLine } from "./notes.tsx";
import { RefusedHost } from "./refused-host.tsx";
import { Request } from "./request.tsx";
import { ToolCall, ToolCalls } from "./tool-call.tsx";
import type { Row } from "./rows.ts";

/** A line of the transcript. */
export const Line = memo(function Line({
  row,
  isAutomated,
  onWithdraw,
}: {
  row: Row;
  /** Whether an automation wrote this message. */
  isAutomated: boolean;
  /** Takes a message back that waits for its turn; null: it does not wait, or this person may not. */
  onWithdraw: ((messageId: string, text: string) => void) | null;
}) {
  if (row.kind === "calls") return <ToolCalls calls={row.calls} />;
  const { item } = row;
  switch (item.kind) {
    case "user":
      return <UserMessage item={item} isAutomated={isAutomated} onWithdraw={onWithdraw} />;
    case "message":
      return (
        <div className="px-1.5">
          <Markdown text={item.text} />
        </div>
      );
    case "thought":
      return <Thought item={item} />;
    case "tool":
      return <ToolCall item={item} />;
    case "refused":
      return <RefusedHost host={item.host} port={item.port} reason={item.reason} named={item.named} />;
    case "note":
      return <NoteLine item={item} />;
  }
});

function UserMessage({
  item,
  isAutomated,
  onWithdraw,
}: {
  item: Extract<Item, { kind: "user" }>;
  isAutomated: boolean;
  onWithdraw: ((messageId: string, text: string) => void) | null;
}) {
  const texts = useSessionTexts().transcript;
  return (
    <div
      className={`rounded-e-lg border-s-3 bg-surface px-3 py-2 ${onWithdraw === null ? "border-accent" : "border-warn border-dashed"}`}
    >
      <p className="mb-1 flex flex-wrap items-center gap-x-2 text-xs text-muted">
        <span>
          {isAutomated ? texts.automationAsked : texts.youAsked} · <Ago at={item.at} />
        </span>
        {onWithdraw !== null && (
          <>
            <span className="text-warn">{texts.queued}</span>
            <button
              type="button"
              className="cursor-pointer underline hover:text-ink"
              onClick={() => onWithdraw(item.messageId, item.text)}
            >
              {texts.withdraw}
            </button>
          </>
        )}
      </p>
      <Request foldKey={`request ${item.key}`} text={item.text} />
    </div>
  );
}

function Thought({ item }: { item: Extract<Item, { part: string }> }) {
  const texts = useSessionTexts().transcript;
  const [open, setOpen] = useFold(`thought ${item.key}`);
  return (
    <details className="group text-sm text-muted" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="flex min-h-7 cursor-pointer list-none items-center gap-2 rounded px-1.5 -outline-offset-2 hover:bg-hover">
        <span className="shrink-0 text-xs">{texts.thought}</span>
        <span aria-hidden className="min-w-0 flex-1 truncate text-xs italic group-open:invisible">
          {item.text.slice(0, 200)}
        </span>
      </summary>
      {open && (
        <div className="ms-2 border-s border-line py-1 ps-3.5 italic">
          <Markdown text={item.text} />
        </div>
      )}
    </details>
  );
}
