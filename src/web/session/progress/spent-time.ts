import type { Item, SessionView } from "../view/view.ts";

/** A tool call's time. */
export interface TimedCall {
  readonly key: number;
  readonly kind: string;
  readonly title: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** How the agent's time was spent, in ms. */
export interface SpentTime {
  /** By the kind of tool call, the longest first. Time that several calls share counts for each. */
  readonly kinds: readonly (readonly [kind: string, ms: number])[];
  /** While no tool call ran. */
  readonly modelMs: number;
  readonly calls: readonly TimedCall[];
}

const known: ReadonlySet<string> = new Set(["execute", "edit", "read", "search", "fetch", "setup"]);

type ToolItem = Extract<Item, { kind: "tool" }>;

function timed({ key, at, tool }: ToolItem, nowMs: number): TimedCall {
  const startMs = Date.parse(at);
  const endMs = tool.endedAt === null ? nowMs : Date.parse(tool.endedAt);
  return {
    key,
    kind: known.has(tool.kind) ? tool.kind : "other",
    title: tool.title,
    startMs,
    endMs: Math.max(startMs, endMs),
  };
}

/** Adds up where the time of the agent's steps went. */
export function spentTimeOf({ items, spans }: Pick<SessionView, "items" | "spans">, nowMs: number): SpentTime {
  const calls = items.flatMap((item) => (item.kind === "tool" ? [timed(item, nowMs)] : []));
  const kinds = new Map<string, number>();
  for (const { kind, startMs, endMs } of calls) kinds.set(kind, (kinds.get(kind) ?? 0) + endMs - startMs);
  const agentMs = spans
    .filter(({ name }) => name === "agent")
    .reduce(
      (sum, { startedAt, endedAt }) => sum + (endedAt === null ? nowMs : Date.parse(endedAt)) - Date.parse(startedAt),
      0,
    );
  const busyMs = covered(calls.filter(({ kind }) => kind !== "setup"));
  return {
    kinds: [...kinds].filter(([, ms]) => ms > 0).sort((a, b) => b[1] - a[1]),
    modelMs: Math.max(0, agentMs - busyMs),
    calls,
  };
}

/** How much time these cover together: what overlaps counts once. */
function covered(calls: readonly TimedCall[]): number {
  let sum = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const { startMs, endMs } of [...calls].sort((a, b) => a.startMs - b.startMs)) {
    sum += Math.max(0, endMs - Math.max(startMs, until));
    until = Math.max(until, endMs);
  }
  return sum;
}
