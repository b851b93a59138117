import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { Repository } from "../../domain/repositories/repository.ts";
import { repositoryKeyOf } from "../checkout/checkout.ts";

/**
 * Finds a repository by its id, name or address.
 * @throws InvalidInputError if there is none, or several have the name
 */
export async function findRepository(client: Client, given: string): Promise<Repository> {
  const all = await allRepositories(client);
  const found = all.filter(
    ({ id, name, url }) => id === given || name === given || repositoryKeyOf(url) === repositoryKeyOf(given),
  );
  const [repository] = found;
  if (found.length === 1 && repository !== undefined) return repository;
  const names = found.map(({ url }) => url).join(", ");
  throw new InvalidInputError(
    found.length === 0
      ? `there is no repository "${given}": \`offstage repositories list\` shows them`
      : `"${given}" stands for ${found.length} repositories: ${names}`,
  );
}

/** All repositories of the organization. */
export async function allRepositories(client: Client): Promise<readonly Repository[]> {
  const found: Repository[] = [];
  let cursor: string | undefined;
  for (;;) {
    const { codeRepositories, nextCursor } = await client.repository.list({ limit: 100, cursor });
    found.push(...codeRepositories);
    if (nextCursor === null) return found;
    cursor = nextCursor;
  }
}
