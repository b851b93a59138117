import { Option, type Command } from "commander";
import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { secretPhases, type Secret, type SecretPhase } from "../../domain/environments/secret.ts";
import { allPages } from "../remote/all-pages.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { parseId } from "../terminal/id.ts";
import { json } from "../terminal/json.ts";
import { table } from "../terminal/table.ts";
import { findRepository } from "../remote/repository-id.ts";

interface Options extends ConnectionFlags {
  readonly json?: true;
}

interface CreateOptions extends Options {
  readonly repository?: string;
  readonly phase?: SecretPhase[];
}

/** Adds `list`, `create` and `delete` to the command `secrets`. */
export function addSecretsCommands(secrets: Command, { terminal }: CommandContext): void {
  const list = secrets.command("list").description("list secrets, without their values");
  withJsonFlag(withConnectionFlags(list)).action((options: Options) =>
    onServer(options, terminal, async ({ client }) => {
      const found = await allSecrets(client);
      terminal.write(
        options.json === true ? json({ secrets: found, nextCursor: null }) : secretsTable(found, terminal),
      );
    }),
  );
  const create = secrets
    .command("create <name>")
    .description("keep a secret; its value is asked for, or read from a pipe")
    .option("--repository <repository>", "only for this one, by its name, id or address (default: for all)")
    .addOption(
      new Option(
        "--phase <phase...>",
        "in whose environment it is (default: setup, which the agent does not see)",
      ).choices(secretPhases),
    );
  withJsonFlag(withConnectionFlags(create)).action((name: string, options: CreateOptions) =>
    onServer(options, terminal, async ({ client }) => {
      const { repository, phase: phases } = options;
      const repositoryId = repository === undefined ? null : (await findRepository(client, repository)).id;
      // A pipe such as `echo` ends the value with a line's end that is not meant.
      const value = (await terminal.readSecret(`Value of ${name}: `)).replace(/\r?\n$/u, "");
      if (value === "") throw new InvalidInputError("no value was given: type it, or pipe it in");
      const secret = await client.secret.create({ name, value, repositoryId, ...(phases !== undefined && { phases }) });
      terminal.write(options.json === true ? json(secret) : `kept ${secret.name}  ${secret.id}\n`);
    }),
  );
  const remove = secrets
    .command("delete")
    .argument("<id>", "id from `secrets list`", parseId("a secret"))
    .description("delete a secret; sessions that begin later don't get it");
  withJsonFlag(withConnectionFlags(remove)).action((id: string, options: Options) =>
    onServer(options, terminal, async ({ client }) => {
      const secret = await client.secret.delete(id);
      terminal.write(options.json === true ? json(secret) : `deleted ${secret.name}\n`);
    }),
  );
}

function allSecrets(client: Client): Promise<readonly Secret[]> {
  return allPages(async (cursor) => {
    const { secrets: items, nextCursor } = await client.secret.list({ limit: 100, cursor });
    return { items, nextCursor };
  });
}

function secretsTable(secrets: readonly Secret[], { color, columns }: Terminal): string {
  if (secrets.length === 0) return "no secrets\n";
  return table(
    secrets,
    [
      { heading: "NAME", of: ({ name }) => name, shrinks: true },
      { heading: "PHASES", of: ({ phases }) => phases.join(", ") },
      { heading: "REPOSITORY", of: ({ repositoryId }) => repositoryId ?? "all" },
      { heading: "ID", of: ({ id }) => id },
    ],
    { width: columns, color },
  );
}
