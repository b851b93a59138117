import type { RepositoryCall } from "../forge.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import { isAddressProblem, parseRepositoryUrl, type RepositoryAddress } from "../../domain/repositories/repository.ts";
import { notForked, untilCopied } from "../forks.ts";
import type { ForgeAnswer } from "../http/http.ts";
import { pathOn } from "../serves.ts";
import { refusedBy } from "../http/refusal.ts";
import type { Project } from "./project.ts";

interface GitLab {
  readonly host: string;
  readonly webUrl: string;
  readonly call: RepositoryCall;
  /** Reads the user of the token. */
  readonly user: (signal: AbortSignal) => Promise<ForgeAnswer>;
}

/**
 * Makes a fork for the token's user, or finds the existing one, and waits until GitLab has copied the repository
 * (https://docs.gitlab.com/api/project_forks/).
 * @throws SessionError repository_access_denied if GitLab makes none or can't copy it, forge_unavailable if it takes too long
 */
export async function forkOnGitLab(
  gitlab: GitLab,
  address: RepositoryAddress,
  signal: AbortSignal,
): Promise<RepositoryAddress> {
  const answer = await gitlab.call(address, "POST", "/fork", signal, { body: {} });
  const made = answer.status === 409 ? await ownFork(gitlab, address, signal) : answer.status === 201 ? answer : null;
  if (made === null) throw notForked(gitlab.host, address, answer);
  const { path_with_namespace: path = "" } = (made.body ?? {}) as Partial<Project>;
  const fork = parseRepositoryUrl(`${gitlab.webUrl}/${path}`);
  if (isAddressProblem(fork) || fork.path.toLowerCase() === address.path.toLowerCase())
    throw notForked(gitlab.host, address, made);
  await untilCopied(gitlab.host, fork, signal, async () => {
    const { status, body } = await gitlab.call(fork, "GET", "", signal);
    const { import_status: copying, import_error: problem } = (body ?? {}) as Partial<Project>;
    if (copying === "failed") throw notCopied(gitlab.host, address, problem ?? "it gave no reason");
    return status === 200 && (copying === "finished" || copying === "none");
  });
  return fork;
}

/** The fork that the token's user has already; null if the project of that name is none. */
async function ownFork(
  { host, webUrl, call, user }: GitLab,
  address: RepositoryAddress,
  signal: AbortSignal,
): Promise<ForgeAnswer | null> {
  const who = await user(signal);
  if (who.status !== 200) throw refusedBy(host, who);
  const { username } = who.body as { readonly username: string };
  const upstream = pathOn(webUrl, address);
  const named = parseRepositoryUrl(`${webUrl}/${username}/${upstream.split("/").at(-1) ?? ""}`);
  if (isAddressProblem(named)) return null;
  const found = await call(named, "GET", "", signal);
  const { forked_from_project: origin } = (found.body ?? {}) as Partial<Project>;
  const isFork = origin?.path_with_namespace?.toLowerCase() === upstream.toLowerCase();
  return found.status === 200 && isFork ? found : null;
}

function notCopied(host: string, { path }: RepositoryAddress, problem: string): SessionError {
  return new SessionError({
    code: "repository_access_denied",
    reason: `${host} could not copy ${path} into its fork: ${problem.slice(0, 500).toWellFormed()}`,
    retryable: true,
    remedy: "Delete the fork on GitLab, then retry.",
  });
}
