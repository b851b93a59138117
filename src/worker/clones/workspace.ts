import { existsSync } from "node:fs";
import { join } from "node:path";
import { NotFoundError, RunError } from "../../domain/errors.ts";
import { diskUsage } from "../../sandboxes/process/disk-usage.ts";
import type { Limits, Sandbox } from "../../sandboxes/sandbox.ts";
import type { SessionDisks } from "../disk/session-disk.ts";
import { createSessionFolders, namesIn, type MadeAt } from "../disk/session-folders.ts";
import type { FetchLimits } from "../git/fetch.ts";
import { git, mustGit } from "../git/git.ts";
import { createMirrorUse } from "../git/mirror-use.ts";
import { breakLocks, ensureMirror, mirrorPath, pushBranch, type Mirror } from "../git/mirror.ts";
import {
  knownOf,
  type KeptCheckpoint,
  type PreparedRepository,
  type WorkspaceRepository,
} from "../git/workspace-repository.ts";
import { lookThroughPush, type PushLook } from "../push/push-look.ts";
import { collectRepository, type CollectedCommit } from "./collect.ts";
import { readCommittedFile } from "./commit-contents.ts";
import { openKeptWork, type WaitingWork } from "./kept-work.ts";
import { fetchHeads, goesOnFrom, layOut, trustedSince, unpin, type Room } from "./lay-out.ts";

/** A session's folders with its clones. */
export interface LaidOut {
  readonly repositories: readonly PreparedRepository[];
  /** Whether they were found on this disk as they were left, or made from the remote. */
  readonly from: "disk" | "remote";
  /** Work of another worker's checkpoint, to be restored once the clones are set up. */
  readonly waiting: readonly WaitingWork[];
}

/** One repository's work after it was taken out of the sandbox. */
export interface CollectedRepository {
  readonly headSha: string;
  /** The commits that are new since the last time. */
  readonly commits: readonly CollectedCommit[];
  /** Whether the head differs from the last time, or from the start. */
  readonly isMoved: boolean;
  /** Whether it has commits that the base lacks. */
  readonly isAhead: boolean;
  /** The diff from the base; a part of it if `patchTruncated`. */
  readonly patch: string;
  readonly patchTruncated: boolean;
}

/** Folders in which one setup runs, separate from the session's own. */
export interface SetupFolders extends MadeAt {
  /** Holds the workspace and the home; only the server may access it. To be removed when the result is archived. */
  readonly folder: string;
  /** For the setup's result; only the server may access it. */
  readonly results: string;
  /** The session's folder, whose disk bounds include this setup. */
  readonly disk: string;
  /** The mirror that the clone borrows from. */
  readonly readOnly: readonly string[];
}

/** What making and exporting clones needs. */
export interface WorkspaceOptions {
  readonly dataDirectory: string;
  readonly sandbox: Sandbox;
  readonly author: { readonly name: string; readonly email: string };
  /** Whether a repository's URL may be a path on this machine. */
  readonly allowLocalRepositories: boolean;
  readonly limits: Limits;
  /** A disk for each session; if omitted, the folders are watched instead. */
  readonly disks?: SessionDisks;
  /** Limits of one fetch; the defaults if omitted. */
  readonly fetch?: FetchLimits;
}

/** What to take out of a session's sandbox. */
export interface CollectRequest {
  readonly sessionId: string;
  readonly repositories: readonly WorkspaceRepository[];
  /** Message of the commit of what the agent left uncommitted. */
  readonly message: string;
  readonly coAuthor: { readonly name: string; readonly email: string } | null;
  readonly signal: AbortSignal;
}

/** The sessions' clones and folders on this worker's disk. */
export type Workspaces = ReturnType<typeof createWorkspaces>;

/** Most bytes of the diffs of all repositories of a session together: one API answer shows them all. */
const patchLimit = 2 * 1024 * 1024;

/**
 * Makes the sessions' clones, which borrow their objects from mirrors (git alternates) and so are made quickly, and takes the
 * agents' work out of them. Nothing here runs git in a folder that an agent could write to.
 */
export function createWorkspaces(options: WorkspaceOptions) {
  const mirrors = join(options.dataDirectory, "mirrors");
  const mirrorUse = createMirrorUse();
  const onDisk = createSessionFolders(options.dataDirectory, options.disks, (folder) =>
    options.sandbox.giveBack(folder),
  );

  function mirrorOf(repository: WorkspaceRepository): Mirror {
    const { url, named, credentials } = repository;
    return {
      path: mirrorPath(mirrors, url),
      url,
      named,
      local: options.allowLocalRepositories && url.startsWith("/"),
      credentials,
      ...(options.fetch !== undefined && { fetchLimits: options.fetch }),
    };
  }

  async function giveToAgent({ workspace, home }: MadeAt): Promise<void> {
    await options.sandbox.makeWritable(workspace);
    await options.sandbox.makeWritable(home);
  }

  /** The disk bounds of a session, with what it uses already. */
  async function roomOf(sessionId: string): Promise<Room> {
    const disk = onDisk.diskOf(sessionId);
    const { bytes, files } = (await diskUsage([disk], null)) ?? { bytes: 0, files: 0 };
    return { disk, bounds: options.limits, written: { bytes, files } };
  }

  function folders(sessionId: string, urls: readonly string[]) {
    /** The clones read objects from these mirrors. */
    return {
      ...onDisk.placeOf(sessionId),
      disk: onDisk.diskOf(sessionId),
      readOnly: urls.map((url) => mirrorPath(mirrors, url)),
    };
  }

  /**
   * Makes the session's clones, or finds them as they were left. The record of completion is written last, so half-made clones
   * are made again. If a checkpoint will be restored into them, the caller writes the record afterwards (`markStarted`).
   */
  async function prepare(request: {
    readonly sessionId: string;
    readonly repositories: readonly WorkspaceRepository[];
    /** The checkpoint's work of each repository, by its folder in the workspace. */
    readonly keptWork: ReadonlyMap<string, KeptCheckpoint>;
    /** Folders in which the checkpoint was made, if its harness must find them at the same paths. */
    readonly madeAt: MadeAt | null;
    /** Whether a checkpoint will be restored into the clones. */
    readonly isRestored: boolean;
    readonly progress: (progress: { text: string; fraction?: number }) => void;
    readonly signal: AbortSignal;
  }): Promise<LaidOut> {
    const { sessionId, repositories } = request;
    for (const repository of repositories) await breakLocks(mirrorOf(repository).path, sessionId, request.signal);
    const known = await onDisk.started(sessionId);
    if (known !== null && (await hasObjects(known, request))) {
      await giveToAgent(onDisk.placeOf(sessionId));
      return { repositories: known, from: "disk", waiting: [] };
    }
    const { workspace, home } = await onDisk.begin(sessionId);
    const room = await roomOf(sessionId);
    const prepared: PreparedRepository[] = [];
    const waiting: WaitingWork[] = [];
    try {
      for (const repository of repositories) {
        const mirror = mirrorOf(repository);
        const { start, work } = await mirrorUse.whileUsed(mirror.path, () => begin(request, repository, mirror, room));
        if (work !== null) waiting.push(work);
        const { baseSha, headSha, targetBranch, trusted = null } = start;
        prepared.push({ baseSha, headSha, targetBranch, trusted });
      }
    } catch (error) {
      // Files over the limit do not stay on the disk until the next attempt.
      if (error instanceof RunError && error.code === "resources_exhausted") await onDisk.remove(sessionId);
      throw error;
    }
    await giveToAgent({ workspace, home });
    if (request.madeAt !== null) await onDisk.markMoved(sessionId, request.madeAt);
    if (!request.isRestored) await onDisk.markStarted(sessionId, prepared);
    return { repositories: prepared, from: "remote", waiting };
  }

  /**
   * Makes one clone: as the remote has it, or at the start of another worker's checkpoint, which is then returned to be
   * restored. The mirror has the session's pins when it ends.
   */
  async function begin(
    { sessionId, keptWork, progress, signal }: Parameters<typeof prepare>[0],
    repository: WorkspaceRepository,
    mirror: Mirror,
    room: Room,
  ): Promise<{ start: PreparedRepository; work: WaitingWork | null }> {
    const { directory } = repository;
    const clone = join(onDisk.placeOf(sessionId).workspace, directory);
    await ensureMirror(mirror, signal);
    // Pins of an earlier attempt on this machine, since which another worker had the session.
    await unpin(mirror.path, sessionId);
    const heads = await fetchHeads(mirror, sessionId, repository, progress, signal);
    const checkpoint = keptWork.get(directory);
    const isKept = checkpoint !== undefined && (await goesOnFrom(mirror, checkpoint, repository, heads, signal));
    const start = isKept
      ? { ...checkpoint.start, trusted: await trustedSince(mirror, checkpoint.start, heads, signal) }
      : heads;
    await layOut(mirror, clone, repository, start, room, signal);
    if (!isKept) return { start, work: null };
    const kept = await openKeptWork(onDisk.keptPath(sessionId, directory), mirror.path, { anew: true, signal });
    for (const pack of checkpoint.packs) await kept.take(pack.file, pack.commit, knownOf(start));
    return { start, work: { directory, path: kept.path, head: checkpoint.head, commit: checkpoint.commit } };
  }

  /** Whether all objects that the clones borrow are there: a mirror that was removed is fetched again. */
  async function hasObjects(
    known: readonly PreparedRepository[],
    { sessionId, repositories, progress, signal }: Parameters<typeof prepare>[0],
  ): Promise<boolean> {
    for (const [index, repository] of repositories.entries()) {
      const mirror = mirrorOf(repository);
      const start = known[index];
      if (start === undefined || existsSync(mirror.path)) continue;
      await mirrorUse.whileUsed(mirror.path, async () => {
        await ensureMirror(mirror, signal);
        await fetchHeads(mirror, sessionId, repository, progress, signal);
      });
      for (const sha of [start.baseSha, start.headSha]) {
        const { code } = await git(["cat-file", "-e", `${sha}^{commit}`], { cwd: mirror.path, signal });
        if (code !== 0) return false;
      }
    }
    return true;
  }

  /**
   * Makes clones at the commits that another session started from, from the mirrors alone: no remote is asked.
   * @throws NotFoundError if the other session's folders are gone
   */
  async function prepareAgain(
    originalId: string,
    sessionId: string,
    repositories: readonly WorkspaceRepository[],
    signal: AbortSignal,
  ): Promise<PreparedRepository[]> {
    const prepared = await onDisk.started(originalId);
    if (prepared === null)
      throw new NotFoundError(`the commits that session ${originalId} started from are no longer on this server`);
    const { workspace, home } = await onDisk.begin(sessionId);
    const room = await roomOf(sessionId);
    for (const [index, repository] of repositories.entries()) {
      const start = prepared[index];
      if (start === undefined) continue;
      const mirror = mirrorOf(repository);
      // Pins keep the mirror while this session works, whatever happens to the other session.
      const pinned = { target: start.baseSha, start: start.headSha, trusted: start.trusted?.sha ?? start.baseSha };
      for (const [name, sha] of Object.entries(pinned)) {
        const pin = `refs/offstage/${sessionId}/${repository.directory}/${name}`;
        await mustGit(["update-ref", pin, sha], { cwd: mirror.path, signal });
      }
      await layOut(mirror, join(workspace, repository.directory), repository, start, room, signal);
    }
    await giveToAgent({ workspace, home });
    await onDisk.markStarted(sessionId, prepared);
    return prepared;
  }

  /** Makes a fresh clone and an empty home for one setup. The workspace has only this repository. */
  async function beginSetup(
    sessionId: string,
    repository: WorkspaceRepository,
    { sha, branch }: { readonly sha: string; readonly branch: string },
    signal: AbortSignal,
  ): Promise<SetupFolders> {
    const folder = await onDisk.setupFolder(sessionId);
    const place = { workspace: join(folder, "workspace"), home: join(folder, "home") };
    const mirror = mirrorOf(repository);
    const start = { baseSha: sha, headSha: sha, targetBranch: branch };
    const clone = join(place.workspace, repository.directory);
    await layOut(mirror, clone, { ...repository, branch }, start, await roomOf(sessionId), signal);
    await giveToAgent(place);
    const results = await onDisk.resultFolder(sessionId);
    return { folder, results, ...place, disk: onDisk.diskOf(sessionId), readOnly: [mirror.path] };
  }

  async function collect(request: CollectRequest): Promise<CollectedRepository[]> {
    const { sessionId, repositories, signal } = request;
    const prepared = (await onDisk.started(sessionId)) ?? [];
    const collected: CollectedRepository[] = [];
    for (const [index, repository] of repositories.entries()) {
      const start = prepared[index];
      if (start === undefined) continue;
      const mirror = mirrorOf(repository);
      const place = { ...folders(sessionId, [repository.url]), directory: repository.directory };
      const identity = { author: options.author, message: request.message, coAuthor: request.coAuthor };
      const { headSha, commits, isMoved } = await collectRepository({
        sandbox: options.sandbox,
        mirror: mirror.path,
        place,
        sessionId,
        branch: repository.branch,
        start,
        identity,
        limits: options.limits,
        signal,
      });
      const diff = await git(
        ["diff", "--no-ext-diff", "--no-textconv", "--no-color", `${start.baseSha}...${headSha}`],
        {
          cwd: mirror.path,
          signal,
          maximumOutput: Math.floor(patchLimit / repositories.length),
        },
      );
      const ahead = ["rev-list", "--max-count=1", headSha, "--not", start.baseSha];
      collected.push({
        headSha,
        commits,
        isMoved,
        isAhead: (await mustGit(ahead, { cwd: mirror.path, signal })) !== "",
        patch: diff.stdout,
        patchTruncated: diff.truncated || diff.code !== 0,
      });
    }
    return collected;
  }

  return {
    folders,
    mirrors: { directory: mirrors, use: mirrorUse, isKept: onDisk.isKept },
    exists: async (sessionId: string): Promise<boolean> => (await onDisk.started(sessionId)) !== null,
    prepare,
    prepareAgain,
    beginSetup,
    /** Removes the folder of a setup. @param folder of `beginSetup` */
    removeSetup: onDisk.removeSetup,
    /** A new folder for a setup's result, which stays until `endSetups`. */
    resultFolder: onDisk.resultFolder,
    endSetups: onDisk.endSetups,
    collect,
    markStarted: onDisk.markStarted,
    seenAt: onDisk.seenAt,
    aliases: onDisk.aliases,
    isSetUp: onDisk.isSetUp,
    markSetUp: onDisk.markSetUp,
    piecesFolder: onDisk.piecesFolder,
    incomingFolder: onDisk.incomingFolder,
    forgetIncoming: onDisk.forgetIncoming,
    list: onDisk.list,
    isUntouchedFor: onDisk.isUntouchedFor,
    forget: onDisk.forget,
    close: onDisk.close,
    /** Opens the repository of checkpoints of one repository's work. @param how.anew deletes the earlier ones */
    async keptWork(sessionId: string, repository: WorkspaceRepository, how: { anew: boolean; signal: AbortSignal }) {
      const { path: mirror } = mirrorOf(repository);
      const home = onDisk.keptHome(sessionId);
      await options.sandbox.makeWritable(home);
      const kept = await openKeptWork(onDisk.keptPath(sessionId, repository.directory), mirror, how);
      return { ...kept, home, mirrorObjects: join(mirror, "objects") };
    },
    /**
     * Pushes a work branch from the mirror.
     * @returns the commit that the branch is at
     * @throws RunError push_rejected, branch_diverged, branch_protected, repository_*
     */
    push: (request: {
      readonly repository: WorkspaceRepository;
      readonly headSha: string;
      /** Commits that the session made, in this attempt or before. */
      readonly own: ReadonlySet<string>;
      readonly message: string;
      readonly signal: AbortSignal;
    }): Promise<string> => {
      const { repository, headSha: sha, own, message, signal } = request;
      const { branch, configuredBranch = null } = repository;
      const push = { branch, configuredBranch, sha, own, message, author: options.author };
      return pushBranch(mirrorOf(repository), push, signal);
    },
    /** Searches what a push would bring for secrets. @throws ObjectsError */
    lookThrough: (
      repository: WorkspaceRepository,
      start: PreparedRepository,
      push: Pick<PushLook, "head" | "secrets" | "allowed" | "signal">,
    ) => lookThroughPush({ ...push, cwd: mirrorOf(repository).path, known: knownOf(start) }),
    readFile: (repository: WorkspaceRepository, sha: string, path: string, signal: AbortSignal) =>
      readCommittedFile(mirrorOf(repository).path, sha, path, signal),
    /** Removes the session's folders, forgotten or not, and its pins in the mirrors. */
    async remove(sessionId: string): Promise<void> {
      await onDisk.remove(sessionId);
      for (const name of await namesIn(mirrors)) {
        const mirror = join(mirrors, name);
        if (name.endsWith(".git")) await mirrorUse.whileUsed(mirror, () => unpin(mirror, sessionId));
      }
    },
  };
}
