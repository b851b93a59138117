import type { Command } from "commander";
import { connectToServer, withConnectionFlags, type ConnectionFlags } from "../remote/connect.ts";
import { printable } from "../../printable.ts";
import type { CommandContext } from "../terminal/commands.ts";

/** Adds the command `mcp`. */
export function addMcpCommand(program: Command, { terminal }: CommandContext, version: string): void {
  withConnectionFlags(
    program
      .command("mcp")
      .description("serve the server's MCP tools on stdin and stdout, for an agent that starts this command"),
  ).action(async (options: ConnectionFlags) => {
    const { client } = await connectToServer(options, terminal);
    const { serveMcpOnStdio } = await import("../../mcp/stdio.ts");
    await serveMcpOnStdio({
      client,
      version,
      signal: terminal.signal,
      // stdout is the protocol's.
      onError: (error) => terminal.warn(`offstage: ${printable(error.message)}\n`),
    });
  });
}
