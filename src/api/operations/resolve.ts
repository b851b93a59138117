import { splitAgentName, usualLevels } from "../../domain/agents/agent.ts";
import type { Automation } from "../../domain/automations/automation.ts";
import { fanOutLimit } from "../../domain/automations/run.ts";
import { ConflictError, InvalidInputError } from "../../domain/errors/errors.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import { repositoryRefusal, type AllowedRepositories } from "../../domain/repositories/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { createRepository, findRepositories, type RepositoryRecord } from "../../store/repositories/repositories.ts";
import type { ApiOptions } from "../http/context.ts";

const repositoryLimit = 20;
const mostOfSession = `a session can have at most ${repositoryLimit}`;

/** @throws InvalidInputError if an automation has more repositories than one session can have, and is to fan out no more */
export function requireOneSession({ repositories }: Pick<Automation, "repositories">): void {
  if (repositories.length <= repositoryLimit) return;
  throw new InvalidInputError(`fanOut: the automation has ${repositories.length} repositories, and ${mostOfSession}`);
}

/**
 * Parses a repository's URL.
 * @param field name of the request's field, for the message
 * @throws InvalidInputError if it is not a repository's URL, or is a local path and these are not allowed
 */
export function readAddress(
  options: Pick<ApiOptions, "allowLocalRepositories">,
  field: string,
  url: string,
): RepositoryAddress {
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
 * The repositories that a request names by URL and by id, each once, in that order. A URL that is not connected yet
 * gets connected.
 * @throws InvalidInputError naming the entry
 */
export async function resolveRepositories(
  options: Pick<ApiOptions, "database" | "repositoryKeyOf" | "allowLocalRepositories">,
  organizationId: string,
  request: {
    /** Whether each of them gets its own session, so that there may be more. */
    readonly fanOut?: boolean | undefined;
    readonly repositories?: readonly string[] | undefined;
    readonly codeRepoIds?: readonly string[] | undefined;
  },
): Promise<RepositoryRecord[]> {
  const { repositories: urls = [], codeRepoIds: ids = [], fanOut = false } = request;
  // Everything is checked before anything is connected, so that a rejected request changes nothing.
  const named = urls.map((url, index) => {
    const field = `repositories.${index}`;
    return { field, address: readAddress(options, field, url) };
  });
  const unknown = ids.find((id) => !isUuid(id));
  const owned = unknown === undefined ? await findRepositories(options.database, organizationId, ids) : [];
  // A connected repository may no longer be valid: another version connected it, or local repositories were forbidden
  // since.
  const connected = owned.map(({ id, url }) => ({
    field: "codeRepoIds",
    address: readAddress(options, `codeRepoIds: the address of ${id}`, url),
  }));
  if (named.length + connected.length > 0) {
    const allowed = await allowedRepositories(options.database, organizationId);
    for (const { field, address } of [...named, ...connected]) requireAllowed(allowed, field, address);
  }
  const missing = unknown ?? ids.find((id) => !owned.some((repository) => repository.id === id.toLowerCase()));
  if (missing !== undefined) {
    throw new InvalidInputError(
      `codeRepoIds: this organization has no repository ${missing}: see GET /repository/list`,
    );
  }
  const addresses = new Map<string, RepositoryAddress>();
  for (const { address } of named) {
    const key = await options.repositoryKeyOf(address, organizationId);
    if (!addresses.has(key)) addresses.set(key, address);
  }
  const keys = await Promise.all(
    connected.map(async ({ address }) => options.repositoryKeyOf(address, organizationId)),
  );
  const count = new Set([...addresses.keys(), ...keys]).size;
  if (count > (fanOut ? fanOutLimit : repositoryLimit)) {
    const most = fanOut ? `an automation that fans out can have at most ${fanOutLimit}` : mostOfSession;
    throw new InvalidInputError(`repositories and codeRepoIds name ${count} repositories: ${most}`);
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
 * Checks that the organization may use a repository.
 * @param field name of the request's field, for the message
 * @throws InvalidInputError if it may not
 */
export function requireAllowed(allowed: AllowedRepositories, field: string, address: RepositoryAddress): void {
  const refusal = repositoryRefusal(allowed, address);
  if (refusal === null) return;
  if (refusal === "server")
    throw new InvalidInputError(
      `${field}: ${address.cloneUrl.slice(0, 200)} is reached only with the server's own ssh keys or disk, which this organization does not use: name its https address, and connect its forge in the settings`,
    );
  throw new InvalidInputError(
    `${field}: ${address.cloneUrl.slice(0, 200)} is not on the list of repositories that this organization allows: an admin can add it in the settings`,
  );
}

/**
 * A suffix after the last colon of a model's name that can only be a level of reasoning: versions and tags have a
 * digit.
 */
const looksLikeLevel = /:([a-z]+)$/u;
/** Providers whose models' names have no such ending, so that it is a level that does not exist. */
const withoutTags: ReadonlySet<string> = new Set(["claudeCode", "codex", "gemini"]);

/**
 * Checks that the provider of an agent's name exists, and has the level of reasoning that the name ends with.
 * @param field name of the request's field, for the message
 * @throws InvalidInputError with the list of providers, or of levels
 */
export async function checkAgent(
  options: Pick<ApiOptions, "agents">,
  agent: string | null | undefined,
  field = "agent",
): Promise<void> {
  if (agent == null) return;
  const known = await options.agents();
  const { provider } = splitAgentName(agent);
  const found = known.find(({ id }) => id === provider);
  if (found === undefined) {
    const ids = known.map(({ id }) => id).join(", ");
    throw new InvalidInputError(`${field}: there is no provider ${provider}; the providers are ${ids}`);
  }
  const { reasoningLevels: levels = usualLevels } = found as Partial<typeof found>;
  const { model, reasoning } = splitAgentName(agent, levels);
  const level = looksLikeLevel.exec(model)?.[1];
  if (reasoning === null && level !== undefined && withoutTags.has(provider)) {
    const offered = levels.length === 0 ? "it has none" : `the levels are ${levels.join(", ")}`;
    throw new InvalidInputError(`${field}: ${provider} has no reasoning level ${level}; ${offered}`);
  }
}

/**
 * Checks that an automation is not paused.
 * @throws ConflictError
 */
export function requireNotPaused({ paused, macro }: Pick<Automation, "paused" | "macro">): void {
  if (paused) throw new ConflictError(`automation ${macro} is paused: resume it first`);
}
