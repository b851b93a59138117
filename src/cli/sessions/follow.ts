import type { Command } from "commander";
import type { Client } from "../../client.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { onServer, withConnectionFlags, type ConnectionFlags } from "../remote/connect.ts";
import { findSession } from "../remote/session-id.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { createEventLines, shade } from "../../event-lines.ts";
import { indented, oneLine, printable } from "../../printable.ts";
import { exitCodes } from "../terminal/exit-code.ts";

/** Adds the command `follow`. */
export function addFollowCommand(program: Command, { terminal, finish }: CommandContext): void {
  const command = program
    .command("follow <session>")
    .description("print what happened in a session and what happens, until it ends");
  withConnectionFlags(command).action((session: string, options: ConnectionFlags) =>
    onServer(options, terminal, async ({ client }) => {
      finish(await followTo(client, await findSession(client, session), terminal));
    }),
  );
}

/**
 * Prints a session's events as they come, and its result; returns when the session ends, or on an interrupt.
 * @param after number of the last event that is not printed any more
 * @returns the exit code for the session's result
 */
export async function followTo(client: Client, id: string, terminal: Terminal, after = 0): Promise<number> {
  try {
    return await follow(client, id, terminal, after);
  } catch (error) {
    if (!terminal.signal.aborted) throw error;
    terminal.warn(`\nstopped following; session ${id} continues\n`);
    return exitCodes.interrupted;
  }
}

async function follow(client: Client, sessionId: string, terminal: Terminal, after: number): Promise<number> {
  const lines = createEventLines(terminal.color);
  for await (const event of client.streamEvents(sessionId, { signal: terminal.signal, after })) {
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
