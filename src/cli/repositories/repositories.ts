import type { Command } from "commander";
import type { OfferedRepository } from "../../domain/repositories/choice.ts";
import type { Repository } from "../../domain/repositories/repository.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import { allRepositories, findRepository } from "../remote/repository-id.ts";
import { followTo } from "../sessions/follow.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { printable } from "../../printable.ts";
import { json } from "../terminal/json.ts";
import { table } from "../terminal/table.ts";

interface Options extends ConnectionFlags {
  readonly json?: true;
}

/** Adds the command `repositories`. */
export function addRepositoriesCommand(program: Command, { terminal, finish }: CommandContext): void {
  const repositories = program.command("repositories").description("list repositories, and what their sessions reach");
  const list = repositories.command("list", { isDefault: true }).description("list repositories");
  withJsonFlag(withConnectionFlags(list)).action((options: Options) =>
    onServer(options, terminal, async ({ client }) => {
      const found = await allRepositories(client);
      terminal.write(options.json === true ? json({ codeRepositories: found }) : repositoriesTable(found, terminal));
    }),
  );
  const search = repositories
    .command("search [words]")
    .description("list what your forges have, connected or not, by a part of the name");
  withJsonFlag(withConnectionFlags(search)).action((words: string | undefined, options: Options) =>
    onServer(options, terminal, async ({ client }) => {
      const found = await client.repository.search(words ?? "");
      terminal.write(options.json === true ? json(found) : offeredTable(found.repositories, terminal));
      for (const { forge, text } of found.problems) terminal.warn(`${printable(forge)}: ${printable(text)}\n`);
    }),
  );
  const trySetup = repositories
    .command("try-setup <repository>")
    .description("run a repository's setup in a sandbox, without an agent, and print what it prints")
    .option("--branch <branch>", "whose files it works on");
  withJsonFlag(withConnectionFlags(trySetup)).action(
    (repository: string, options: Options & { readonly branch?: string }) =>
      onServer(options, terminal, async ({ client }) => {
        const { id } = await findRepository(client, repository);
        const session = await client.repository.trySetup(
          id,
          options.branch === undefined ? {} : { branch: options.branch },
        );
        if (options.json === true) terminal.write(json(session));
        else finish(await followTo(client, session.id, terminal));
      }),
  );
  const allow = repositories
    .command("allow <repository> <host>")
    .description("let a repository's sessions reach a host, written <host>:<port>");
  withJsonFlag(withConnectionFlags(allow)).action((repository: string, host: string, options: Options) =>
    onServer(options, terminal, async ({ client }) => {
      const { id } = await findRepository(client, repository);
      const answer = await client.repository.allow(id, host);
      terminal.write(options.json === true ? json(answer) : `allowed: ${answer.egress.join(", ")}\n`);
    }),
  );
}

function offeredTable(repositories: readonly OfferedRepository[], { color, columns }: Terminal): string {
  if (repositories.length === 0) return "no repositories\n";
  return table(
    repositories,
    [
      { heading: "NAME", of: ({ name }) => name },
      { heading: "FORGE", of: ({ forge }) => forge },
      { heading: "BRANCH", of: ({ defaultBranch }) => defaultBranch ?? "" },
      { heading: "URL", of: ({ url }) => url, shrinks: true },
    ],
    { width: columns, color },
  );
}

function repositoriesTable(repositories: readonly Repository[], { color, columns }: Terminal): string {
  if (repositories.length === 0) return "no repositories\n";
  return table(
    repositories,
    [
      { heading: "NAME", of: ({ name }) => name },
      { heading: "FORGE", of: ({ integration }) => integration?.type ?? "" },
      { heading: "BRANCH", of: ({ branch }) => branch ?? "" },
      { heading: "URL", of: ({ url }) => url, shrinks: true },
      { heading: "ID", of: ({ id }) => id },
    ],
    { width: columns, color },
  );
}
