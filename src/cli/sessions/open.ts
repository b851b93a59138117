import type { Command } from "commander";
import { onServer, withConnectionFlags, type ConnectionFlags } from "../remote/connect.ts";
import { findSession } from "../remote/session-id.ts";
import type { CommandContext } from "../terminal/commands.ts";
import { printable } from "../../printable.ts";
import { exitCodes } from "../terminal/exit-code.ts";

/** Adds the command `open`. */
export function addOpenCommand(program: Command, { terminal, finish }: CommandContext): void {
  const command = program
    .command("open <session>")
    .description("open a session's page in the browser, or its pull request")
    .option("--pull-request", "the pull request instead");
  withConnectionFlags(command).action((session: string, options: ConnectionFlags & { readonly pullRequest?: true }) =>
    onServer(options, terminal, async ({ client }) => {
      const found = await client.session.get(await findSession(client, session));
      const url = options.pullRequest === true ? found.pullRequests[0]?.url : found.htmlUrl;
      if (url === undefined) {
        terminal.warn("the session has no pull request yet\n");
        return finish(exitCodes.failed);
      }
      terminal.write(`${printable(url)}\n`);
      // A forge's answer could name any program of this machine.
      const isPage = /^https?:$/u.test(URL.parse(url)?.protocol ?? "");
      if (!isPage || !(await terminal.openPage(url))) terminal.warn("no browser can be opened from here\n");
    }),
  );
}
