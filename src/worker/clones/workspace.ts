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

/** A session's folders. */
export interface LaidOut {
  readonly repositories: readonly PreparedRepository[];
  /** Found as they were left, or made anew. */
  readonly from: "disk" | "remote";
  /** Kept work of another worker that belongs into them, once they are set up. */
  readonly waiting: readonly WaitingWork[];
}

export interface CollectedRepository {
  readonly headSha: string;
  /** Those that are new since the last time. */
  readonly commits: readonly CollectedCommit[];
  /** Whether it is another than at the last time, or at the start. */
  readonly isMoved: boolean;
  /** Whether it has commits that the base has not. */
  readonly isAhead: boolean;
  readonly patch: string;
  readonly patchTruncated: boolean;
}

/** Where one setup runs, apart from the session's own folders. */
export interface SetupFolders extends MadeAt {
  /** Of the server's alone; the workspace and the home are in it. To be removed when its result is made. */
  readonly folder: string;
  /** For its result; of the server's alone. */
  readonly results: string;
  /** The session's, of which this setup is a part. */
  readonly disk: string;
  /** The one mirror that the clone borrows from. */
  readonly readOnly: readonly string[];
}

export interface WorkspaceOptions {
  readonly dataDirectory: string;
  readonly sandbox: Sandbox;
  readonly author: { readonly name: string; readonly email: string };
  readonly allowLocalRepositories: boolean;
  readonly limits: Limits;
  /** Disks of sessions' own; without it their folders are watched. */
  readonly disks?: SessionDisks;
  /** Of one fetch; a default server's without it. */
  readonly fetch?: FetchLimits;
}

export interface CollectRequest {
  readonly sessionId: string;
  readonly repositories: readonly WorkspaceRepository[];
  /** Message of the commit of what the agent left uncommitted. */
  readonly message: string;
  readonly coAuthor: { readonly name: string; readonly email: string } | null;
  readonly signal: AbortSignal;
}

export type Workspaces = ReturnType<typeof createWorkspaces>;

/** How much of the diffs of all its repositories is kept on a session: they are shown in one answer. */
const patchLimit = 2 * 1024 * 1024;

/**
 * The sessions' work: clones that borrow their objects from mirrors (alternates), so that they are made in no time, and what
 * the agent made of them. Nothing here runs git in a folder that an agent has touched.
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

  /** What the session has on its disk already counts. */
  async function roomOf(sessionId: string): Promise<Room> {
    const disk = onDisk.diskOf(sessionId);
    const { bytes, files } = (await diskUsage([disk], null)) ?? { bytes: 0, files: 0 };
    return { disk, bounds: options.limits, written: { bytes, files } };
  }

  function folders(sessionId: string, urls: readonly string[]) {
    /** The mirrors, whose objects the clones borrow. */
    return {
      ...onDisk.placeOf(sessionId),
      disk: onDisk.diskOf(sessionId),
      readOnly: urls.map((url) => mirrorPath(mirrors, url)),
    };
  }

  /**
   * Lays out the session's clones, or finds them as they were left: the record is written last, so that a half-made one is made
   * again. Where something is to be brought into them, that is by whoever did.
   */
  async function prepare(request: {
    readonly sessionId: string;
    readonly repositories: readonly WorkspaceRepository[];
    /** What another worker kept of each, by the folder in the workspace. */
    readonly keptWork: ReadonlyMap<string, KeptCheckpoint>;
    /** Folders in which that was made, where its harness is to find them. */
    readonly madeAt: MadeAt | null;
    /** Whether something is to be brought into them. */
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
      // What was too much is not kept until the next try.
      if (error instanceof RunError && error.code === "resources_exhausted") await onDisk.remove(sessionId);
      throw error;
    }
    await giveToAgent({ workspace, home });
    if (request.madeAt !== null) await onDisk.markMoved(sessionId, request.madeAt);
    if (!request.isRestored) await onDisk.markStarted(sessionId, prepared);
    return { repositories: prepared, from: "remote", waiting };
  }

  /**
   * A clone of the session's own, as the remote has it, or as the worker began that kept what it did: that waits then to be
   * brought into it. The mirror's pins are there when it ends.
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
    // Of an earlier life of the session on this machine, which others have gone on from.
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

  /** Whether all that the clones borrow is there: a mirror that somebody removed is fetched again. */
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

  /** Lays out what another session started from, of what the mirrors have: nobody is asked. @throws NotFoundError */
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
      // So that the mirror stays while this is at work, whatever becomes of the other session.
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

  /** A clone and a home that nothing was done in yet, for one setup. What stands in the workspace is one repository alone. */
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
    /** @param folder of `beginSetup` */
    removeSetup: onDisk.removeSetup,
    /** A new folder for what is to be put into a session's clones, until `endSetups`. */
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
    /** Where checkpoints of one repository's work are kept beside its clone. @param anew forgets those before */
    async keptWork(sessionId: string, repository: WorkspaceRepository, how: { anew: boolean; signal: AbortSignal }) {
      const { path: mirror } = mirrorOf(repository);
      const home = onDisk.keptHome(sessionId);
      await options.sandbox.makeWritable(home);
      const kept = await openKeptWork(onDisk.keptPath(sessionId, repository.directory), mirror, how);
      return { ...kept, home, mirrorObjects: join(mirror, "objects") };
    },
    /** @returns the commit that the branch is at */
    push: (request: {
      readonly repository: WorkspaceRepository;
      readonly headSha: string;
      /** Commits that the session made, in this run or before. */
      readonly own: ReadonlySet<string>;
      readonly message: string;
      readonly signal: AbortSignal;
    }): Promise<string> => {
      const { repository, headSha: sha, own, message, signal } = request;
      const { branch, configuredBranch = null } = repository;
      const push = { branch, configuredBranch, sha, own, message, author: options.author };
      return pushBranch(mirrorOf(repository), push, signal);
    },
    /** What of a push would show a secret. @throws ObjectsError */
    lookThrough: (
      repository: WorkspaceRepository,
      start: PreparedRepository,
      push: Pick<PushLook, "head" | "secrets" | "allowed" | "signal">,
    ) => lookThroughPush({ ...push, cwd: mirrorOf(repository).path, known: knownOf(start) }),
    readFile: (repository: WorkspaceRepository, sha: string, path: string, signal: AbortSignal) =>
      readCommittedFile(mirrorOf(repository).path, sha, path, signal),
    /** The session's folders, forgotten or not, and what it pinned in the mirrors. */
    async remove(sessionId: string): Promise<void> {
      await onDisk.remove(sessionId);
      for (const name of await namesIn(mirrors)) {
        const mirror = join(mirrors, name);
        if (name.endsWith(".git")) await mirrorUse.whileUsed(mirror, () => unpin(mirror, sessionId));
      }
    },
  };
}
