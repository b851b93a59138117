import type { RepositoryCall } from "../forge.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { notForked, untilCopied } from "../forks.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { refusedBy, wordsOf } from "../http/refusal.ts";
import { pathOn } from "../serves.ts";
import type { Repository } from "./repository.ts";

interface Bitbucket {
  readonly host: string;
  readonly webUrl: string;
  readonly call: RepositoryCall;
  /** Reads the user of the token. */
  readonly user: (signal: AbortSignal) => Promise<ForgeAnswer>;
}

/**
 * Makes a fork in the workspace of the token's user, or finds the existing one, and waits until it has branches
 * (https://developer.atlassian.com/cloud/bitbucket/rest/api-group-repositories/, Fork a repository).
 * @throws SessionError repository_access_denied if Bitbucket makes none, forge_unavailable if it takes too long
 */
export async function forkOnBitbucket(
  bitbucket: Bitbucket,
  address: RepositoryAddress,
  signal: AbortSignal,
): Promise<RepositoryAddress> {
  const { host, webUrl, call, user } = bitbucket;
  const who = await user(signal);
  if (who.status !== 200) throw refusedBy(host, who, "question for the token's user");
  // The workspace of a person is named like the account.
  const { username: workspace } = (who.body ?? {}) as { readonly username?: string };
  if (workspace === undefined)
    throw notForked(host, address, { ...who, body: { message: "the token has no account" } });
  const answer = await call(address, "POST", "/forks", signal, { body: { workspace: { slug: workspace } } });
  const exists = answer.status === 400 && /already (?:have|exists)/iu.test(wordsOf(answer.body));
  const made = exists ? await ownFork(bitbucket, address, workspace, signal) : answer.status === 201 ? answer : null;
  if (made === null) throw notForked(host, address, answer);
  const { full_name: path = "" } = (made.body ?? {}) as Partial<Repository>;
  const fork = parseRepositoryUrl(`${webUrl}/${path}`);
  if (isAddressProblem(fork) || fork.path.toLowerCase() === address.path.toLowerCase())
    throw notForked(host, address, made);
  await untilCopied(host, fork, signal, async () => {
    const { status, body } = await call(fork, "GET", "/refs/branches?pagelen=1", signal);
    const { values } = (body ?? {}) as { readonly values?: unknown };
    return status === 200 && Array.isArray(values) && values.length > 0;
  });
  return fork;
}

/** The fork that the token's user has already; null if the repository of that name is none. */
async function ownFork(
  { webUrl, call }: Bitbucket,
  address: RepositoryAddress,
  workspace: string,
  signal: AbortSignal,
): Promise<ForgeAnswer | null> {
  const upstream = pathOn(webUrl, address);
  const named = parseRepositoryUrl(`${webUrl}/${workspace}/${upstream.split("/").at(-1) ?? ""}`);
  if (isAddressProblem(named)) return null;
  const found = await call(named, "GET", "", signal);
  const { parent } = (found.body ?? {}) as Partial<Repository>;
  return found.status === 200 && parent?.full_name?.toLowerCase() === upstream.toLowerCase() ? found : null;
}
