import { rm } from "node:fs/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import { firstOf } from "../../domain/fields/text.ts";
import { repositoryRefusal } from "../../domain/repositories/repository-pattern.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../domain/repositories/repository.ts";
import { allSettled } from "../../all-settled.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { saveRepository } from "../../store/queue/recorded-work.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { cloneSource } from "../attempt/session-repositories.ts";
import { submoduleAccess } from "../attempt/submodule-access.ts";
import {
  fetchCheckpoint,
  reportUnusable,
  type RestoreServices,
  type FetchedCheckpoint,
  type RestorableCheckpoint,
} from "../checkpoints/restore.ts";
import type { Clone } from "../clones/clone.ts";
import { makeClones, openClones, type CloneRequest } from "../clones/clones.ts";
import type { EarlyStart } from "../harness/begin-early.ts";
import { keptOf } from "../git/remote-repository.ts";
import { missingFolders } from "../git/sparse-checkout.ts";
import { readEnvironments, reportNotFollowed, type RepositoryEnvironment } from "../setup/repository-environment.ts";
import { followTargets, targetsOfPullRequests } from "./pull-requests/follow-targets.ts";
import { requirePushAccess, requireWritable, warnOfWorkflows, type KnownAccess } from "./push/require-writable.ts";
import { withoutSetup } from "./set-up.ts";
import {
  readDeliveredEvent,
  readEventFacts,
  wantedPullRequest,
  type DeliveredEvent,
  type EventFacts,
} from "./agent/delivered-event.ts";

/** A session's folders, ready to be set up. */
export interface Workspace {
  readonly clones: readonly Clone[];
  /** Whether the folders were on this disk as the last attempt left them, or made from the remotes. */
  readonly origin: "disk" | "remote";
  /** Another worker's checkpoint, to be restored into the clones when they are set up; null if there is none. */
  readonly checkpoint: RestorableCheckpoint | null;
  /** How each clone is set up. */
  readonly environments: readonly RepositoryEnvironment[];
  /** The prompt's facts about the event that a forge delivered; null: none was, or the agent has had them. */
  readonly eventFacts: EventFacts | null;
  /** Those whose setup script was not run for this session yet. */
  readonly missingSetups: readonly RepositoryEnvironment[];
}

/** How many submodules, and folders of a sparse checkout, a notice names. */
const namedSubmodules = 5;
const namedFolders = 10;

type Made = Pick<Workspace, "clones" | "origin" | "checkpoint">;

type Services = RestoreServices &
  Pick<AttemptServices, "workerId" | "checkouts" | "forgeOf" | "forks" | "repositoryKeyOf" | "devcontainerImages">;

/** Who has made the session's folders already, if anybody has: the harness that was started early. */
type FolderMaker = Pick<EarlyStart, "begin"> | null;

/**
 * Finds the session's clones on this disk as they were left; if they are not there, makes them from the remotes and fetches the
 * last checkpoint. Reads how each is set up.
 * @throws SessionError repository_not_allowed, target_branch_not_found, branch_protected, pull_request_refused,
 * resources_exhausted, repository_*
 */
export async function prepareWorkspace(
  attempt: Attempt,
  services: Services,
  early: FolderMaker = null,
): Promise<Workspace> {
  await requireAllowed(attempt, services);
  await forgetOutdated(attempt, services);
  const delivered = await readDeliveredEvent(attempt, services);
  const request = await cloneRequest(attempt, services, delivered);
  const existing = await openClones(services, request);
  // Each takes some round trips to the forge, and neither needs the other.
  const [access, made] = await firstAllowed(
    attempt.signal,
    (signal) => requireRights({ ...attempt, signal }, services, request, existing === null),
    (signal) => findOrMake({ ...attempt, signal }, services, { ...request, signal, early }, existing),
  );
  await saveStarts(attempt, services, made);
  if (made.origin === "remote") {
    await reportSubmodules(attempt, made.clones);
    await reportLfs(attempt, made.clones);
    await reportSparse(attempt, made.clones);
  }
  await warnOfWorkflows(attempt, access, made.clones);
  const environments = await readEnvironments(attempt, services, made.clones);
  if (made.origin === "remote") await reportNotFollowed(attempt, environments);
  const missingSetups = await withoutSetup(attempt, services, environments);
  return {
    ...made,
    environments,
    missingSetups,
    eventFacts: await readEventFacts(attempt, services, delivered, made.clones),
  };
}

/**
 * Waits for the right to the work, and for the work itself, which begins meanwhile.
 * @returns what both gave
 * @throws what `allow` threw, whatever became of the work: the work is ended then; otherwise what the work threw
 */
async function firstAllowed<Rights, Work>(
  signal: AbortSignal,
  allow: (signal: AbortSignal) => Promise<Rights>,
  work: (signal: AbortSignal) => Promise<Work>,
): Promise<readonly [Rights, Work]> {
  const refused = new AbortController();
  const allowed = allow(signal).catch((error: unknown) => {
    refused.abort(error);
    throw error;
  });
  return allSettled([allowed, work(AbortSignal.any([signal, refused.signal]))]);
}

/**
 * Asks for the rights on the session's repositories, and once, for fresh clones, also by git itself.
 * @throws SessionError repository_*, pull_request_refused
 */
async function requireRights(
  attempt: Attempt,
  services: Services,
  { sources }: CloneRequest,
  areFresh: boolean,
): Promise<KnownAccess> {
  // A trial pushes nothing.
  if (attempt.session.setupTrial === true) return new Map();
  const access = await requireWritable(attempt, services);
  if (areFresh) await requirePushAccess(attempt, services, access, sources);
  return access;
}

/** A request, and what has made the session's folders for it. */
interface MakeRequest extends CloneRequest {
  readonly early: FolderMaker;
}

async function findOrMake(
  attempt: Attempt,
  services: Services,
  request: MakeRequest,
  existing: readonly Clone[] | null,
): Promise<Made> {
  if (existing === null) return makeWorkspace(attempt, services, request);
  return { clones: await followTargets(attempt, services, existing), origin: "disk", checkpoint: null };
}

/**
 * Removes the folders here if another worker had the session since: they are outdated. A trial begins from nothing each
 * time.
 */
async function forgetOutdated(
  { session }: Pick<Attempt, "session">,
  { workerId, folders }: Pick<Services, "workerId" | "folders">,
): Promise<void> {
  const { sessionId, workspaceWorker, setupTrial } = session;
  const isOutdated = workspaceWorker !== null && workspaceWorker !== workerId;
  if (isOutdated || setupTrial === true) await folders.forget(sessionId);
}

async function makeWorkspace(attempt: Attempt, services: Services, request: MakeRequest): Promise<Made> {
  const { folders } = services;
  const { sessionId } = attempt.session;
  try {
    const fetched = await fetchCheckpoint(attempt, services);
    if (fetched !== null) {
      const made = await makeClonesFor(attempt, services, request, fetched);
      if (made !== null) return made;
      await folders.forget(sessionId);
    }
    const { clones } = await makeClones(services, await withFolders(request), null);
    return { clones, origin: "remote", checkpoint: null };
  } finally {
    await rm(folders.incomingPath(sessionId), { recursive: true, force: true });
  }
}

/** Makes the clones of a checkpoint; null if it turns out to be unusable, which a notice says. */
async function makeClonesFor(
  attempt: Attempt,
  services: Services,
  request: MakeRequest,
  fetched: FetchedCheckpoint,
): Promise<Made | null> {
  try {
    const { clones, pending } = await makeClones(services, await withFolders(request), fetched);
    return { clones, origin: "remote", checkpoint: { fetched, pending } };
  } catch (error) {
    await reportUnusable(attempt, services, error);
    return null;
  }
}

async function withFolders({ early, ...request }: MakeRequest): Promise<CloneRequest> {
  return early === null ? request : { ...request, place: await early.begin() };
}

/** Says where files in LFS are pointers instead of contents. */
async function reportLfs({ emit }: Pick<Attempt, "emit">, clones: readonly Clone[]): Promise<void> {
  for (const { submodules = [], lfsProblem = null, repository } of clones) {
    const ofSubmodules = submodules.map(({ path, lfsProblem: problem = null }) => ({ name: path, problem }));
    const places = [{ name: repository.name, problem: lfsProblem }, ...ofSubmodules];
    const missing = places.filter(({ problem }) => problem !== null);
    if (missing.length === 0) continue;
    const text = `Files in LFS could not be fetched for ${missing.map(({ name }) => name).join(", ")}: the agent sees pointers in their place. ${missing[0]?.problem ?? ""}`;
    await emit({ type: "notice", data: { level: "warning", text: text.slice(0, 2_000) } });
  }
}

/** Reports the folders of a sparse clone, and which of them are not in the commit. */
async function reportSparse({ emit, signal }: Attempt, clones: readonly Clone[]): Promise<void> {
  for (const { sparse = [], repository, mirror, headSha } of clones) {
    if (sparse.length === 0) continue;
    const missing = await missingFolders(sparse, headSha, { cwd: mirror.path, signal });
    const without = missing.length === 0 ? "" : ` Not in the commit: ${firstOf(missing, namedFolders)}.`;
    const text = `The clone of ${repository.name} has only these folders, as its environment says: ${firstOf(sparse, namedFolders)}. Everything else stays as it is.${without}`;
    const level = missing.length === 0 ? "info" : "warning";
    await emit({ type: "notice", data: { level, text: text.slice(0, 2_000) } });
  }
}

/** Reports submodules that could not be fetched: their folders are empty. */
async function reportSubmodules({ emit }: Pick<Attempt, "emit">, clones: readonly Clone[]): Promise<void> {
  for (const { submodules = [], repository } of clones) {
    const missing = submodules.filter(({ problem }) => problem !== null);
    if (missing.length === 0) continue;
    const named = missing.map(({ path, problem }) => `${path}: ${problem}`);
    const text = `Submodules of ${repository.name} could not be checked out, and their folders are empty. ${firstOf(named, namedSubmodules, "; ")}`;
    await emit({ type: "notice", data: { level: "warning", text: text.slice(0, 2_000) } });
  }
}

async function saveStarts(
  { session }: Pick<Attempt, "session">,
  { database }: Pick<Services, "database">,
  { clones, origin }: Pick<Made, "clones" | "origin">,
): Promise<void> {
  for (const { repository, baseSha, submodules = [] } of clones) {
    const kept = origin === "remote" ? keptOf(submodules) : [];
    const progress = {
      ...(baseSha !== repository.baseSha && { baseSha }),
      ...(kept.length > 0 && { submodules: kept }),
    };
    if (Object.keys(progress).length > 0) await saveRepository(database, session, repository.position, progress);
  }
}

/**
 * Checks the repositories again: the organization's list may be shorter since the session was created, and an automation names
 * its repositories once for all its sessions.
 * @throws SessionError repository_not_allowed
 */
async function requireAllowed(
  { session }: Pick<Attempt, "session">,
  { database }: Pick<Services, "database">,
): Promise<void> {
  const { organizationId, repositories } = session;
  if (repositories.length === 0) return;
  const allowed = await allowedRepositories(database, organizationId);
  for (const { url } of repositories) {
    const address = parseRepositoryUrl(url);
    const refusal = isAddressProblem(address) ? "list" : repositoryRefusal(allowed, address);
    if (refusal === null) continue;
    throw new SessionError({
      code: "repository_not_allowed",
      retryable: false,
      ...(refusal === "list"
        ? {
            reason: `The repository ${url} is not on the list of repositories that this organization allows.`,
            remedy: "Ask an admin to add it in the organization's settings, then retry.",
          }
        : {
            reason: `The repository ${url} is reached only with the server's own ssh keys or disk, which this organization does not use.`,
            remedy: "Use its https address and connect its forge in the settings, or ask an admin of the server.",
          }),
    });
  }
}

async function cloneRequest(
  attempt: Attempt,
  services: Pick<Services, "database" | "forgeOf" | "repositoryKeyOf">,
  delivered: DeliveredEvent | null,
): Promise<CloneRequest> {
  const { sessionId, repositories } = attempt.session;
  // The remote's default branch may be another by now: the open pull request's target counts, so that no second one is opened.
  const targets = await targetsOfPullRequests(attempt, services);
  return {
    sessionId,
    sources: repositories.map((repository) => {
      const source = cloneSource(attempt, services, repository, targets.get(repository.id) ?? null);
      const submodule = submoduleAccess(attempt, services, source.address);
      const pullRequest = wantedPullRequest(delivered, repository, services);
      return { ...source, remote: { ...source.remote, submodule, ...(pullRequest !== undefined && { pullRequest }) } };
    }),
    progress: createProgress(attempt),
    signal: attempt.signal,
  };
}

/** Shortest time between two progress events. */
const progressEveryMs = 1_000;

function createProgress({ emit, logger }: Pick<Attempt, "emit" | "logger">): CloneRequest["progress"] {
  let emittedAt = performance.now();
  return (progress) => {
    if (performance.now() - emittedAt < progressEveryMs) return;
    emittedAt = performance.now();
    // Progress is only shown: an error here must not fail the step, and a lost lease shows at the next step.
    emit({ type: "step.progress", data: { step: "prepare", ...progress } }).catch((error: unknown) => {
      logger.debug({ err: error }, "could not report the progress of a fetch");
    });
  };
}
