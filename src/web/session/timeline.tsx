import { memo } from "react";
import { Ago, Clock } from "../elements/time.tsx";
import { Markdown } from "./markdown.tsx";
import { RefusedHost } from "./refused-host.tsx";
import { Request } from "./request.tsx";
import type { Item, Plan, SessionView } from "./session-view.ts";
import { ToolCall } from "./tool-call.tsx";

/** Messages and events of the session, in order. */
export function Timeline({
  view,
  running,
  removed,
  automated,
}: {
  view: SessionView;
  running: boolean;
  removed: boolean;
  /** Whether an automation wrote the first message. */
  automated: boolean;
}) {
  const { usage } = view;
  const first = view.items.find(({ kind }) => kind === "user");
  return (
    <div className="space-y-3">
      {removed && <p className="text-sm text-muted">What happened before was removed, for its age or its size.</p>}
      {view.plan.length > 0 && <PlanList plan={view.plan} />}
      <ol aria-label="Conversation">
        {view.items.map((item, index) => (
          <li key={item.key} className={gapAbove(view.items[index - 1], item)}>
            <Line item={item} by={automated && item === first && !removed ? "The automation asked" : "You asked"} />
          </li>
        ))}
      </ol>
      {view.seq === 0 && !removed && <p className="text-muted">Loading the conversation …</p>}
      {running && (
        <p className="flex items-center gap-2 text-sm text-muted">
          <span aria-hidden className="size-2 animate-pulse rounded-full bg-accent" />
          At work
          {usage.contextUsed !== undefined && usage.contextSize !== undefined && usage.contextSize > 0 && (
            <span className="tabular-nums">
              {" "}
              · context {Math.round((usage.contextUsed / usage.contextSize) * 100)} %
            </span>
          )}
        </p>
      )}
    </div>
  );
}

const tones: Record<Extract<Item, { kind: "note" }>["tone"], string> = {
  plain: "text-muted",
  good: "text-good",
  warning: "text-warn",
  bad: "text-bad",
};

/** Consecutive tool calls stand close together, and so do notes. */
function gapAbove(before: Item | undefined, { kind }: Item): string {
  if (before === undefined) return "";
  return before.kind === kind && (kind === "tool" || kind === "note") ? "mt-1" : "mt-4";
}

const Line = memo(function Line({ item, by }: { item: Item; by: string }) {
  switch (item.kind) {
    case "user":
      return (
        <div className="ml-auto max-w-[90%] rounded-lg bg-accent-soft px-4 py-3 sm:max-w-[80%]">
          <p className="mb-1 text-xs text-muted">
            {by} · <Ago at={item.at} />
          </p>
          <Request text={item.text} />
        </div>
      );
    case "message":
      return <Markdown text={item.text} />;
    case "thought":
      return (
        <details className="group text-sm text-muted">
          <summary className="w-fit cursor-pointer list-none hover:text-ink">
            Thought{" "}
            <span aria-hidden className="inline-block group-open:rotate-90">
              ›
            </span>
          </summary>
          <div className="mt-1 border-l-2 border-line pl-3">
            <Markdown text={item.text} />
          </div>
        </details>
      );
    case "tool":
      return <ToolCall tool={item.tool} />;
    case "refused":
      return <RefusedHost host={item.host} port={item.port} reason={item.reason} named={item.named} />;
    case "note":
      return (
        <p className={`flex gap-2 text-sm ${tones[item.tone]}`}>
          <span aria-hidden>—</span>
          <span className="min-w-0 flex-1 break-words">
            {item.url === undefined ? (
              item.text
            ) : (
              <a href={item.url} target="_blank" rel="noreferrer noopener" className="underline">
                {item.text}
              </a>
            )}
          </span>
          <Clock at={item.at} />
        </p>
      );
  }
});

const planMarks: Record<Plan[number]["status"], { mark: string; word: string }> = {
  pending: { mark: "○", word: "to do" },
  in_progress: { mark: "◐", word: "in progress" },
  completed: { mark: "✓", word: "done" },
};

function PlanList({ plan }: { plan: Plan }) {
  const done = plan.filter(({ status }) => status === "completed").length;
  return (
    <section aria-label="Plan" className="card p-3 text-sm">
      <div className="mb-2 flex items-center gap-3">
        <h2 className="font-medium">Plan</h2>
        <progress aria-label="Plan done" value={done} max={plan.length} className="h-1.5 flex-1 accent-accent" />
        <span className="text-xs text-muted tabular-nums">
          {done} of {plan.length}
        </span>
      </div>
      <ul className="space-y-1">
        {plan.map(({ text, status }, index) => (
          <li key={index} className="flex gap-2">
            <span aria-hidden className="text-muted">
              {planMarks[status].mark}
            </span>
            <span className={status === "completed" ? "text-muted" : ""}>
              {text}
              <span className="sr-only"> ({planMarks[status].word})</span>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
