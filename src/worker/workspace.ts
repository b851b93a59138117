import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { NotFoundError } from "../domain/errors.ts";
import type { GitCredentials } from "../forges/forge.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { collectRepository, type CollectedCommit } from "./collect.ts";
import { git, mustGit } from "./git.ts";
import { openKeptWork, type WaitingWork } from "./kept-work.ts";
import { ensureMirror, fetchBranch, keepLatest, lookUpHeads, mirrorPath, pushBranch, type Mirror } from "./mirror.ts";
import { createMirrorUse } from "./mirror-use.ts";

export interface WorkspaceRepository {
  readonly id: string;
  readonly url: string;
  /** Folder in the workspace. */
  readonly directory: string;
  /** The branch to work on. */
  readonly branch: string;
  /** Null: the remote's default branch. */
  readonly targetBranch: string | null;
  /** Where the session started, if it did before. */
  readonly baseSha: string | null;
  /** What it made of it by the end of its last run, if there was one. */
  readonly headSha: string | null;
  /** Its host is one that the operator named. */
  readonly named: boolean;
  readonly credentials: () => Promise<GitCredentials | null>;
}

export interface PreparedRepository {
  /** The target branch when the session started: what the diff is against. */
  readonly baseSha: string;
  /** Where the work began: the base, or the tip of a branch that was there already. */
  readonly headSha: string;
  readonly targetBranch: string;
}

/** A session's folders. */
export interface LaidOut {
  readonly repositories: readonly PreparedRepository[];
  /** Found as they were left, or made anew. */
  readonly from: "disk" | "remote";
  /** Kept work of another worker that belongs into them, once they are set up. */
  readonly waiting: readonly WaitingWork[];
}

/** What the remote had when it was looked at. */
interface Heads extends PreparedRepository {
  readonly branchSha: string | null;
}

/** A repository's work as another worker kept it. */
export interface KeptCheckpoint {
  readonly start: PreparedRepository;
  readonly head: string;
  readonly commit: string;
  /** In their order, each with the last commit that it holds. */
  readonly packs: readonly { readonly file: string; readonly commit: string }[];
}

export interface CollectedRepository {
  readonly headSha: string;
  /** Those that are new since the last time. */
  readonly commits: readonly CollectedCommit[];
  /** Whether the work branch differs from the base. */
  readonly changed: boolean;
  readonly patch: string;
  readonly patchTruncated: boolean;
}

export interface WorkspaceOptions {
  readonly dataDirectory: string;
  readonly sandbox: Sandbox;
  readonly author: { readonly name: string; readonly email: string };
  readonly allowLocalRepositories: boolean;
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

/** Folders as a setup saw them. */
export interface MadeAt {
  readonly workspace: string;
  readonly home: string;
}
/** By the repository's folder in the workspace. */
type SetupRecord = Readonly<Record<string, { readonly madeAt: MadeAt | null }>>;

/** How much of one file of a repository's is read: settings and templates. */
const fileLimit = 100_000;
const lockFile =
  /[\t/](?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|deno\.lock|Cargo\.lock|poetry\.lock|uv\.lock|pdm\.lock|Pipfile\.lock|requirements[\w.-]*\.txt|Gemfile\.lock|composer\.lock|go\.sum|mix\.lock|gradle\.lockfile|packages\.lock\.json|pubspec\.lock|flake\.lock|pom\.xml|package\.json|\.tool-versions|\.nvmrc|\.python-version)$/u;
const historyLimit = 64 * 1024 * 1024;
/** How much of a diff is kept on a session. */
const patchLimit = 2 * 1024 * 1024;

/**
 * The sessions' folders: `<data>/sessions/<id>/workspace` and `home`, which the agent may write, and a record of ours
 * beside them, which it may not. Each clone borrows its objects from the mirror (alternates), so that it is made in no time.
 * Nothing here runs git in a folder that an agent has touched.
 */
export function createWorkspaces(options: WorkspaceOptions) {
  const mirrors = join(options.dataDirectory, "mirrors");
  const mirrorUse = createMirrorUse();
  const incoming = join(options.dataDirectory, "incoming");
  const root = (sessionId: string): string => join(options.dataDirectory, "sessions", sessionId);
  const setupPath = (sessionId: string): string => join(root(sessionId), "setup.json");
  /** Where its harness saw the folders, where it began on another machine. */
  const movedPath = (sessionId: string): string => join(root(sessionId), "moved.json");
  const keptPath = (sessionId: string, { directory }: WorkspaceRepository): string =>
    join(root(sessionId), "kept", `${directory}.git`);
  const recordPath = (sessionId: string): string => join(root(sessionId), "prepared.json");

  function mirrorOf(repository: WorkspaceRepository): Mirror {
    const { url, named, credentials } = repository;
    return {
      path: mirrorPath(mirrors, url),
      url,
      named,
      local: options.allowLocalRepositories && url.startsWith("/"),
      credentials,
    };
  }

  function folders(sessionId: string, urls: readonly string[]) {
    return {
      workspace: join(root(sessionId), "workspace"),
      home: join(root(sessionId), "home"),
      /** The mirrors, whose objects the clones borrow. */
      readOnly: urls.map((url) => mirrorPath(mirrors, url)),
    };
  }

  const record = (sessionId: string) => readRecord<PreparedRepository[]>(recordPath(sessionId));
  const setups = async (sessionId: string) => (await readRecord<SetupRecord>(setupPath(sessionId))) ?? {};

  /** Lays out the session's clones, or finds them as they were left: the record is written last, so that a half-made one is made again. */
  async function prepare(request: {
    readonly sessionId: string;
    readonly repositories: readonly WorkspaceRepository[];
    /** What another worker kept of each, by the folder in the workspace. */
    readonly keptWork: ReadonlyMap<string, KeptCheckpoint>;
    /** Folders in which that was made, where its harness is to find them. */
    readonly madeAt: MadeAt | null;
    readonly progress: (progress: { text: string; fraction?: number }) => void;
    readonly signal: AbortSignal;
  }): Promise<LaidOut> {
    const { sessionId, repositories } = request;
    const known = await record(sessionId);
    if (known !== null && (await hasObjects(known, request))) return { repositories: known, from: "disk", waiting: [] };
    const { workspace, home } = folders(sessionId, []);
    await rm(root(sessionId), { recursive: true, force: true });
    await mkdir(workspace, { recursive: true });
    const prepared: PreparedRepository[] = [];
    const waiting: WaitingWork[] = [];
    for (const repository of repositories) {
      const mirror = mirrorOf(repository);
      const { start, work } = await mirrorUse.whileUsed(mirror.path, () => begin(request, repository, mirror));
      if (work !== null) waiting.push(work);
      prepared.push({ baseSha: start.baseSha, headSha: start.headSha, targetBranch: start.targetBranch });
    }
    await options.sandbox.makeWritable(workspace);
    await options.sandbox.makeWritable(home);
    if (request.madeAt !== null) await writeRecord(movedPath(sessionId), request.madeAt);
    await writeRecord(recordPath(sessionId), prepared);
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
  ): Promise<{ start: PreparedRepository; work: WaitingWork | null }> {
    const { directory } = repository;
    const clone = join(folders(sessionId, []).workspace, directory);
    await ensureMirror(mirror, signal);
    // Of an earlier life of the session on this machine, which others have gone on from.
    await unpin(mirror.path, sessionId);
    const heads = await fetchHeads(mirror, sessionId, repository, progress, signal);
    const checkpoint = keptWork.get(directory);
    const isKept = checkpoint !== undefined && (await goesOnFrom(mirror, checkpoint, repository, heads, signal));
    const start = isKept ? checkpoint.start : heads;
    await layOut(mirror, clone, repository, start, signal);
    if (!isKept) return { start, work: null };
    const kept = await openKeptWork(keptPath(sessionId, repository), mirror.path, { anew: true, signal });
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
    const prepared = await record(originalId);
    if (prepared === null) throw new NotFoundError(`what session ${originalId} started from is no longer here`);
    const { workspace, home } = folders(sessionId, []);
    await mkdir(workspace, { recursive: true });
    for (const [index, repository] of repositories.entries()) {
      const start = prepared[index];
      if (start === undefined) continue;
      const mirror = mirrorOf(repository);
      // So that the mirror stays while this is at work, whatever becomes of the other session.
      for (const [name, sha] of Object.entries({ target: start.baseSha, start: start.headSha })) {
        const pin = `refs/offstage/${sessionId}/${repository.directory}/${name}`;
        await mustGit(["update-ref", pin, sha], { cwd: mirror.path, signal });
      }
      await layOut(mirror, join(workspace, repository.directory), repository, start, signal);
    }
    await options.sandbox.makeWritable(workspace);
    await options.sandbox.makeWritable(home);
    await writeRecord(recordPath(sessionId), prepared);
    return prepared;
  }

  async function collect(request: CollectRequest): Promise<CollectedRepository[]> {
    const { sessionId, repositories, signal } = request;
    const prepared = (await record(sessionId)) ?? [];
    const collected: CollectedRepository[] = [];
    for (const [index, repository] of repositories.entries()) {
      const start = prepared[index];
      if (start === undefined) continue;
      const mirror = mirrorOf(repository);
      const place = { ...folders(sessionId, [repository.url]), directory: repository.directory };
      const identity = { author: options.author, message: request.message, coAuthor: request.coAuthor };
      const { headSha, commits } = await collectRepository({
        sandbox: options.sandbox,
        mirror: mirror.path,
        place,
        sessionId,
        start,
        identity,
        signal,
      });
      const diff = await git(
        ["diff", "--no-ext-diff", "--no-textconv", "--no-color", `${start.baseSha}...${headSha}`],
        {
          cwd: mirror.path,
          signal,
          maximumOutput: patchLimit,
        },
      );
      collected.push({
        headSha,
        commits,
        changed: headSha !== start.baseSha,
        patch: diff.stdout,
        patchTruncated: diff.truncated,
      });
    }
    return collected;
  }

  return {
    folders,
    mirrors: {
      directory: mirrors,
      use: mirrorUse,
      /** Whether a session has folders here, whose clones borrow from mirrors. */
      isKept: (sessionId: string): boolean => existsSync(root(sessionId)),
    },
    exists: async (sessionId: string): Promise<boolean> => (await record(sessionId)) !== null,
    prepare,
    prepareAgain,
    collect,
    /** Folders as the session's harness sees them: where they are, or where they were on the machine that it began on. */
    async seenAt(sessionId: string): Promise<MadeAt> {
      const { workspace, home } = folders(sessionId, []);
      return (await readRecord<MadeAt>(movedPath(sessionId))) ?? { workspace, home };
    },
    /** An empty folder for a checkpoint's pieces on their way out; beside the session's own, since they are not sealed yet. */
    piecesFolder: (sessionId: string): Promise<string> => emptyFolder(join(root(sessionId), "kept", "pieces")),
    /** The same for pieces on their way in. What a killed server left there is removed when the next one starts. */
    incomingFolder: (sessionId: string): Promise<string> => emptyFolder(join(incoming, sessionId)),
    forgetIncoming: (): Promise<void> => rm(incoming, { recursive: true, force: true }),
    /** Where checkpoints of one repository's work are kept beside its clone. @param anew forgets those before */
    async keptWork(sessionId: string, repository: WorkspaceRepository, how: { anew: boolean; signal: AbortSignal }) {
      const { path: mirror } = mirrorOf(repository);
      const home = join(root(sessionId), "kept", "home");
      await options.sandbox.makeWritable(home);
      const kept = await openKeptWork(keptPath(sessionId, repository), mirror, how);
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
      const push = { branch: repository.branch, sha, own, message, author: options.author };
      return pushBranch(mirrorOf(repository), push, signal);
    },
    /** Everything that would be pushed, as text: each commit's message and changes. Beyond 64 MiB it is cut. */
    history: (repository: WorkspaceRepository, start: PreparedRepository, headSha: string, signal: AbortSignal) =>
      mustGit(
        [
          "log",
          "--patch",
          "--text",
          "--no-ext-diff",
          "--no-textconv",
          "--no-color",
          "--format=%an%n%ae%n%B",
          headSha,
          "--not",
          start.baseSha,
          start.headSha,
        ],
        { cwd: mirrorOf(repository).path, signal, maximumOutput: historyLimit },
      ),
    /** One file as it stands in a commit; null where there is none. */
    async readFile(
      repository: WorkspaceRepository,
      sha: string,
      path: string,
      signal: AbortSignal,
    ): Promise<string | null> {
      const { code, stdout } = await git(["cat-file", "blob", `${sha}:${path}`], {
        cwd: mirrorOf(repository).path,
        signal,
        maximumOutput: fileLimit,
      });
      return code === 0 ? stdout : null;
    },
    /** The files of a commit by which package managers pin what they install, each with its content's name. */
    async lockFiles(repository: WorkspaceRepository, sha: string, signal: AbortSignal): Promise<string[]> {
      const listed = await mustGit(["ls-tree", "-r", sha], { cwd: mirrorOf(repository).path, signal });
      return listed.split("\n").filter((line) => lockFile.test(line));
    },
    /** Whether a repository's script was run in the session's clone. */
    isSetUp: async (sessionId: string, directory: string): Promise<boolean> =>
      (await setups(sessionId))[directory] !== undefined,
    /** @param madeAt folders in which it was made, where it was taken from another session */
    async markSetUp(sessionId: string, directory: string, madeAt: MadeAt | null): Promise<void> {
      await writeRecord(setupPath(sessionId), { ...(await setups(sessionId)), [directory]: { madeAt } });
    },
    /** Where the session's folders are seen too. */
    async aliases(sessionId: string): Promise<{ path: string; folder: string }[]> {
      const { workspace, home } = folders(sessionId, []);
      const known = Object.values(await setups(sessionId)).flatMap(({ madeAt }) => madeAt ?? []);
      return known.flatMap((madeAt) => [
        { path: madeAt.workspace, folder: workspace },
        { path: madeAt.home, folder: home },
      ]);
    },
    /** Sessions that have folders here. */
    list: (): Promise<string[]> => namesIn(join(options.dataDirectory, "sessions")),
    /** Whether nothing was made or removed in its folders for so long. */
    async isUntouchedFor(sessionId: string, ms: number): Promise<boolean> {
      const times = await Promise.all(
        [root(sessionId), folders(sessionId, []).workspace].map((path) =>
          stat(path).then(
            ({ mtimeMs }) => mtimeMs,
            () => 0,
          ),
        ),
      );
      return Date.now() - Math.max(...times) > ms;
    },
    /** From here on it has none; what is on the disk is removed by `remove`. */
    async forget(sessionId: string): Promise<void> {
      await rm(root(`${removed}${sessionId}`), { recursive: true, force: true });
      await rename(root(sessionId), root(`${removed}${sessionId}`)).catch(ignoreMissing);
    },
    /** The session's folders, forgotten or not, and what it pinned in the mirrors. */
    async remove(sessionId: string): Promise<void> {
      for (const folder of [root(sessionId), root(`${removed}${sessionId}`)]) {
        await rm(folder, { recursive: true, force: true });
      }
      for (const name of await namesIn(mirrors)) {
        const mirror = join(mirrors, name);
        if (name.endsWith(".git")) await mirrorUse.whileUsed(mirror, () => unpin(mirror, sessionId));
      }
    },
  };
}

/** What a session started from is known wherever its repository is. */
export function knownOf({ baseSha, headSha }: PreparedRepository): string[] {
  return [...new Set([baseSha, headSha])];
}

/**
 * Whether a checkpoint's work can be gone on from here: what it began with is there, and the branch was not pushed by the
 * worker that died after it had been taken.
 */
async function goesOnFrom(
  mirror: Mirror,
  { start, head }: KeptCheckpoint,
  { headSha: recorded }: WorkspaceRepository,
  { branchSha }: Heads,
  signal: AbortSignal,
): Promise<boolean> {
  for (const sha of knownOf(start)) {
    const { code } = await git(["cat-file", "-e", `${sha}^{commit}`], { cwd: mirror.path, signal });
    if (code !== 0) return false;
  }
  return branchSha === null || branchSha === start.headSha || branchSha === head || branchSha !== recorded;
}

async function emptyFolder(path: string): Promise<string> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true, mode: 0o700 });
  return path;
}

/** Of a session's folder that is about to be removed. */
const removed = "removed-";

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    ignoreMissing(error);
    return [];
  });
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

/** Lets go of what a session kept from being pruned. */
async function unpin(mirror: string, sessionId: string): Promise<void> {
  const options = { cwd: mirror, signal: AbortSignal.timeout(60_000) };
  const { code, stdout } = await git(["for-each-ref", "--format=%(refname)", `refs/offstage/${sessionId}/`], options);
  if (code !== 0) return;
  for (const ref of stdout.split("\n").filter((name) => name !== "")) await mustGit(["update-ref", "-d", ref], options);
}

async function readRecord<T>(path: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Whole or not at all, whatever happens in between. */
async function writeRecord(path: string, content: unknown): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(content));
  await rename(`${path}.new`, path);
}

/** Fetches what the session starts from, pinned in the mirror by names of ours. */
async function fetchHeads(
  mirror: Mirror,
  sessionId: string,
  repository: WorkspaceRepository,
  progress: (progress: { text: string; fraction?: number }) => void,
  signal: AbortSignal,
): Promise<Heads> {
  const { targetBranch, targetSha, branchSha } = await lookUpHeads(mirror, repository, signal);
  const pin = `refs/offstage/${sessionId}/${repository.directory}`;
  const report = (line: string): void => {
    const percent = /(\d+)%/u.exec(line)?.[1];
    progress({ text: line.slice(0, 200), ...(percent !== undefined && { fraction: Number(percent) / 100 }) });
  };
  await fetchBranch(mirror, { branch: targetBranch, sha: targetSha, into: `${pin}/target` }, report, signal);
  await keepLatest(mirror, targetBranch, targetSha, signal);
  if (branchSha !== null) {
    await fetchBranch(mirror, { branch: repository.branch, sha: branchSha, into: `${pin}/start` }, report, signal);
  }
  return { baseSha: repository.baseSha ?? targetSha, headSha: branchSha ?? targetSha, targetBranch, branchSha };
}

/** A clone of the session's own: its objects borrowed from the mirror, its work branch checked out. */
async function layOut(
  mirror: Mirror,
  folder: string,
  repository: WorkspaceRepository,
  { headSha, targetBranch, baseSha }: PreparedRepository,
  signal: AbortSignal,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const options = { cwd: folder, signal };
  await mustGit(["init", "--quiet", "--initial-branch", repository.branch], options);
  await writeFile(join(folder, ".git/objects/info/alternates"), `${join(mirror.path, "objects")}\n`);
  await mustGit(["remote", "add", "origin", repository.url], options);
  await mustGit(["update-ref", `refs/remotes/origin/${targetBranch}`, baseSha], options);
  await mustGit(["reset", "--quiet", "--hard", headSha], options);
  if (!existsSync(join(folder, ".git/HEAD"))) throw new Error(`the clone in ${folder} was not made`);
}
