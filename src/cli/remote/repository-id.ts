import type { Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { Repository } from "../../domain/repositories/repository.ts";
import { repositoryKeyOf } from "../checkout/checkout.ts";
import { allPages } from "./all-pages.ts";

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
export function allRepositories(client: Client): Promise<readonly Repository[]> {
  return allPages(async (cursor) => {
    const { codeRepositories: items, nextCursor } = await client.repository.list({ limit: 100, cursor });
    return { items, nextCursor };
  });
}
