import type { Command } from "commander";
import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import { lastEvent } from "../remote/last-event.ts";
import { findSession } from "../remote/session-id.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { parseDollars } from "../terminal/dollars.ts";
import { json } from "../terminal/json.ts";
import { followTo } from "./follow.ts";

interface ChangeOptions extends ConnectionFlags {
  readonly json?: true;
  readonly follow?: true;
}

/** Adds the commands that change a session: `send`, `withdraw`, `cancel`, `retry`, `budget` and `delete`. */
export function addChangeCommands(program: Command, context: CommandContext): void {
  const send = program
    .command("send <session> <message>")
    .description("tell the agent what to do next, also after the session ended; the message - is read from stdin");
  withFollow(send).action((session: string, given: string, options: ChangeOptions) =>
    change(session, options, context, async (client, id) =>
      client.session.message(id, { message: given === "-" ? await context.terminal.readInput() : given }),
    ),
  );
  withFollow(
    program.command("retry <session>").description("queue a session that failed or was cancelled, or a draft"),
  ).action((session: string, options: ChangeOptions) =>
    change(session, options, context, (client, id) => client.session.queue(id)),
  );
  const withdraw = program
    .command("withdraw <session> [message]")
    .description("take back a message that the agent has not begun with: the last one, or that of an id");
  withFlags(withdraw).action((session: string, message: string | undefined, options: ChangeOptions) =>
    change(session, options, context, async (client, id) =>
      client.session.withdraw(id, message ?? (await lastPending(client, id))),
    ),
  );
  withFlags(program.command("cancel <session>").description("stop a session; its work so far is kept")).action(
    (session: string, options: ChangeOptions) =>
      change(session, options, context, (client, id) => client.session.cancel(id)),
  );
  const budget = program
    .command("budget")
    .argument("<session>")
    .argument("<dollars>", "most US dollars in all; none: the organization's budget counts", parseDollars)
    .description("change what a session may spend on models; one that waits for it goes on");
  withFlags(budget).action((session: string, budgetUsd: number | null, options: ChangeOptions) =>
    change(session, options, context, (client, id) => client.session.setBudget(id, { budgetUsd })),
  );
  withFlags(
    program.command("delete <session>").description("delete a session that has ended, with all that is kept of it"),
  ).action((session: string, options: ChangeOptions) =>
    onServer(options, context.terminal, async ({ client }) => {
      const id = await findSession(client, session);
      await client.session.delete(id);
      context.terminal.write(options.json === true ? json({ id }) : `deleted ${id}\n`);
    }),
  );
}

const withFlags = (command: Command): Command => withJsonFlag(withConnectionFlags(command));

const withFollow = (command: Command): Command =>
  withFlags(command.option("--follow", "print what happens from then on until the session ends"));

function change(
  session: string,
  options: ChangeOptions,
  { terminal, finish }: CommandContext,
  act: (client: Client, id: string) => ReturnType<Client["session"]["get"]>,
): Promise<void> {
  return onServer(options, terminal, async ({ client }) => {
    const id = await findSession(client, session);
    const before = options.follow === true ? await lastEvent(client, id) : 0;
    const changed = await act(client, id);
    terminal.write(options.json === true ? json(changed) : `${changed.status}  ${changed.htmlUrl}\n`);
    if (options.follow === true) finish(await followTo(client, id, followed(options, terminal), before));
  });
}

/** With `--json` stdout has the session alone. */
function followed(options: ChangeOptions, terminal: Terminal): Terminal {
  return options.json === true ? { ...terminal, write: terminal.warn, color: false } : terminal;
}

/** Id of the newest message that no turn has taken. */
async function lastPending(client: Client, id: string): Promise<string> {
  const { messages } = await client.session.messages(id, { limit: 100 });
  const message = messages.find(({ status }) => status === "pending");
  if (message === undefined) throw new InvalidInputError("no message of the session waits for the agent");
  return message.id;
}
