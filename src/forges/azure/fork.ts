import { azurePath } from "../../domain/repositories/azure-address.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { notForked, untilCopied } from "../forks.ts";
import { refusedBy } from "../http/refusal.ts";
import { accountOf } from "./account.ts";
import type { AzureApi } from "./api.ts";
import { readRepository, type Repository } from "./repository.ts";

/**
 * Makes a fork in the repository's own project, named after the token's user as Azure DevOps proposes it (`shop.ada`), or finds it,
 * and waits until it has branches (https://learn.microsoft.com/rest/api/azure/devops/git/repositories/create).
 * @param webUrl the address of the server
 * @throws SessionError repository_access_denied if none is made, forge_unavailable if it takes too long
 */
export async function forkOnAzure(
  api: AzureApi,
  webUrl: string,
  address: RepositoryAddress,
  signal: AbortSignal,
): Promise<RepositoryAddress> {
  const upstream = await readRepository(api, address, signal);
  const named = api.repositoryOf(address);
  const name = `${named.repository}.${await forkSuffix(api, named.collection, signal)}`;
  const fork = parseRepositoryUrl(`${webUrl}/${azurePath({ ...named, repository: name })}`);
  const { id, project, defaultBranch } = upstream;
  const source = defaultBranch === undefined ? "" : `?sourceRef=${encodeURIComponent(defaultBranch)}`;
  const answer = await api.call(api.urlOf(named.collection, `/_apis/git/repositories${source}`), "POST", signal, {
    body: { name, project: { id: project.id }, parentRepository: { id, project: { id: project.id } } },
  });
  if (isAddressProblem(fork)) throw notForked(api.host, address, answer);
  const isThere = answer.status === 409 && (await isForkOf(api, fork, upstream, signal));
  if (answer.status !== 201 && !isThere) throw notForked(api.host, address, answer);
  await untilCopied(api.host, fork, signal, async () => {
    const refs = api.repositoryUrl(api.repositoryOf(fork), "/refs?filter=heads/&$top=1");
    const { status, body } = await api.call(refs, "GET", signal);
    return status === 200 && Array.isArray(body) && body.length > 0;
  });
  return fork;
}

/** The user's name as it may be part of a repository's name, without the host of an address of e-mail. */
async function forkSuffix(api: AzureApi, collection: string, signal: AbortSignal): Promise<string> {
  const answer = await api.call(api.urlOf(collection, "/_apis/connectionData", "7.0-preview"), "GET", signal);
  if (answer.status !== 200) throw refusedBy(api.host, answer);
  const name =
    accountOf(answer.body)
      ?.split("@")[0]
      ?.replaceAll(/[^\p{L}\p{N}_-]+/gu, "-") ?? "";
  return name === "" ? "offstage" : name.slice(0, 30).toWellFormed();
}

/** Whether a repository that has the name already is a fork of this one. */
async function isForkOf(
  api: AzureApi,
  fork: RepositoryAddress,
  upstream: Repository,
  signal: AbortSignal,
): Promise<boolean> {
  const url = api.repositoryUrl(api.repositoryOf(fork), "?includeParent=true");
  const { status, body } = await api.call(url, "GET", signal);
  return status === 200 && (body as Repository | null)?.parentRepository?.id === upstream.id;
}
