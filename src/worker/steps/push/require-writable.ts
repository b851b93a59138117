import { SessionError } from "../../../domain/errors/errors.ts";
import type { Forge, RepositoryAccess } from "../../../forges/forge.ts";
import { addressOf } from "../../attempt/session-repositories.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import type { Clone, CloneSource, SessionRepository } from "../../clones/clone.ts";
import { git } from "../../git/git.ts";
import { ensureMirror } from "../../git/mirrors/make-mirror.ts";
import { pushAccessRefusal } from "../../git/mirrors/push.ts";
import { knownOf } from "../../git/remote-repository.ts";
import type { ClonedWork } from "../commit/export-work.ts";
import { requesterFor } from "../pull-requests/requester-opener.ts";

type Services = Pick<AttemptServices, "forgeOf" | "forks">;
type Looking = Pick<Attempt, "session" | "signal" | "emit" | "logger">;

/** The known rights on each repository, by its id; one whose forge does not report them is missing. */
export type KnownAccess = ReadonlyMap<string, RepositoryAccess>;

/**
 * Only a change here needs more than the right to push:
 * https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps.
 */
const workflows = ".github/workflows";

/**
 * Asks the forges before the first paid request what would refuse the work after the last one: a read-only repository,
 * a token that may not push or open pull requests, pull requests that are turned off, an API that does not know the
 * repository. A forge that does not say, or does not answer now, stops nothing: later steps report that. Rules for
 * pushes to the work branch come as a notice, since people may be exempt.
 * @throws SessionError repository_access_denied, repository_not_found, pull_request_refused
 */
export async function requireWritable(
  attempt: Attempt,
  services: Services & Pick<AttemptServices, "database" | "vault">,
): Promise<KnownAccess> {
  const { session, emit } = attempt;
  const found = await Promise.all(
    session.repositories.map(async (repository) => ({
      repository,
      ...(await accessOrRefusal(attempt, services, repository)),
    })),
  );
  const known = new Map<string, RepositoryAccess>();
  for (const { repository, forge, access } of found) {
    if (access === null) continue;
    const refusal = worksFromFork(services, access) ? null : refusalOf(repository, forge, access);
    if (refusal !== null) {
      const reason = `${repository.name}: ${refusal.message}`;
      throw new SessionError({ ...refusal.failure, reason }, { cause: refusal });
    }
    if (access.mayOpenPullRequests === false && !(await hasOpener(attempt, services, forge, repository)))
      throw mayOpenNone(repository, forge);
    known.set(repository.id, access);
    if (access.rules.length === 0 || session.attempt > 1) continue;
    const text = `${forge.name} has rules for pushes to the branch ${session.branchName} of ${repository.name}, and may refuse the work: ${access.rules.join(", ")}.`;
    await emit({ type: "notice", data: { level: "info", text } });
  }
  return known;
}

/** Whether the operator allows a fork, and the token could push to one only. */
export function worksFromFork({ forks }: Pick<Services, "forks">, access: RepositoryAccess | null): boolean {
  if (!forks || access === null) return false;
  const { mayPush, mayFork, readOnly, hasPullRequests } = access;
  return mayPush === false && mayFork !== false && readOnly === null && hasPullRequests !== false;
}

/**
 * As `accessOf`, for a look before anything is paid.
 * @throws SessionError repository_* if the forge refuses the question twice: it would refuse the pull request too
 */
async function accessOrRefusal(attempt: Looking, services: Pick<Services, "forgeOf">, repository: SessionRepository) {
  const first = await accessOf(attempt, services, repository);
  // Asked once, a forge may be behind: of a repository or an installation that is new.
  const { access, forge, refusal } = first.refusal === null ? first : await accessOf(attempt, services, repository);
  if (refusal !== null) {
    const reason = `${repository.name}: ${refusal.message}`;
    throw new SessionError({ ...refusal.failure, reason }, { cause: refusal });
  }
  return { access, forge };
}

/** Whether a person's own account opens the pull request: it may have rights that the forge's token lacks. */
async function hasOpener(
  attempt: Attempt,
  services: Pick<AttemptServices, "database" | "vault">,
  forge: Forge,
  repository: SessionRepository,
): Promise<boolean> {
  const clone = { address: addressOf(repository), repository };
  return (await requesterFor(attempt, services, forge, clone)).requester !== null;
}

/**
 * A repository's forge, and the rights on it that the forge reports; null if it reports none, or not now. `refusal`: it
 * is final.
 */
export async function accessOf(
  { session, signal, logger }: Looking,
  { forgeOf }: Pick<Services, "forgeOf">,
  repository: SessionRepository,
): Promise<{
  readonly forge: Forge;
  readonly access: RepositoryAccess | null;
  readonly refusal: SessionError | null;
}> {
  const address = addressOf(repository);
  const forge = forgeOf(address);
  try {
    return { forge, access: await forge.readAccess(address, session.branchName, signal), refusal: null };
  } catch (error) {
    signal.throwIfAborted();
    logger.info({ err: error, repository: repository.name }, "could not ask for the rights on a repository");
    return { forge, access: null, refusal: error instanceof SessionError && !error.passing ? error : null };
  }
}

/**
 * Asks the servers of repositories by git itself whether the work could be pushed: a plain server and one by ssh have no API that says so,
 * and what some forges say of their tokens is true of the token's user. A server that can't be asked now stops nothing,
 * and one for which there is no credential gets a notice alone: the session may be a question.
 * @throws SessionError repository_access_denied
 */
export async function requirePushAccess(
  { signal, logger, emit }: Pick<Looking, "signal" | "logger" | "emit">,
  services: Pick<Services, "forks"> & Pick<AttemptServices, "mirrors">,
  known: KnownAccess,
  sources: readonly Pick<CloneSource, "repository" | "remote">[],
): Promise<void> {
  const { mirrors } = services;
  const asked = await Promise.all(
    sources.map(async ({ repository, remote }) => {
      const mirror = mirrors.of(remote);
      const isPushed = repository.headSha !== null;
      if (isPushed || mirror.local || worksFromFork(services, known.get(repository.id) ?? null)) return [];
      try {
        const refusal = await mirrors.use.whileUsed(mirror.path, async () => {
          await ensureMirror(mirror, signal);
          return pushAccessRefusal(mirror, remote.branch, signal);
        });
        return refusal === null ? [] : [{ repository, mirror, refusal }];
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof SessionError)) throw error;
        logger.info({ err: error, repository: repository.name }, "could not ask for the right to push");
        return [];
      }
    }),
  );
  for (const { repository, mirror, refusal } of asked.flat()) {
    if (/^https?:/u.test(mirror.url) && (await mirror.credentials()) === null) {
      const text = `There is no credential for ${repository.name}, and its server takes no push without one: what the agent changes stays in the session's diff.`;
      await emit({ type: "notice", data: { level: "warning", text } });
      continue;
    }
    throw new SessionError({
      code: "repository_access_denied",
      reason: `The configured credential may not push to ${repository.name}: ${refusal.message}`,
      retryable: false,
      remedy: "Give the server a token or key that may write to the repository (docs/forges.md), then retry.",
    });
  }
}

function refusalOf({ name }: SessionRepository, forge: Forge, access: RepositoryAccess): SessionError | null {
  if (access.readOnly !== null) {
    return new SessionError({
      code: "repository_access_denied",
      reason: `${name} is ${access.readOnly} on ${forge.name}: it takes no pushes.`,
      retryable: false,
      remedy: "Make it writable on the forge, or start a session with another repository.",
    });
  }
  if (access.mayPush === false) {
    const rules = access.rules.length === 0 ? "" : ` (${access.rules.join(", ")})`;
    return new SessionError({
      code: "repository_access_denied",
      reason: `The configured token of ${forge.name} may not push to ${name}${rules}.`,
      retryable: false,
      remedy: "Give the server a token that may write to the repository (docs/forges.md), then retry.",
    });
  }
  if (access.hasPullRequests === false && forge.opensPullRequests) {
    return new SessionError({
      code: "pull_request_refused",
      reason: `Pull requests are turned off for ${name} on ${forge.name}.`,
      retryable: false,
      remedy: "Turn them on in the repository's settings on the forge, then retry.",
    });
  }
  return null;
}

function mayOpenNone({ name }: SessionRepository, forge: Forge): SessionError {
  return new SessionError({
    code: "repository_access_denied",
    reason: `The configured token of ${forge.name} may not open pull requests in ${name}.`,
    retryable: false,
    remedy: "Give it the permission Pull requests, read and write (docs/forges.md), then retry.",
  });
}

/** Reports once, before the agent begins, that its changes of workflows would be refused, if the repository has any. */
export async function warnOfWorkflows(
  { session, signal, emit }: Looking,
  known: KnownAccess,
  clones: readonly Clone[],
): Promise<void> {
  if (session.attempt > 1) return;
  for (const { repository, mirror, baseSha } of clones) {
    if (known.get(repository.id)?.mayChangeWorkflows !== false) continue;
    const folder = `${baseSha}:${workflows}`;
    const { code } = await git(["cat-file", "-e", folder], { cwd: mirror.path, signal });
    if (code !== 0) continue;
    const text = `The configured token may not change files in ${workflows} of ${repository.name}: a change there can't be pushed.`;
    await emit({ type: "notice", data: { level: "info", text } });
  }
}

/**
 * Checks work that is about to be pushed: a change of workflows needs a token that may do so, if the forge reports
 * that.
 * @throws SessionError repository_access_denied
 */
export async function requireWorkflowRight(
  attempt: Looking,
  services: Pick<Services, "forgeOf">,
  work: ClonedWork,
): Promise<void> {
  if (!(await changesWorkflows(attempt, work))) return;
  const { repository } = work.clone;
  const { access } = await accessOf(attempt, services, repository);
  if (access?.mayChangeWorkflows !== false) return;
  throw new SessionError({
    code: "repository_access_denied",
    reason: `The work changes files in ${workflows} of ${repository.name}, and the configured token may not.`,
    retryable: false,
    remedy:
      "Give the token the scope `workflow` (an App: the permission Workflows, read and write), then retry: the work is kept.",
  });
}

async function changesWorkflows({ signal }: Looking, { clone, headSha, recorded }: ClonedWork): Promise<boolean> {
  const onRemote = [...knownOf(clone), ...(recorded.pushedSha === null ? [] : [recorded.pushedSha])];
  const command = ["rev-list", "--max-count=1", headSha, "--not", ...onRemote, "--", workflows];
  const { code, stdout } = await git(command, { cwd: clone.mirror.path, signal });
  return code === 0 && stdout.trim() !== "";
}
