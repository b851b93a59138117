import { join } from "node:path";
import type { SessionUpdate, ToolCall, ToolCallContent, ToolKind } from "@agentclientprotocol/sdk";
import type { SessionEvent } from "../../domain/sessions/event.ts";
import { oneLine, printable } from "../../printable.ts";

const toolKinds: ReadonlySet<string> = new Set<ToolKind>([
  "read",
  "edit",
  "delete",
  "move",
  "search",
  "execute",
  "think",
  "fetch",
  "switch_mode",
  "other",
]);

/** Titles of steps, as an editor shows them together with the agent's own tools. */
const steps: Readonly<Record<string, string>> = {
  prepare: "Prepare a clone",
  setup: "Run the repository's setup",
  restore: "Bring back the work so far",
  gate: "Ask the automation's gate",
  commit: "Commit",
  push: "Push the branch",
  pullRequest: "Open the pull request",
};

/**
 * Makes a translator of a session's events into updates of the Agent Client Protocol. It has state: a tool call and a step are announced
 * once and updated from then on. No text in an update controls a terminal.
 * @param options.root the checkout's folder, below which an editor finds files; null: there is none
 * @param options.withPrompts whether messages of the person are sent, too: in a history, not after a prompt
 */
export function createAcpUpdates(options: { readonly root: string | null; readonly withPrompts: boolean }) {
  const { root, withPrompts } = options;
  const known = new Set<string>();
  const runningSteps = new Map<string, string>();

  /** The current state of a tool call: announced the first time, updated from then on. */
  const call = (update: ToolCall): SessionUpdate => {
    const isNew = !known.has(update.toolCallId);
    known.add(update.toolCallId);
    return isNew ? { sessionUpdate: "tool_call", ...update } : { sessionUpdate: "tool_call_update", ...update };
  };

  /** @returns none for events that an editor need not know */
  return (event: SessionEvent): SessionUpdate[] => {
    switch (event.type) {
      case "message.user":
        return withPrompts ? [chunk("user_message_chunk", event.data.text)] : [];
      case "agent.message":
        return [chunk("agent_message_chunk", event.data.text)];
      case "agent.thought":
        return [chunk("agent_thought_chunk", event.data.text)];
      case "agent.tool": {
        const { toolCallId, title, kind, status, locations, content } = event.data;
        return [
          call({
            toolCallId,
            title: oneLine(printable(title)) || "tool",
            kind: (toolKinds.has(kind) ? kind : "other") as ToolKind,
            status,
            locations: locations.map(({ path, line }) => ({
              path: localPath(path, root),
              ...(line !== undefined && { line }),
            })),
            content: content.map((part) => contentOf(part, root)),
          }),
        ];
      }
      case "agent.plan":
        return [
          {
            sessionUpdate: "plan",
            entries: event.data.entries.map(({ text, status }) => ({
              content: printable(text),
              priority: "medium",
              status,
            })),
          },
        ];
      case "step.started": {
        const title = steps[event.data.step];
        if (title === undefined) return [];
        const id = `offstage-${event.seq}`;
        runningSteps.set(event.data.step, id);
        return [call({ toolCallId: id, title, kind: "other", status: "in_progress" })];
      }
      case "step.completed":
      case "step.failed": {
        const id = runningSteps.get(event.data.step);
        runningSteps.delete(event.data.step);
        if (id === undefined) return [];
        const text = event.type === "step.failed" ? event.data.failure.reason : null;
        return [
          call({
            toolCallId: id,
            title: steps[event.data.step] ?? event.data.step,
            status: event.type === "step.failed" ? "failed" : "completed",
            ...(text !== null && { content: [textContent(text)] }),
          }),
        ];
      }
      case "session.status": {
        const { to, reason, retry } = event.data;
        if (to === "waiting") return [line(`Waiting: ${reason ?? "a person must do something"}`)];
        return retry === undefined ? [] : [line(`${retry.reason} It is tried again at ${retry.at}.`)];
      }
      case "notice":
        return event.data.level === "warning" ? [line(event.data.text)] : [];
      case "egress.refused":
        return [line(`The sandbox may not reach ${event.data.host}:${event.data.port} (${event.data.reason}).`)];
      case "pullRequest.opened":
        return [line(`Pull request: ${event.data.url}`)];
      default:
        return [];
    }
  };
}

function chunk(
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  text: string,
): SessionUpdate {
  return { sessionUpdate, content: { type: "text", text: printable(text) } };
}

/** A line of Offstage's own, apart from what its agent says. */
const line = (text: string): SessionUpdate => chunk("agent_message_chunk", `\n\n> ${oneLine(printable(text))}\n\n`);

type Content = Extract<SessionEvent, { type: "agent.tool" }>["data"]["content"][number];

function contentOf(content: Content, root: string | null): ToolCallContent {
  if (content.type === "text") return textContent(content.text);
  const { path, oldText, newText } = content;
  return {
    type: "diff",
    path: localPath(path, root),
    oldText: oldText === null ? null : printable(oldText),
    newText: printable(newText),
  };
}

function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text: printable(text) } };
}

/**
 * A path of the sandbox as the editor knows it: below the checkout. In the sandbox a repository is in the folder of its name.
 * @param root null: the path stays
 */
function localPath(path: string, root: string | null): string {
  const clean = oneLine(printable(path));
  if (root === null) return clean;
  const inside = clean.replace(/^.*\/sessions\/[0-9a-f-]{36}\/workspace\/[^/]+(?:\/|$)/u, "").replace(/^\/+/u, "");
  return join(root, inside);
}
