import type { RefusedRepository } from "../../../domain/errors/refused-repositories.ts";
import { firstOf } from "../../../domain/fields/text.ts";
import { requesterOf } from "../../../store/queue/claims.ts";
import {
  noticeOfEnded,
  recordedWork,
  saveDiffOfEnded,
  saveRepository,
  type RecordedWork,
} from "../../../store/queue/recorded-work.ts";
import { saveCommits, saveCommitsOfEnded } from "../../../store/queue/recorded-commits.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";
import { cloneSource, commandFoldersOf } from "../../attempt/session-repositories.ts";
import type { Clone } from "../../clones/clone.ts";
import { readClones } from "../../clones/clones.ts";
import { exportClone, type ExportedWork } from "../../export/export-clone.ts";
import type { LfsFile } from "../../lfs/pointers.ts";
import { takeLfsFiles } from "./lfs-files.ts";
import { maskSlices } from "./mask-slices.ts";
import { requireNoSecret } from "./require-no-secret.ts";
import { refusalOf } from "./undelivered.ts";
import { whatToPush } from "./what-to-push.ts";

/** A repository's exported work. */
export interface ClonedWork extends ExportedWork {
  readonly clone: Clone;
  /** The record of earlier exports and pushes, with this export's commits. */
  readonly recorded: RecordedWork;
  /** Whether to push it and to open its pull request. */
  readonly isChanged: boolean;
  /** Why it may not be pushed, which holds back no other repository; null if it may, or has nothing to push. */
  readonly refused: RefusedRepository | null;
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

/** Services of the worker for exporting work. */
export type Exporting = Pick<
  AttemptServices,
  "database" | "folders" | "mirrors" | "checkouts" | "sandbox" | "limits" | "author" | "committer" | "signer"
>;

/**
 * Commits what the agent left uncommitted, exports the commits from the sandbox as objects, checks that they hold no secret,
 * and saves the diff on the session. What may not be pushed of one of several repositories is left out, unless the session opens
 * its pull requests together.
 * @param unfinished folders of clones in which the agent has still to finish a merge, also if it looks resolved; omitted: none
 * @throws SessionError workspace_broken, secret_in_work, token_in_work, resources_exhausted, sandbox_unavailable
 */
export async function exportWork(
  attempt: Attempt,
  services: Exporting & Pick<AttemptServices, "forgeOf">,
  clones: readonly Clone[],
  unfinished: ReadonlySet<string> = new Set(),
): Promise<ClonedWork[]> {
  const { database, forgeOf } = services;
  const { session } = attempt;
  const isInterrupted = ({ remote }: Clone): boolean => unfinished.has(remote.directory);
  const exported = await exportClones(attempt, services, clones, { isInterrupted, tellsLeftOut: true });
  for (const { position, diff } of await diffsOf(attempt, exported)) {
    await saveRepository(database, session, position, diff);
  }
  for (const { clone, work } of exported) {
    await reportSubmodules(attempt, clone, work);
    await reportLeftOut(attempt, clone, work);
  }
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
    const checked = decision === "publish" ? await check(attempt, services, clone, work) : nothingToPush;
    works.push({ ...work, clone, recorded: known, ...checked });
  }
  return works;
}

type Checked = Pick<ClonedWork, "isChanged" | "lfs" | "refused">;

const nothingToPush: Checked = { isChanged: false, lfs: [], refused: null };

/** Checks that a repository's work may be pushed. @throws SessionError if it may not, and that holds back everything */
async function check(attempt: Attempt, services: Exporting, clone: Clone, work: ExportedWork): Promise<Checked> {
  const { repositories, pullRequestsTogether } = attempt.session;
  try {
    const lfs = await takeLfsFiles(attempt, services, clone, work.headSha);
    await requireNoSecret(attempt, services, clone, work, lfs);
    return { isChanged: true, lfs, refused: null };
  } catch (error) {
    if (repositories.length === 1 || pullRequestsTogether) throw error;
    return { ...nothingToPush, refused: refusalOf(error, clone, attempt) };
  }
}

/**
 * The record of earlier exports and pushes of a clone's work. @throws Error if the session has no row for its
 * repository
 */
export function recordedOf(recorded: readonly RecordedWork[], { repository }: Clone): RecordedWork {
  const row = recorded.find(({ position }) => position === repository.position);
  if (row === undefined) throw new Error(`the session has no row for ${repository.name}`);
  return row;
}

/** Reports submodules that the agent changed, and whose changes are not exported: they belong to other repositories. */
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

/** Most branches and files that a notice names. */
const namedLeftOut = 5;

/** Reports what the agent made and is not in its work: commits elsewhere in its clone, and files that git refuses. */
async function reportLeftOut(
  { emit }: Pick<Attempt, "emit">,
  { repository }: Clone,
  { leftOut: { refs, files, why } }: ExportedWork,
): Promise<void> {
  const places = refs.map((ref) =>
    ref === "refs/stash" ? "git's stash" : ref.replace(/^refs\/heads\//u, "the branch "),
  );
  const texts: string[] = [];
  if (refs.length > 0) {
    const where = firstOf(places, namedLeftOut);
    texts.push(
      `The agent left changes of ${repository.name} that are not in its work: in ${where}. They stay in its clone; tell it in a message what to do with them.`,
    );
  }
  if (files.length > 0) {
    const quoted = files.map((path) => JSON.stringify(path));
    texts.push(
      `git refuses these files of ${repository.name}, which are not in the work: ${firstOf(quoted, namedLeftOut)}. It says of the first: ${why ?? "nothing"}.`,
    );
  }
  for (const text of texts) await emit({ type: "notice", data: { level: "warning", text: text.slice(0, 2_000) } });
}

/** Records the exported commits, with an event for each that is new. @throws LeaseLostError */
export async function recordCommits(
  attempt: Pick<Attempt, "session" | "mask">,
  { database }: Pick<Exporting, "database">,
  exported: readonly ExportedClone[],
): Promise<void> {
  for (const { position, commits } of commitsOf(attempt, exported)) {
    await saveCommits(database, attempt.session, position, commits);
  }
}

/** The exported commits of each repository, by its position in the session, with secrets masked. */
function commitsOf(
  { mask }: Pick<Attempt, "mask">,
  exported: readonly ExportedClone[],
): { readonly position: number; readonly commits: Parameters<typeof saveCommits>[3] }[] {
  return exported.map(({ clone, work }) => {
    const { id: repositoryId, position } = clone.repository;
    const commits = work.commits.map((commit) => ({ repositoryId, ...commit, subject: mask.text(commit.subject) }));
    return { position, commits };
  });
}

/**
 * Takes the work of each clone out of the sandbox, in the order given.
 * @param how.coAuthored whether its commit names who asked; a replay's does not. True if omitted
 * @param how.isInterrupted whether the agent did not end what it does in a clone by itself: a merge that is under way then stays so.
 *   Omitted: it did in all
 * @param how.tellsLeftOut whether branches are named that have more than what is taken out, each once; false if omitted
 * @throws SessionError see `exportWork`
 */
export async function exportClones(
  { session, signal }: Pick<Attempt, "session" | "signal">,
  services: Exporting,
  clones: readonly Clone[],
  {
    coAuthored = true,
    isInterrupted = () => false,
    tellsLeftOut = false,
  }: {
    readonly coAuthored?: boolean;
    readonly isInterrupted?: (clone: Clone) => boolean;
    readonly tellsLeftOut?: boolean;
  } = {},
): Promise<ExportedClone[]> {
  const request = {
    sessionId: session.sessionId,
    message: session.title,
    coAuthor: coAuthored ? await requesterOf(services.database, session.sessionId) : null,
    patchLimit: Math.floor(patchLimit / clones.length),
    tellsLeftOut,
    signal,
  };
  const exported = [];
  for (const clone of clones) {
    const folders = { ...commandFoldersOf(session, services, clone.remote.directory), readOnly: [clone.mirror.path] };
    exported.push({
      clone,
      work: await exportClone(services, clone, { ...request, isInterrupted: isInterrupted(clone), folders }),
    });
  }
  return exported;
}

/** The exported diff of each repository, by its position in the session, with secrets masked. */
async function diffsOf(
  { mask: known, found }: Pick<Attempt, "mask" | "found">,
  exported: readonly ExportedClone[],
): Promise<{ readonly position: number; readonly diff: Parameters<typeof saveDiffOfEnded>[3] }[]> {
  const mask = found.size === 0 ? known : known.with([...found]);
  const diffs = [];
  for (const { clone, work } of exported) {
    const { headSha, patch, patchTruncated } = work;
    const diff = { headSha, patch: await maskSlices(mask, patch), patchTruncated };
    diffs.push({ position: clone.repository.position, diff });
  }
  return diffs;
}

/**
 * Saves the diff of the agent's work on the session after a failure or a cancel, and records its commits. A merge that
 * is under way stays so: ending it here would drop the other side of unresolved files. Never throws.
 * @param signal bounds it, instead of the attempt's; if it ends it, a notice says so
 */
export async function salvage(
  attempt: Pick<Attempt, "session" | "mask" | "found" | "logger">,
  services: Exporting & Pick<AttemptServices, "forgeOf">,
  signal: AbortSignal,
): Promise<void> {
  const { session, logger } = attempt;
  try {
    const sources = session.repositories.map((repository) => cloneSource({ session, signal }, services, repository));
    const clones = await readClones(services, { sessionId: session.sessionId, sources });
    if (clones === null) return;
    const exported = await exportClones({ session, signal }, services, clones, { isInterrupted: () => true });
    for (const { position, diff } of await diffsOf(attempt, exported)) {
      await saveDiffOfEnded(services.database, session, position, diff);
    }
    for (const { position, commits } of commitsOf(attempt, exported)) {
      await saveCommitsOfEnded(services.database, session, position, commits);
    }
    await noticeUnfinished(attempt, services, exported);
  } catch (error) {
    logger.warn({ err: error }, "could not save the diff of an attempt that did not complete");
    if (signal.aborted) await noticeUnsaved(attempt, services);
  }
}

/** Reports that saving the diff took too long. */
async function noticeUnsaved(
  { session, logger }: Pick<Attempt, "session" | "logger">,
  { database }: Pick<Exporting, "database">,
): Promise<void> {
  const text =
    "The diff of the work so far was not saved: taking it out took too long. A message goes on with the work itself.";
  await noticeOfEnded(database, session, { level: "warning", text }).catch((error: unknown) =>
    logger.warn({ err: error }, "could not say that a diff was not saved"),
  );
}

/** Reports that the saved diff has nothing of an unfinished merge. */
async function noticeUnfinished(
  { session, mask }: Pick<Attempt, "session" | "mask">,
  { database }: Pick<Exporting, "database">,
  exported: readonly ExportedClone[],
): Promise<void> {
  for (const { clone, work } of exported) {
    if (work.unfinished === null) continue;
    const { joining = null, remote } = clone;
    const what = joining === null ? "a merge" : `a conflict with ${joining.branch}`;
    const text = `The attempt ended while the agent was resolving ${what} in ${remote.directory}: the diff is of the work before that, nothing was pushed, and the next turn goes on with it.`;
    await noticeOfEnded(database, session, { level: "info", text: mask.text(text) });
  }
}
