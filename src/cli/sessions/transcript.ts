import type { Command } from "commander";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import { findSession } from "../remote/session-id.ts";
import type { CommandContext } from "../terminal/commands.ts";
import { printable } from "../../printable.ts";

/** Adds the command `transcript`. */
export function addTranscriptCommand(program: Command, { terminal }: CommandContext): void {
  const command = program
    .command("transcript <session>")
    .description("print what was said and done in a session, in Markdown");
  withJsonFlag(withConnectionFlags(command)).action(
    (session: string, options: ConnectionFlags & { readonly json?: true }) =>
      onServer(options, terminal, async ({ client }) => {
        const id = await findSession(client, session);
        const text = await client.session.transcript(id, options.json === true ? "json" : "markdown");
        terminal.write(options.json === true ? `${text}\n` : printable(text));
      }),
  );
}
