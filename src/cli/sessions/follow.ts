import type { Client } from "../client.ts";
import type { SessionDetail } from "../domain/sessions/session.ts";
import type { Terminal } from "./commands.ts";
import { createEventLines, indented, oneLine, printable, shade } from "./event-lines.ts";
import { exitCodes } from "./exit-code.ts";

/**
 * Prints a session's events as they come, and its result; returns when the session ends.
 * @returns the exit code for the session's result
 */
export async function follow(client: Client, sessionId: string, terminal: Terminal): Promise<number> {
  const lines = createEventLines(terminal.color);
  for await (const event of client.streamEvents(sessionId, { signal: terminal.signal })) {
    terminal.write(lines.of(event));
  }
  terminal.write(lines.rest());
  terminal.signal.throwIfAborted();
  const session = await client.session.get(sessionId);
  terminal.write(outcome(session, terminal.color));
  return exitCodeOf(session);
}

function exitCodeOf(session: SessionDetail): number {
  if (session.status === "completed") return exitCodes.ok;
  return session.status === "cancelled" ? exitCodes.cancelled : exitCodes.failed;
}

/** Formats a session's result: its pull requests, or the reason why there is none. */
export function outcome(session: SessionDetail, color: boolean): string {
  const lines = session.pullRequests.map((pullRequest) => `pull request  ${oneLine(printable(pullRequest.url))}`);
  if (session.failure !== null) {
    lines.push(shade("red", `failed: ${indented(printable(session.failure.reason))}`, color), session.failure.remedy);
    if (session.failure.retryable) lines.push("a retry may help");
  } else if (session.status === "cancelled") {
    lines.push(shade("yellow", "cancelled", color));
  } else if (lines.length === 0) {
    lines.push("completed without a pull request");
  }
  return `\n${lines.filter((line) => line !== "").join("\n")}\n`;
}
