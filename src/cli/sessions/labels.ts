import type { Command } from "commander";
import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import { findSession } from "../remote/session-id.ts";
import { collect } from "../terminal/collect.ts";
import type { CommandContext } from "../terminal/commands.ts";
import { printable } from "../../printable.ts";
import { json } from "../terminal/json.ts";

interface LabelOptions extends ConnectionFlags {
  readonly add?: string[];
  readonly remove?: string[];
  readonly json?: true;
}

/** Adds the commands that keep the list of sessions in order: `labels`, `archive` and `unarchive`. */
export function addLabelCommands(program: Command, { terminal }: CommandContext): void {
  const labels = program
    .command("labels <session> [labels...]")
    .description("print what a session is found by, or set it: all labels, or those to add and remove")
    .option("--add <label>", "a label that it gets; may be repeated", collect)
    .option("--remove <label>", "a label that it loses; may be repeated", collect);
  withJsonFlag(withConnectionFlags(labels)).action((session: string, given: string[], options: LabelOptions) =>
    onServer(options, terminal, async ({ client }) => {
      const id = await findSession(client, session);
      const changed = await change(client, id, given, options);
      terminal.write(options.json === true ? json(changed) : `${printable(changed.labels.join(", "))}\n`);
    }),
  );
  const verbs = {
    archive: "take a session that has ended out of the usual list",
    unarchive: "bring an archived session back to the usual list",
  } as const;
  for (const verb of ["archive", "unarchive"] as const) {
    const command = program.command(`${verb} <session...>`).description(verbs[verb]);
    withJsonFlag(withConnectionFlags(command)).action((sessions: string[], options: LabelOptions) =>
      onServer(options, terminal, async ({ client }) => {
        for (const session of sessions) {
          const changed = await client.session[verb](await findSession(client, session));
          terminal.write(options.json === true ? json(changed) : `${verb}d ${changed.id}\n`);
        }
      }),
    );
  }
}

function change(client: Client, id: string, given: readonly string[], { add, remove }: LabelOptions) {
  if (add !== undefined || remove !== undefined) {
    if (given.length > 0) throw new InvalidInputError("labels: give all of them, or --add and --remove instead");
    return client.session.labels(id, { ...(add && { add }), ...(remove && { remove }) });
  }
  return given.length === 0 ? client.session.get(id) : client.session.labels(id, { labels: [...given] });
}
