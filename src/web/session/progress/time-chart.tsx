import { formatDuration } from "../../texts/formats.ts";
import { useSessionTexts } from "../../texts/session.ts";
import type { StepSpan } from "../view/steps.ts";
import type { TimedCall } from "./spent-time.ts";

/** Tool calls that are drawn: of more, the longest, since the others are narrower than a pixel. */
const mostCalls = 400;
const width = 1_000;

/**
 * Steps and the agent's tool calls along the time that they took, without the pauses between attempts. The table below
 * it has the same in words.
 */
export function TimeChart({
  spans,
  calls,
  now,
}: {
  spans: readonly StepSpan[];
  calls: readonly TimedCall[];
  now: number;
}) {
  const texts = useSessionTexts();
  const timed = spans.map((span) => ({
    ...span,
    startMs: Date.parse(span.startedAt),
    endMs: span.endedAt === null ? now : Date.parse(span.endedAt),
  }));
  const place = placing(timed);
  const names = [...new Set(timed.map(({ name }) => name))];
  const drawn =
    calls.length <= mostCalls
      ? calls
      : [...calls].sort((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs)).slice(0, mostCalls);
  return (
    <div aria-hidden className="space-y-px">
      {names.map((name) => {
        const own = timed.filter((span) => span.name === name);
        const ms = own.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
        return (
          <div key={name} className="flex items-center gap-2 text-xs">
            <span className="w-24 shrink-0 truncate text-muted">{texts.steps.names[name]}</span>
            <svg
              viewBox={`0 0 ${width} 12`}
              preserveAspectRatio="none"
              className={`min-w-0 flex-1 bg-sunken ${name === "agent" ? "h-6" : "h-3"}`}
            >
              {own.map(({ key, startMs, endMs, hasFailed }) => (
                <rect
                  key={key}
                  x={place(startMs)}
                  width={Math.max(2, place(endMs) - place(startMs))}
                  y="0"
                  height="12"
                  className={hasFailed ? "fill-bad" : name === "agent" ? "fill-accent-soft" : "fill-accent"}
                />
              ))}
              {name === "agent" &&
                drawn
                  .filter(({ kind }) => kind !== "setup")
                  .map(({ key, kind, startMs, endMs }) => (
                    <rect
                      key={key}
                      x={place(startMs)}
                      width={Math.max(1.5, place(endMs) - place(startMs))}
                      y="2"
                      height="8"
                      className={colours[kind] ?? "fill-muted"}
                    />
                  ))}
            </svg>
            <span className="w-20 shrink-0 text-end tabular-nums">{formatDuration(ms)}</span>
          </div>
        );
      })}
    </div>
  );
}

const colours: Readonly<Record<string, string>> = {
  execute: "fill-warn",
  edit: "fill-good",
  read: "fill-accent",
  search: "fill-accent",
  fetch: "fill-merged",
};

/** Maps times to places in the picture. Time in which no step ran takes no room. */
function placing(spans: readonly { readonly startMs: number; readonly endMs: number }[]): (at: number) => number {
  const pieces: { from: number; to: number; before: number }[] = [];
  let sum = 0;
  for (const { startMs, endMs } of [...spans].sort((a, b) => a.startMs - b.startMs)) {
    const last = pieces.at(-1);
    if (last !== undefined && startMs <= last.to) {
      sum += Math.max(0, endMs - last.to);
      last.to = Math.max(last.to, endMs);
    } else {
      pieces.push({ from: startMs, to: endMs, before: sum });
      sum += endMs - startMs;
    }
  }
  return (at) => {
    const piece = pieces.findLast(({ from }) => from <= at);
    const ms = piece === undefined ? 0 : piece.before + Math.min(at, piece.to) - piece.from;
    return sum === 0 ? 0 : (ms / sum) * width;
  };
}
