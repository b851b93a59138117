import type { Command } from "commander";
import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { Repository } from "../../domain/repositories/repository.ts";
import { keyOf } from "../checkout/checkout.ts";
import { onServer, withConnectionFlags, withJsonFlag, type ConnectionFlags } from "../remote/connect.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { json } from "../terminal/json.ts";
import { table } from "../terminal/table.ts";

interface Options extends ConnectionFlags {
  readonly json?: true;
}

/** Adds the command `repositories`. */
export function addRepositoriesCommand(program: Command, { terminal }: CommandContext): void {
  const repositories = program.command("repositories").description("list repositories, and what their sessions reach");
  const list = repositories.command("list", { isDefault: true }).description("list repositories");
  withJsonFlag(withConnectionFlags(list)).action((options: Options) =>
    onServer(options, terminal, async ({ client }) => {
      const found = await allRepositories(client);
      terminal.write(options.json === true ? json({ codeRepositories: found }) : repositoriesTable(found, terminal));
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

/**
 * Finds a repository by its id, name or address.
 * @throws InvalidInputError if there is none, or several have the name
 */
export async function findRepository(client: Client, given: string): Promise<Repository> {
  const all = await allRepositories(client);
  const found = all.filter(({ id, name, url }) => id === given || name === given || keyOf(url) === keyOf(given));
  const [repository] = found;
  if (found.length === 1 && repository !== undefined) return repository;
  const names = found.map(({ url }) => url).join(", ");
  throw new InvalidInputError(
    found.length === 0
      ? `there is no repository "${given}": \`offstage repositories list\` shows them`
      : `"${given}" stands for ${found.length} repositories: ${names}`,
  );
}

async function allRepositories(client: Client): Promise<readonly Repository[]> {
  const found: Repository[] = [];
  let cursor: string | undefined;
  for (;;) {
    const { codeRepositories, nextCursor } = await client.repository.list({ limit: 100, cursor });
    found.push(...codeRepositories);
    if (nextCursor === null) return found;
    cursor = nextCursor;
  }
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
