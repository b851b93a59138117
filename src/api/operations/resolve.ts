import { splitAgentName } from "../../domain/agent.ts";
import type { Automation } from "../../domain/automation.ts";
import { ConflictError, InvalidInputError } from "../../domain/errors.ts";
import { allowsRepository } from "../../domain/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repository.ts";
import { isUuid } from "../../domain/uuid.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { createRepository, findRepositories, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import type { ApiOptions } from "../http/context.ts";

const repositoryLimit = 20;

/** @throws InvalidInputError naming `field`, where it is no repository's URL or a local one that is not allowed */
export function readAddress(options: ApiOptions, field: string, url: string): RepositoryAddress {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new InvalidInputError(`${field} ${address.problem}`);
  if (address.local && !options.allowLocalRepositories) {
    throw new InvalidInputError(
      `${field} is a local path: the operator must allow local repositories (OFFSTAGE_ALLOW_LOCAL_REPOSITORIES=true)`,
    );
  }
  return address;
}

/**
 * The repositories that a request names by URL and by id, each once, in the order named.
 * A URL that is not connected yet is connected now.
 * @throws InvalidInputError naming the entry
 */
export async function resolveRepositories(
  options: ApiOptions,
  organizationId: string,
  request: {
    readonly repositories?: readonly string[] | undefined;
    readonly codeRepoIds?: readonly string[] | undefined;
  },
): Promise<RepositoryRecord[]> {
  const { repositories: urls = [], codeRepoIds: ids = [] } = request;
  // All is checked before anything is connected: a request that is refused leaves nothing behind.
  const named = urls.map((url, index) => {
    const field = `repositories.${index}`;
    return { field, address: readAddress(options, field, url) };
  });
  const unknown = ids.find((id) => !isUuid(id));
  const owned = unknown === undefined ? await findRepositories(options.database, organizationId, ids) : [];
  // What was connected once may not be any more: by another version, or before local repositories were forbidden.
  const connected = owned.map(({ id, url }) => ({
    field: "codeRepoIds",
    address: readAddress(options, `codeRepoIds: the address of ${id}`, url),
  }));
  if (named.length + connected.length > 0) {
    const patterns = await allowedRepositories(options.database, organizationId);
    for (const { field, address } of [...named, ...connected]) requireAllowed(patterns, field, address);
  }
  const missing = unknown ?? ids.find((id) => !owned.some((repository) => repository.id === id.toLowerCase()));
  if (missing !== undefined) {
    throw new InvalidInputError(
      `codeRepoIds: this organization has no repository ${missing}: see GET /repository/list`,
    );
  }
  const addresses = new Map<string, RepositoryAddress>();
  for (const { address } of named) {
    const key = options.repositoryKeyOf(address);
    if (!addresses.has(key)) addresses.set(key, address);
  }
  const count = new Set([...addresses.keys(), ...connected.map(({ address }) => options.repositoryKeyOf(address))])
    .size;
  if (count > repositoryLimit) {
    throw new InvalidInputError(
      `repositories and codeRepoIds name ${count} repositories: a session can have at most ${repositoryLimit}`,
    );
  }
  const resolved = new Map<string, RepositoryRecord>();
  for (const [key, { cloneUrl, name }] of addresses) {
    const input = { url: cloneUrl, key, name, branch: null, description: null };
    const repository = await createRepository(options.database, organizationId, input);
    resolved.set(repository.id, repository);
  }
  for (const id of ids) {
    const repository = owned.find((candidate) => candidate.id === id.toLowerCase());
    if (repository !== undefined) resolved.set(repository.id, repository);
  }
  return [...resolved.values()];
}

/**
 * @param field of the request, for the message
 * @throws InvalidInputError if the organization's list does not let the repository be named
 */
export function requireAllowed(patterns: readonly string[] | null, field: string, address: RepositoryAddress): void {
  if (allowsRepository(patterns, address)) return;
  throw new InvalidInputError(
    `${field}: ${address.cloneUrl.slice(0, 200)} is not on the list of repositories that this organization allows: an admin can add it in the settings`,
  );
}

/** @throws InvalidInputError naming `field`, with the list of providers, where the agent's is none of them */
export async function checkAgent(
  options: ApiOptions,
  agent: string | null | undefined,
  field = "agent",
): Promise<void> {
  if (agent == null) return;
  const known = (await options.agents()).map(({ id }) => id);
  const { provider } = splitAgentName(agent);
  if (!known.includes(provider)) {
    throw new InvalidInputError(`${field}: there is no provider ${provider}; the providers are ${known.join(", ")}`);
  }
}

/** @throws ConflictError where the automation is paused */
export function requireNotPaused({ paused, macro }: Pick<Automation, "paused" | "macro">): void {
  if (paused) throw new ConflictError(`automation ${macro} is paused: resume it first`);
}
