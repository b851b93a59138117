import { firstOf } from "../../domain/fields/text.ts";
import { requesterOf } from "../../store/queue/claims.ts";
import {
  recordedWork,
  saveCommits,
  saveCommitsOfEnded,
  saveDiffOfEnded,
  saveRepository,
  type RecordedWork,
} from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { cloneSource, commandFoldersOf } from "../attempt/session-repositories.ts";
import type { Clone } from "../clones/clone.ts";
import { readClones } from "../clones/clones.ts";
import { exportClone, type ExportedWork } from "../clones/export.ts";
import type { LfsFile } from "../lfs/pointers.ts";
import { takeLfsFiles } from "./lfs-files.ts";
import { maskSlices } from "./mask-slices.ts";
import { requireNoSecret } from "./require-no-secret.ts";
import { whatToPush } from "./what-to-push.ts";

/** A repository's exported work. */
export interface ClonedWork extends ExportedWork {
  readonly clone: Clone;
  /** What earlier exports and pushes recorded, with this export's commits. */
  readonly recorded: RecordedWork;
  /** Whether to push it and to open its pull request. */
  readonly isChanged: boolean;
  /** Files in LFS that are to be uploaded before the push, with their contents in the mirror's store. */
  readonly lfs: readonly LfsFile[];
}

/** A clone with its exported work. */
export interface ExportedClone {
  readonly clone: Clone;
  readonly work: ExportedWork;
}

/** Most bytes of the diffs of all repositories of a session together: one API answer shows them all. */
const patchLimit = 2 * 1024 * 1024;

/** How many submodules a notice names. */
const namedSubmodules = 5;

/** What exporting needs of the worker. */
export type Exporting = Pick<
  AttemptServices,
  "database" | "folders" | "mirrors" | "sandbox" | "limits" | "author" | "committer" | "signer"
>;

/**
 * Commits what the agent left uncommitted, exports the commits from the sandbox as objects, checks that they hold no secret,
 * and saves the diff on the session.
 * @throws SessionError workspace_broken, secret_in_work, token_in_work, resources_exhausted, sandbox_unavailable
 */
export async function exportWork(
  attempt: Attempt,
  services: Exporting & Pick<AttemptServices, "forgeOf">,
  clones: readonly Clone[],
): Promise<ClonedWork[]> {
  const { database, forgeOf } = services;
  const { session } = attempt;
  const exported = await exportClones(attempt, services, clones);
  await saveDiffs(attempt, services, exported, saveRepository);
  for (const { clone, work } of exported) await reportSubmodules(attempt, clone, work);
  await recordCommits(attempt, services, exported);
  const recorded = await recordedWork(database, session);
  const works: ClonedWork[] = [];
  for (const { clone, work } of exported) {
    const known = recordedOf(recorded, clone);
    const decision = whatToPush({
      ...work,
      ...known,
      remoteSha: clone.remoteSha ?? null,
      startSha: clone.headSha,
      recordedSha: clone.repository.headSha,
      hasOwnCommits: known.commits.size > 0,
      opensPullRequests: forgeOf(clone.address).opensPullRequests,
    });
    const isChanged = decision === "publish";
    const lfs = isChanged ? await takeLfsFiles(attempt, services, clone, work.headSha) : [];
    if (isChanged) await requireNoSecret(attempt, services, clone, work, lfs);
    works.push({ ...work, clone, recorded: known, isChanged, lfs });
  }
  return works;
}

/** What earlier exports and pushes recorded of a clone's work. @throws Error if the session has no row for its repository */
export function recordedOf(recorded: readonly RecordedWork[], { repository }: Clone): RecordedWork {
  const row = recorded.find(({ position }) => position === repository.position);
  if (row === undefined) throw new Error(`the session has no row for ${repository.name}`);
  return row;
}

/** Says which submodules the agent changed, whose changes stay behind: they belong to other repositories. */
async function reportSubmodules(
  { emit }: Pick<Attempt, "emit">,
  { repository, submodules = [] }: Clone,
  { changedSubmodules }: ExportedWork,
): Promise<void> {
  if (changedSubmodules.length === 0) return;
  const named = changedSubmodules.map((path) => {
    const url = submodules.find((each) => each.path === path)?.url ?? null;
    return url === null ? path : `${path} (${url})`;
  });
  const text = `What was changed inside submodules of ${repository.name} can't be pushed with it, and is not in the pull request, which keeps their commits as they were: ${firstOf(named, namedSubmodules)}. To change a submodule, start a session on its own repository.`;
  await emit({ type: "notice", data: { level: "warning", text: text.slice(0, 2_000) } });
}

/** Records the exported commits, with an event for each that is new. @throws LeaseLostError */
export async function recordCommits(
  { session, mask }: Pick<Attempt, "session" | "mask">,
  { database }: Pick<Exporting, "database">,
  exported: readonly ExportedClone[],
  save: typeof saveCommits = saveCommits,
): Promise<void> {
  for (const { clone, work } of exported) {
    const { id: repositoryId, position } = clone.repository;
    const commits = work.commits.map((commit) => ({ repositoryId, ...commit, subject: mask.text(commit.subject) }));
    await save(database, session, position, commits);
  }
}

/**
 * Takes the work of each clone out of the sandbox, in the order given.
 * @param how.coAuthored whether its commit names who asked; a replay's does not. True if omitted
 * @param how.isInterrupted whether the agent's turn did not end by itself: a merge that is under way then stays so. False if
 *   omitted
 * @throws SessionError see `exportWork`
 */
export async function exportClones(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  services: Exporting,
  clones: readonly Clone[],
  {
    coAuthored = true,
    isInterrupted = false,
  }: { readonly coAuthored?: boolean; readonly isInterrupted?: boolean } = {},
): Promise<ExportedClone[]> {
  const request = {
    sessionId: session.sessionId,
    message: session.title,
    coAuthor: coAuthored ? await requesterOf(services.database, session.sessionId) : null,
    patchLimit: Math.floor(patchLimit / clones.length),
    isInterrupted,
    signal,
  };
  const exported = [];
  for (const clone of clones) {
    const folders = { ...commandFoldersOf(session, services, clone.remote.directory), readOnly: [clone.mirror.path] };
    exported.push({ clone, work: await exportClone(services, clone, { ...request, folders }) });
  }
  return exported;
}

async function saveDiffs(
  { session, mask }: Pick<Attempt, "session" | "mask">,
  { database }: Pick<Exporting, "database">,
  exported: readonly ExportedClone[],
  save: typeof saveDiffOfEnded,
): Promise<void> {
  for (const { clone, work } of exported) {
    const { headSha, patch, patchTruncated } = work;
    const shown = await maskSlices(mask, patch);
    await save(database, session, clone.repository.position, { headSha, patch: shown, patchTruncated });
  }
}

/**
 * Saves the diff of the agent's work on the session after a failure or a cancel, and records its commits. A merge that is under
 * way stays so: ending it here would drop the other side of what nobody has resolved. Never throws.
 * @param signal bounds it, instead of the attempt's
 */
export async function salvage(
  attempt: Pick<Attempt, "session" | "mask" | "logger" | "emit">,
  services: Exporting & Pick<AttemptServices, "forgeOf">,
  signal: AbortSignal,
): Promise<void> {
  const { session, logger } = attempt;
  try {
    const sources = session.repositories.map((repository) => cloneSource({ session, signal }, services, repository));
    const clones = await readClones(services, { sessionId: session.sessionId, sources });
    if (clones === null) return;
    const exported = await exportClones({ session, signal }, services, clones, { isInterrupted: true });
    await saveDiffs(attempt, services, exported, saveDiffOfEnded);
    await recordCommits(attempt, services, exported, saveCommitsOfEnded);
    await noticeUnfinished(attempt, exported);
  } catch (error) {
    logger.warn({ err: error }, "could not save the diff of an attempt that did not complete");
  }
}

/** Says that the saved diff has nothing of a merge that is not finished. */
async function noticeUnfinished({ emit }: Pick<Attempt, "emit">, exported: readonly ExportedClone[]): Promise<void> {
  for (const { clone, work } of exported) {
    if (work.unfinished === null) continue;
    const { joining = null, remote } = clone;
    const what = joining === null ? "a merge" : `a conflict with ${joining.branch}`;
    const text = `The attempt ended while the agent was resolving ${what} in ${remote.directory}: the diff is of the work before that, nothing was pushed, and the next turn goes on with it.`;
    await emit({ type: "notice", data: { level: "info", text } });
  }
}
