import { SessionError } from "../../domain/errors/errors.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { refusedBy } from "../http/refusal.ts";
import type { AzureApi } from "./api.ts";

/** Fields used of a repository (https://learn.microsoft.com/rest/api/azure/devops/git/repositories/get-repository). */
export interface Repository {
  readonly id: string;
  readonly name: string;
  readonly project: { readonly id: string; readonly name: string };
  /** A full name of a ref; there is none while it is empty. */
  readonly defaultBranch?: string;
  readonly isDisabled?: boolean;
  readonly isFork?: boolean;
  readonly parentRepository?: { readonly id: string } | null;
}

/** @throws SessionError if there is no such repository, or the token may not see it */
export async function readRepository(
  api: AzureApi,
  address: RepositoryAddress,
  signal: AbortSignal,
  onceWithinMs?: number,
): Promise<Repository> {
  const url = api.repositoryUrl(api.repositoryOf(address), "");
  const answer = await api.call(url, "GET", signal, onceWithinMs === undefined ? {} : { onceWithinMs });
  if (answer.status !== 200) throw refusedBy(api.host, answer);
  return knownRepository(api.host, answer);
}

/** @throws SessionError forge_unavailable if something that answers as a repository is none */
function knownRepository(host: string, { body }: ForgeAnswer): Repository {
  const { id, name, project } = (body ?? {}) as Partial<Repository>;
  if (typeof id === "string" && typeof name === "string" && typeof project?.id === "string") return body as Repository;
  throw new SessionError({
    code: "forge_unavailable",
    reason: `${host} answered without the repository that it was asked for.`,
    retryable: true,
    remedy: "Retry in a moment. If it stays so, check apiUrl in the forge's settings (docs/forges.md).",
  });
}
