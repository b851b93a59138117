import type { RepositoryCall } from "../forge.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { notForked, untilCopied } from "../forks.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { cloneAddressOf, isSamePlace, repositoryPlaceOf } from "./place.ts";
import type { Repository } from "./shapes.ts";

interface DataCenter {
  readonly host: string;
  readonly webUrl: string;
  readonly call: RepositoryCall;
}

/**
 * Makes a fork in the personal project of the token's user, or finds the existing one, and waits until it has branches.
 * @throws SessionError repository_access_denied if the server makes none, forge_unavailable if it takes too long
 */
export async function forkOnDataCenter(
  server: DataCenter,
  address: RepositoryAddress,
  signal: AbortSignal,
): Promise<RepositoryAddress> {
  const { host, webUrl, call } = server;
  const answer = await call(address, "POST", "", signal, { body: {} });
  // The description says 400 of a fork that is there, and servers answer 409.
  const mayExist = answer.status === 409 || answer.status === 400;
  const made = mayExist ? await ownFork(server, address, answer, signal) : answer.status === 201 ? answer : null;
  if (made === null) throw notForked(host, address, answer);
  const { project, slug = "" } = (made.body ?? {}) as Partial<Repository>;
  const place = { project: project?.key ?? "", slug };
  const fork = cloneAddressOf(webUrl, place);
  if (fork === null || isSamePlace(place, repositoryPlaceOf(webUrl, address))) throw notForked(host, address, made);
  await untilCopied(host, fork, signal, async () => {
    const { status, body } = await call(fork, "GET", "/branches?limit=1", signal);
    const { values } = (body ?? {}) as { readonly values?: unknown };
    return status === 200 && Array.isArray(values) && values.length > 0;
  });
  return fork;
}

/** The fork that the token's user has already, whose name each answer has in a header; null if that repository is none. */
async function ownFork(
  { webUrl, call }: DataCenter,
  address: RepositoryAddress,
  { headers }: ForgeAnswer,
  signal: AbortSignal,
): Promise<ForgeAnswer | null> {
  const user = headers.get("x-ausername");
  const upstream = repositoryPlaceOf(webUrl, address);
  const named = user === null ? null : cloneAddressOf(webUrl, { project: `~${user}`, slug: upstream.slug });
  if (named === null) return null;
  const found = await call(named, "GET", "", signal);
  const { origin } = (found.body ?? {}) as Partial<Repository>;
  const isFork = origin !== undefined && isSamePlace({ project: origin.project.key, slug: origin.slug }, upstream);
  return found.status === 200 && isFork ? found : null;
}
