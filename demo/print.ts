import { styleText } from "node:util";
import type { SessionEvent } from "../src/domain/sessions/event.ts";

/** One line for each event worth a line; text of the agent is printed as it arrives. */
export function printEvent(event: SessionEvent): void {
  const line = lineOf(event);
  if (line !== null) process.stdout.write(`${line}\n`);
}

function lineOf(event: SessionEvent): string | null {
  switch (event.type) {
    case "session.status":
      return styleText("dim", `  session is ${event.data.to}`);
    case "step.started":
      return styleText("bold", `▸ ${event.data.step}`);
    case "step.completed":
      return styleText("green", `✓ ${event.data.step} ${seconds(event.data.durationMs)}`);
    case "step.failed":
      return styleText("red", `✗ ${event.data.step} ${seconds(event.data.durationMs)}: ${event.data.failure.reason}`);
    case "agent.started":
      return `  agent ${event.data.provider}${event.data.model === null ? "" : `:${event.data.model}`}`;
    case "agent.tool":
      return event.data.status === "completed" || event.data.status === "failed"
        ? `  ${event.data.kind}: ${event.data.title} (${event.data.status})`
        : null;
    case "agent.message":
      return `  ${event.data.text.trim().replaceAll("\n", "\n  ")}`;
    case "notice":
      return styleText("yellow", `  ${event.data.text}`);
    case "workspace.commit":
      return `  commit ${event.data.sha.slice(0, 8)} ${event.data.subject}`;
    case "branch.pushed":
      return `  pushed ${event.data.branch}`;
    case "pullRequest.opened":
      return `  pull request #${event.data.number} ${event.data.created ? "opened" : "was open already"}`;
    default:
      return null;
  }
}

function seconds(durationMs: number): string {
  return `${(durationMs / 1_000).toFixed(1)} s`;
}
