import type { SessionEvent } from "../../domain/sessions/event.ts";
import { optionalSteps, stepNames, type StepName } from "../../domain/sessions/step.ts";

type DataOf<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>["data"];
type KnownCall = DataOf<"agent.tool">;
/** A tool call as shown. A call that was running when its attempt ended is `stopped`. */
export type ToolCall = Omit<KnownCall, "status"> & { readonly status: KnownCall["status"] | "stopped" };
/** Entries of the agent's plan. */
export type Plan = DataOf<"agent.plan">["entries"];

/** One entry of the conversation. `key` is the number of the event that began it. */
export type Item = { readonly key: number; readonly at: string } & (
  | { readonly kind: "user"; readonly text: string; readonly from: string | null }
  | { readonly kind: "message" | "thought"; readonly part: string; readonly text: string }
  | { readonly kind: "tool"; readonly tool: ToolCall }
  | ({ readonly kind: "refused" } & DataOf<"egress.refused">)
  | {
      readonly kind: "note";
      readonly tone: "plain" | "good" | "warning" | "bad";
      readonly text: string;
      readonly url?: string;
    }
);

/** A step of the attempt as shown. */
export interface StepView {
  readonly name: StepName;
  readonly state: "waiting" | "running" | "done" | "failed" | "stopped";
  readonly startedAt: string | null;
  readonly durationMs: number | null;
  readonly progress: DataOf<"step.progress"> | null;
}

/** Tokens and cost of requests to models. */
export interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  /** US dollars by the server's table of prices. */
  readonly costUsd: number;
}

function addTokens(so: Tokens, data: DataOf<"model.usage">): Tokens {
  return {
    input: so.input + data.inputTokens + data.cacheWriteTokens,
    cached: so.cached + data.cacheReadTokens,
    output: so.output + data.outputTokens,
    costUsd: so.costUsd + (data.costUsd ?? 0),
  };
}

/** What the page shows of a session's events so far. */
export interface SessionView {
  /** Number of the last event included. */
  readonly seq: number;
  readonly items: readonly Item[];
  readonly steps: readonly StepView[];
  readonly plan: Plan;
  readonly usage: DataOf<"agent.usage">;
  /** Of all requests to models so far. */
  readonly tokens: Tokens;
  /** Index in `items` at which the running turn began: its events don't change earlier texts and tool calls. */
  readonly turnStart: number;
}

const notStarted = { state: "waiting", startedAt: null, durationMs: null, progress: null } as const;
const allSteps: readonly StepView[] = stepNames.map((name) => ({ name, ...notStarted }));
const noSteps = allSteps.filter(({ name }) => !optionalSteps.has(name));

/** A view without events. */
export const emptyView: SessionView = {
  seq: 0,
  items: [],
  steps: noSteps,
  plan: [],
  usage: {},
  tokens: { input: 0, cached: 0, output: 0, costUsd: 0 },
  turnStart: 0,
};

/** Adds events to a view. Ignores events that are included already, so that a stream may repeat them. */
export function applyEvents(view: SessionView, events: readonly SessionEvent[]): SessionView {
  return events.reduce(
    (state, event) => (event.seq <= state.seq ? state : { ...apply(state, event), seq: event.seq }),
    view,
  );
}

function apply(view: SessionView, event: SessionEvent): SessionView {
  switch (event.type) {
    case "session.created":
      return view;
    case "session.status":
      return applyStatus(view, event);
    case "notice":
      return note(view, event, event.data.level === "warning" ? "warning" : "plain", event.data.text);
    case "message.user":
      return add(view, { kind: "user", text: event.data.text, from: event.data.from, ...place(event) });
    case "message.withdrawn":
      return note(view, event, "plain", "A message was withdrawn before the agent took it");
    case "step.started":
    case "step.progress":
    case "step.completed":
    case "step.failed":
      return applyStep(view, event);
    case "setup.output":
      return addOutput(view, event);
    case "gate.decided":
      return add(view, { kind: "tool", tool: gateCall(event.data), ...place(event) });
    case "agent.started": {
      const { provider, model, resumed } = event.data;
      const noted = note(
        view,
        event,
        "plain",
        `${resumed ? "Resumed" : "Started"} ${provider}${model === null ? "" : ` with ${model}`}`,
      );
      return { ...noted, turnStart: noted.items.length };
    }
    case "agent.message":
      return addText(view, event, "message");
    case "agent.thought":
      return addText(view, event, "thought");
    case "agent.tool":
      return putTool(view, event);
    case "agent.plan":
      return { ...view, plan: event.data.entries };
    case "agent.usage":
      return { ...view, usage: { ...view.usage, ...event.data } };
    case "agent.permission":
      return note(
        view,
        event,
        event.data.decision === "denied" ? "warning" : "plain",
        `Permission ${event.data.decision}: ${event.data.title}`,
      );
    case "model.usage":
      return { ...view, tokens: addTokens(view.tokens, event.data) };
    case "egress.refused":
      return add(view, { kind: "refused", ...event.data, ...place(event) });
    case "agent.turn":
      return event.data.stopReason === "end_turn"
        ? view
        : note(view, event, "warning", `The turn ended early: ${event.data.stopReason}`);
    case "workspace.commit":
      return note(view, event, "plain", `Commit ${event.data.sha.slice(0, 8)}: ${event.data.subject}`);
    case "branch.pushed":
      return note(view, event, "plain", `Pushed ${event.data.branch}`);
    case "pullRequest.opened": {
      const { number, url, created } = event.data;
      return note(view, event, "good", `Pull request #${number} ${created ? "opened" : "updated"}`, url);
    }
    case "pullRequest.closed": {
      const { number, url, state } = event.data;
      return note(view, event, state === "merged" ? "good" : "plain", `Pull request #${number} ${state}`, url);
    }
    case "pullRequest.conflicted": {
      const { number, url } = event.data;
      return note(view, event, "warning", `Pull request #${number} collides with its target branch`, url);
    }
  }
}

function place(event: SessionEvent): { key: number; at: string } {
  return { key: event.seq, at: event.createdAt };
}

function add(view: SessionView, item: Item): SessionView {
  return { ...view, items: [...view.items, item] };
}

type Tone = Extract<Item, { kind: "note" }>["tone"];

function note(view: SessionView, event: SessionEvent, tone: Tone, text: string, url?: string): SessionView {
  return add(view, { kind: "note", tone, text, ...(url !== undefined && { url }), ...place(event) });
}

function replace(view: SessionView, index: number, item: Item): SessionView {
  return { ...view, items: view.items.with(index, item) };
}

function applyStatus(before: SessionView, event: Extract<SessionEvent, { type: "session.status" }>): SessionView {
  const { from, to, reason, failure, retry } = event.data;
  const view = from === "running" ? stop(before, event) : before;
  if (to === "failed") return note(view, event, "bad", failure?.reason ?? reason ?? "Failed");
  if (to === "cancelled") return note(view, event, "warning", "Cancelled");
  if (to === "completed") return note(view, event, "good", reason ?? "Completed");
  if (to === "waiting") return note(view, event, "warning", `Waiting: ${reason ?? "for an answer"}`);
  if (to !== "queued") return view;
  // A new attempt begins: after a follow-up or a retry, or because this one was interrupted or failed.
  const words = `${reason ?? "The worker was lost: queued again"}${retry === undefined ? "" : " It will be tried again."}`;
  const lost = from === "running" ? note(view, event, "warning", words) : view;
  return { ...lost, steps: noSteps, plan: [] };
}

/** Stops running steps and tool calls: an attempt that broke off sent no end of them. */
function stop(view: SessionView, { createdAt }: SessionEvent): SessionView {
  return {
    ...view,
    steps: view.steps.map((step) => (step.state === "running" ? stopStep(step, createdAt) : step)),
    items: view.items.map((item) =>
      item.kind === "tool" && (item.tool.status === "in_progress" || item.tool.status === "pending")
        ? { ...item, tool: { ...item.tool, status: "stopped" } }
        : item,
    ),
  };
}

function stopStep(step: StepView, at: string): StepView {
  const durationMs = step.startedAt === null ? null : Math.max(0, Date.parse(at) - Date.parse(step.startedAt));
  return { ...step, state: "stopped", durationMs, progress: null };
}

function applyStep(view: SessionView, event: Extract<SessionEvent, { type: `step.${string}` }>): SessionView {
  const known = view.steps.some(({ name }) => name === event.data.step);
  const before = known ? view.steps : allSteps.map((step) => view.steps.find(({ name }) => name === step.name) ?? step);
  const steps = before.map((step) => (step.name === event.data.step ? moveStep(step, event) : step));
  return { ...view, steps };
}

function moveStep(step: StepView, event: Extract<SessionEvent, { type: `step.${string}` }>): StepView {
  switch (event.type) {
    case "step.started":
      return {
        ...step,
        state: "running",
        startedAt: event.createdAt,
        durationMs: null,
        progress: null,
      };
    case "step.progress":
      return { ...step, progress: event.data };
    case "step.completed":
      return { ...step, state: "done", durationMs: event.data.durationMs, progress: null };
    case "step.failed":
      return { ...step, state: "failed", durationMs: event.data.durationMs, progress: null };
  }
}

function addText(
  view: SessionView,
  event: Extract<SessionEvent, { type: "agent.message" | "agent.thought" }>,
  kind: "message" | "thought",
): SessionView {
  const { part, text } = event.data;
  const index = view.items.findLastIndex((item) => item.kind === kind && item.part === part);
  const item = view.items[index];
  if (index < view.turnStart || item === undefined || !("part" in item))
    return add(view, { kind, part, text, ...place(event) });
  return replace(view, index, { ...item, text: item.text + text });
}

/** Shown as a tool call. */
function addOutput(view: SessionView, event: Extract<SessionEvent, { type: "setup.output" }>): SessionView {
  const { repositoryId, repository, text, state } = event.data;
  const toolCallId = `setup ${repositoryId}`;
  const before = view.items.findLast((item) => item.kind === "tool" && item.tool.toolCallId === toolCallId);
  const [content] = before?.kind === "tool" && before.tool.status === "in_progress" ? before.tool.content : [];
  const so = content?.type === "text" ? content.text : "";
  const tool: ToolCall = {
    toolCallId,
    title: `Set up ${repository}`,
    kind: "execute",
    status: state === "running" ? "in_progress" : state,
    locations: [],
    content: [{ type: "text", text: so + text }],
  };
  if (before === undefined || content === undefined) return add(view, { kind: "tool", tool, ...place(event) });
  return replace(view, view.items.indexOf(before), { ...before, kind: "tool", tool });
}

/** A gate's end, shown as a tool call. */
function gateCall({ outcome, output, log }: DataOf<"gate.decided">): ToolCall {
  const words = { passed: "Gate: passed", filtered: "Gate: filtered the run", failed: "Gate: failed" };
  const text = [output, log].filter((part) => part !== "").join("\n");
  return {
    toolCallId: "gate",
    title: words[outcome],
    kind: "execute",
    status: outcome === "failed" ? "failed" : "completed",
    locations: [],
    content: text === "" ? [] : [{ type: "text", text }],
  };
}

function putTool(view: SessionView, event: Extract<SessionEvent, { type: "agent.tool" }>): SessionView {
  const tool = event.data;
  const index = view.items.findLastIndex((item) => item.kind === "tool" && item.tool.toolCallId === tool.toolCallId);
  const item = view.items[index];
  if (index < view.turnStart || item === undefined) return add(view, { kind: "tool", tool, ...place(event) });
  return replace(view, index, { kind: "tool", tool, key: item.key, at: item.at });
}
