import type { SessionEvent } from "../../../domain/sessions/event.ts";
import { moveSpans, moveSteps, noSteps, stopSteps, type StepSpan, type StepView } from "./steps.ts";

type DataOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>["data"];
type KnownCall = DataOf<"agent.tool">;
/** A tool call as shown. A call that was running when its attempt ended is `stopped`. */
export type ToolCall = Omit<KnownCall, "status"> & {
  readonly status: KnownCall["status"] | "stopped";
  /** When it ended; null while it runs. */
  readonly endedAt: string | null;
};
/** Entries of the agent's plan. */
export type Plan = DataOf<"agent.plan">["entries"];

/** Something that happened, of which the transcript has a line. */
export type TranscriptNote =
  | ({ readonly type: "started" } & DataOf<"agent.started">)
  | ({ readonly type: "notice" } & DataOf<"notice">)
  | ({ readonly type: "permission" } & DataOf<"agent.permission">)
  | { readonly type: "turnEnded"; readonly stopReason: string }
  | { readonly type: "commit"; readonly sha: string; readonly subject: string }
  | { readonly type: "pushed"; readonly branch: string }
  | {
      readonly type: "pullRequest";
      readonly number: number;
      readonly url: string;
      readonly became: "opened" | "updated" | "merged" | "closed" | "conflicted";
    }
  | {
      readonly type: "status";
      readonly to: "failed" | "cancelled" | "completed" | "waiting" | "queued";
      /** In the server's words; null: it says none. */
      readonly reason: string | null;
      /** Whether it will be tried again by itself. */
      readonly isRetried: boolean;
    };

/** One entry of the transcript. `key` is the number of the event that began it. */
export type Item = { readonly key: number; readonly at: string } & (
  | { readonly kind: "user"; readonly messageId: string; readonly text: string; readonly from: string | null }
  | { readonly kind: "message" | "thought"; readonly part: string; readonly text: string }
  | { readonly kind: "tool"; readonly tool: ToolCall }
  | ({ readonly kind: "refused" } & DataOf<"egress.refused">)
  | { readonly kind: "note"; readonly note: TranscriptNote }
);

/** The sandbox's usage at a time. */
export type UsageSample = { readonly at: string } & DataOf<"sandbox.usage">;

/** Tokens and cost of requests to models. */
export interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  /** US dollars by the server's table of prices. */
  readonly costUsd: number;
}

/** The page's view of a session's events so far. */
export interface SessionView {
  /** Number of the last event included. */
  readonly seq: number;
  readonly items: readonly Item[];
  readonly steps: readonly StepView[];
  /** The steps of all attempts, in the order in which they began. */
  readonly spans: readonly StepSpan[];
  readonly samples: readonly UsageSample[];
  readonly plan: Plan;
  readonly usage: DataOf<"agent.usage">;
  /** Of all requests to models so far. */
  readonly tokens: Tokens;
  /** Index in `items` at which the running turn began: its events don't change earlier texts and tool calls. */
  readonly turnStart: number;
}

/** A view without events. */
export const emptyView: SessionView = {
  seq: 0,
  items: [],
  steps: noSteps,
  spans: [],
  samples: [],
  plan: [],
  usage: {},
  tokens: { input: 0, cached: 0, output: 0, costUsd: 0 },
  turnStart: 0,
};

/** A view while events are added to it: its lists are copies, which change. */
interface Draft extends Omit<SessionView, "items" | "spans" | "samples"> {
  seq: number;
  items: Item[];
  steps: readonly StepView[];
  spans: StepSpan[];
  samples: UsageSample[];
  plan: Plan;
  usage: DataOf<"agent.usage">;
  tokens: Tokens;
  turnStart: number;
  /** Places in `items` of the turn's texts and tool calls, by kind and id: a turn may have thousands. */
  readonly places: Map<string, number>;
}

/**
 * Adds events to a view. Ignores events that are included already, so that a stream may repeat them. Its lists are copied once for all
 * events, and entries that do not change stay the same objects.
 */
export function applyEvents(view: SessionView, events: readonly SessionEvent[]): SessionView {
  const news = events.filter(({ seq }) => seq > view.seq);
  if (news.length === 0) return view;
  const { items, spans, samples } = view;
  const places = new Map<string, number>();
  const draft: Draft = { ...view, items: [...items], spans: [...spans], samples: [...samples], places };
  for (let index = view.turnStart; index < items.length; index += 1) remember(draft, index);
  for (const event of news) {
    if (event.seq <= draft.seq) continue;
    apply(draft, event);
    draft.seq = event.seq;
  }
  const { places: _, ...applied } = draft;
  return applied;
}

/** By which later events find an entry again; null: none change it. */
function nameOf(item: Item): string | null {
  if (item.kind === "tool") return `tool ${item.tool.toolCallId}`;
  return item.kind === "message" || item.kind === "thought" ? `${item.kind} ${item.part}` : null;
}

function remember(draft: Draft, index: number): void {
  const item = draft.items[index];
  const name = item === undefined ? null : nameOf(item);
  if (name !== null) draft.places.set(name, index);
}

function add(draft: Draft, item: Item): void {
  remember(draft, draft.items.push(item) - 1);
}

function apply(draft: Draft, event: SessionEvent): void {
  switch (event.type) {
    case "session.created":
      return;
    case "session.status":
      return applyStatus(draft, event);
    case "notice":
      return note(draft, event, { type: "notice", ...event.data });
    case "message.user":
      return add(draft, { kind: "user", ...event.data, ...place(event) });
    case "message.withdrawn":
      draft.items = draft.items.filter((item) => item.kind !== "user" || item.messageId !== event.data.messageId);
      draft.places.clear();
      for (let index = draft.turnStart; index < draft.items.length; index += 1) remember(draft, index);
      return;
    case "step.started":
    case "step.progress":
    case "step.completed":
    case "step.failed":
      draft.steps = moveSteps(draft.steps, event);
      return moveSpans(draft.spans, event);
    case "setup.output":
      return addOutput(draft, event);
    case "gate.decided":
      return add(draft, { kind: "tool", tool: gateCall(event), ...place(event) });
    case "agent.started":
      note(draft, event, { type: "started", ...event.data });
      draft.turnStart = draft.items.length;
      return draft.places.clear();
    case "agent.message":
      return addText(draft, event, "message");
    case "agent.thought":
      return addText(draft, event, "thought");
    case "agent.tool":
      return putTool(draft, event);
    case "agent.plan":
      draft.plan = event.data.entries;
      return;
    case "agent.usage":
      draft.usage = { ...draft.usage, ...event.data };
      return;
    case "agent.permission":
      return note(draft, event, { type: "permission", ...event.data });
    case "model.usage":
      draft.tokens = addTokens(draft.tokens, event.data);
      return;
    case "sandbox.usage":
      draft.samples.push({ at: event.createdAt, ...event.data });
      return;
    case "egress.refused":
      return add(draft, { kind: "refused", ...event.data, ...place(event) });
    case "agent.turn":
      if (event.data.stopReason !== "end_turn") note(draft, event, { type: "turnEnded", ...event.data });
      return;
    case "workspace.commit":
      return note(draft, event, { type: "commit", ...event.data });
    case "branch.pushed":
      return note(draft, event, { type: "pushed", ...event.data });
    case "pullRequest.opened": {
      const { number, url, created } = event.data;
      return note(draft, event, { type: "pullRequest", number, url, became: created ? "opened" : "updated" });
    }
    case "pullRequest.closed": {
      const { number, url, state } = event.data;
      return note(draft, event, { type: "pullRequest", number, url, became: state });
    }
    case "pullRequest.conflicted":
      return note(draft, event, { type: "pullRequest", ...event.data, became: "conflicted" });
  }
}

function place(event: SessionEvent): { key: number; at: string } {
  return { key: event.seq, at: event.createdAt };
}

function note(draft: Draft, event: SessionEvent, what: TranscriptNote): void {
  add(draft, { kind: "note", note: what, ...place(event) });
}

function addTokens(so: Tokens, data: DataOf<"model.usage">): Tokens {
  return {
    input: so.input + data.inputTokens + data.cacheWriteTokens,
    cached: so.cached + data.cacheReadTokens,
    output: so.output + data.outputTokens,
    costUsd: so.costUsd + (data.costUsd ?? 0),
  };
}

function applyStatus(draft: Draft, event: Extract<SessionEvent, { type: "session.status" }>): void {
  const { from, to, reason, failure, retry } = event.data;
  if (from === "running") stop(draft, event);
  if (to === "running" || to === "draft") return;
  const status: TranscriptNote = {
    type: "status",
    to,
    reason: (to === "failed" ? failure?.reason : undefined) ?? reason ?? null,
    isRetried: retry !== undefined,
  };
  // Requested by a person, whose message shows it.
  if (to !== "queued" || from === "running") note(draft, event, status);
  if (to !== "queued") return;
  // A new attempt begins: after a follow-up or a retry, or because this one was interrupted or failed.
  draft.steps = noSteps;
  draft.plan = [];
}

/** Stops running steps and tool calls: an attempt that broke off sent no end of them. */
function stop(draft: Draft, { createdAt }: SessionEvent): void {
  draft.steps = stopSteps(draft.steps, createdAt);
  draft.spans = draft.spans.map((span) => (span.endedAt === null ? { ...span, endedAt: createdAt } : span));
  draft.items = draft.items.map((item) =>
    item.kind === "tool" && (item.tool.status === "in_progress" || item.tool.status === "pending")
      ? { ...item, tool: { ...item.tool, status: "stopped", endedAt: createdAt } }
      : item,
  );
}

function addText(
  draft: Draft,
  event: Extract<SessionEvent, { type: "agent.message" | "agent.thought" }>,
  kind: "message" | "thought",
): void {
  const { part, text } = event.data;
  const index = draft.places.get(`${kind} ${part}`);
  const item = index === undefined ? undefined : draft.items[index];
  if (index === undefined || item === undefined || !("part" in item)) add(draft, { kind, part, text, ...place(event) });
  else draft.items[index] = { ...item, text: item.text + text };
}

/** Shown as a tool call. */
function addOutput(draft: Draft, event: Extract<SessionEvent, { type: "setup.output" }>): void {
  const { repositoryId, repository, text, state } = event.data;
  const toolCallId = `setup ${repositoryId}`;
  // Before the first turn, so not among the places of one.
  const index = draft.items.findLastIndex((item) => item.kind === "tool" && item.tool.toolCallId === toolCallId);
  const before = draft.items[index];
  const running = before?.kind === "tool" && before.tool.status === "in_progress" ? before : null;
  const content = running?.tool.content[0];
  const tool: ToolCall = {
    toolCallId,
    title: repository,
    kind: "setup",
    status: state === "running" ? "in_progress" : state,
    locations: [],
    content: [{ type: "text", text: (content?.type === "text" ? content.text : "") + text }],
    endedAt: state === "running" ? null : event.createdAt,
  };
  if (running === null) add(draft, { kind: "tool", tool, ...place(event) });
  else draft.items[index] = { ...running, tool };
}

/** A gate's end, shown as a tool call; its outcome is its title. */
function gateCall({ data, createdAt }: Extract<SessionEvent, { type: "gate.decided" }>): ToolCall {
  const text = [data.output, data.log].filter((part) => part !== "").join("\n");
  return {
    toolCallId: "gate",
    title: data.outcome,
    kind: "gate",
    status: data.outcome === "failed" ? "failed" : "completed",
    locations: [],
    content: text === "" ? [] : [{ type: "text", text }],
    endedAt: createdAt,
  };
}

function putTool(draft: Draft, event: Extract<SessionEvent, { type: "agent.tool" }>): void {
  const isOver = event.data.status === "completed" || event.data.status === "failed";
  const index = draft.places.get(`tool ${event.data.toolCallId}`);
  const item = index === undefined ? undefined : draft.items[index];
  const endedAt = item?.kind === "tool" ? item.tool.endedAt : null;
  const tool: ToolCall = { ...event.data, endedAt: isOver ? (endedAt ?? event.createdAt) : null };
  if (index === undefined || item === undefined) add(draft, { kind: "tool", tool, ...place(event) });
  else draft.items[index] = { kind: "tool", tool, key: item.key, at: item.at };
}
