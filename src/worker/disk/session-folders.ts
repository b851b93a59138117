import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../atomic-file.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { CloneStart } from "../git/remote-repository.ts";
import { bootId } from "./boot-id.ts";
import { removeFolder } from "./remove-folder.ts";
import { watchedDisks, type SessionDisks } from "./session-disk.ts";

/** Paths at which a setup or a harness saw the session's folders. */
export interface SessionPaths {
  readonly workspace: string;
  readonly home: string;
}
/**
 * The start of one clone, in the record of a session's folders; without its folder's name in records of earlier
 * versions.
 */
export type StartRecord = CloneStart & { readonly directory?: string };

/** Setups that were done, by the repository's folder in the workspace. `madeAt`: paths at which the result was made. */
type SetupRecord = Readonly<Record<string, { readonly madeAt: SessionPaths | null }>>;

/** The end of a turn, beside the folders that it left. */
export interface AnsweredRecord {
  /** Id of the message that it answered. */
  readonly message: string;
  /** Its answer, with secrets masked. */
  readonly answer: string;
  /** Its last events, also masked, of which it is not known that the database has them. */
  readonly events: readonly NewEvent[];
}

/** Folders of a sandbox that is started before they are a session's. */
export interface EarlyFolders {
  readonly id: string;
  /** The folder that has the others. */
  readonly disk: string;
  readonly home: string;
  /** Folder in which the harness is started: empty, and never a session's workspace. */
  readonly idle: string;
}

/** The sessions' folders on this worker's disk. */
export interface SessionFolders {
  /** The session's own folders, whether or not they exist. */
  pathsOf(sessionId: string): SessionPaths;
  /** The folder of everything of a session; its disk bounds apply to it. */
  diskOf(sessionId: string): string;
  /** Path of the repository from which a clone's part of a checkpoint is restored. @param directory of the clone */
  checkpointPath(sessionId: string, directory: string): string;
  /** The home of the sandbox in which a checkpoint is taken. */
  checkpointHome(sessionId: string): string;
  /** Makes an empty workspace, and deletes all else of the session. @returns its folders; the home is not made yet */
  begin(sessionId: string): Promise<SessionPaths>;
  /** Makes folders for a sandbox that is started before they are a session's, outside of the sessions'. */
  beginEarly(): Promise<EarlyFolders>;
  /** The same in the session's own folders, as `begin` makes them: for a sandbox that is started while everything else is prepared. */
  beginWithIdle(sessionId: string): Promise<EarlyFolders>;
  /**
   * Makes a sandbox's folders the session's, with an empty workspace, and deletes all else of the session. The harness sees the
   * home at its first path, for good.
   */
  adopt(sessionId: string, early: EarlyFolders): Promise<SessionPaths>;
  /** Deletes a sandbox's folders that no session has. To be called when no process of it is left. */
  removeEarly(early: EarlyFolders): Promise<void>;
  /** Whether a session has folders here, whose clones borrow from mirrors. */
  isKept(sessionId: string): boolean;
  /** The starts of its clones; null if its folders were not completed. */
  started(sessionId: string): Promise<StartRecord[] | null>;
  /**
   * Makes the workspace of folders that were completed ready for use. Without this it may be an empty folder, in which a mount belongs.
   * @returns false if it is lost
   */
  openWorkspace(sessionId: string): Promise<boolean>;
  /** Closes the session's disk. To be called when no process uses it any longer. */
  close(sessionId: string): Promise<void>;
  /** Records that the folders are complete. To be called last: folders without this record are made again. */
  markStarted(sessionId: string, starts: readonly StartRecord[]): Promise<void>;
  /** Records the paths at which the harness saw the folders on the machine on which the session began. */
  markMoved(sessionId: string, originalPaths: SessionPaths): Promise<void>;
  /** Paths at which the session's harness sees the folders: the real ones, or those on the machine on which it began. */
  visiblePaths(sessionId: string): Promise<SessionPaths>;
  /** A new empty folder for one setup; leftovers of a killed setup are removed with the session. */
  setupFolder(sessionId: string): Promise<string>;
  /**
   * A new folder for a setup's result, outside the session's disk, whose bounds do not include it. Leftovers of a killed
   * server are removed by `forgetIncoming`.
   */
  resultFolder(sessionId: string): Promise<string>;
  /** Removes the folder of one setup. */
  removeSetup(folder: string): Promise<void>;
  /** Removes the folders of the session's setups and of their results. */
  endSetups(sessionId: string): Promise<void>;
  /**
   * An empty folder for the pieces of a checkpoint that is being taken; inside the session's folder, since they are not
   * encrypted yet.
   */
  piecesFolder(sessionId: string): Promise<string>;
  /** An empty folder for the pieces of a checkpoint that is being restored. */
  incomingFolder(sessionId: string): Promise<string>;
  /** Path of that folder, whether or not it exists. */
  incomingPath(sessionId: string): string;
  /**
   * Removes what a killed server left of restored checkpoints, setup results, and sandboxes without a session. To be called when the
   * server starts.
   */
  forgetIncoming(): Promise<void>;
  /** Whether a repository's setup script was run in the session's clone. */
  isSetUp(sessionId: string, directory: string): Promise<boolean>;
  /** Records that a repository is set up. @param originalPaths folders in which the result was made, if in another session */
  markSetUp(sessionId: string, directory: string, originalPaths: SessionPaths | null): Promise<void>;
  /** Records what a turn answered that ended in these folders, until the next one begins. */
  markAnswered(sessionId: string, answered: AnsweredRecord): Promise<void>;
  /**
   * The turn that ended in these folders last; null if none did since `forgetAnswered`, or the machine was started since: its files may
   * not have reached the disk.
   */
  answered(sessionId: string): Promise<AnsweredRecord | null>;
  /** Deletes it, before the folders change. */
  forgetAnswered(sessionId: string): Promise<void>;
  /** Further paths at which the session's folders must be visible. */
  aliases(sessionId: string): Promise<{ path: string; folder: string }[]>;
  /** Names of the folders here: session ids, and those with `forgottenPrefix`. */
  list(): Promise<string[]>;
  /** Whether nothing was created or deleted in its folders for this long. */
  isUntouchedFor(sessionId: string, ms: number): Promise<boolean>;
  /**
   * Marks the session's folders as gone, so that `started` finds none; `remove` deletes them. A session disk is deleted at
   * once.
   */
  forget(sessionId: string): Promise<void>;
  /** Deletes leftovers of the session, and not the folders that it has since. */
  removeForgotten(sessionId: string): Promise<void>;
  /** Deletes the session's folders, forgotten or not. */
  remove(sessionId: string): Promise<void>;
}

/** Prefix of the name of a session's folder that is about to be removed. */
export const forgottenPrefix = "removed-";

/**
 * Manages a session's folders on disk: `<data>/sessions/<id>/workspace` and `home`, which the agent may write, and Offstage's
 * records beside them, which it may not.
 * @param disks a disk for each session; if omitted, the folders are on the data folder's file system
 * @param owner is called with each removed folder, so that the sandbox may reuse what was the session's alone, such as its user; and of
 *   each that was renamed
 */
export function createSessionFolders(
  dataDirectory: string,
  disks: SessionDisks = watchedDisks,
  owner: Pick<Sandbox, "releaseOwner" | "moveOwner"> = noOwner,
): SessionFolders {
  const sessions = join(dataDirectory, "sessions");
  const incoming = join(dataDirectory, "incoming");
  const early = join(dataDirectory, "early");
  const giveBack = owner.releaseOwner;
  const root = (sessionId: string): string => join(sessions, sessionId);
  const results = (sessionId: string): string => join(incoming, `${sessionId}-setups`);
  const forgotten = (sessionId: string): string => join(sessions, `${forgottenPrefix}${sessionId}`);
  const startedPath = (sessionId: string): string => join(root(sessionId), "prepared.json");
  const setupPath = (sessionId: string): string => join(root(sessionId), "setup.json");
  /** Record of the paths at which the harness saw the folders, if the session began on another machine. */
  const movedPath = (sessionId: string): string => join(root(sessionId), "moved.json");
  const answeredPath = (sessionId: string): string => join(root(sessionId), "answered.json");
  const setups = async (sessionId: string) => (await readRecord<SetupRecord>(setupPath(sessionId))) ?? {};

  function pathsOf(sessionId: string): SessionPaths {
    return { workspace: join(root(sessionId), "workspace"), home: join(root(sessionId), "home") };
  }

  async function removeMade(folder: string): Promise<void> {
    await removeFolder(folder);
    await giveBack(folder);
  }

  /** In one step, so that removing the folder can never hit the next one of the same name. */
  async function setAside(sessionId: string): Promise<void> {
    if (existsSync(forgotten(sessionId))) await removeFolder(forgotten(sessionId));
    await disks.remove(sessionId, root(sessionId));
    await rename(root(sessionId), forgotten(sessionId)).catch(ignoreMissing);
    await giveBack(root(sessionId));
  }

  async function begin(sessionId: string): Promise<SessionPaths> {
    // A server that was killed may have left a process that still removes the last one.
    await setAside(sessionId);
    if (existsSync(forgotten(sessionId))) await removeFolder(forgotten(sessionId));
    const paths = pathsOf(sessionId);
    await mkdir(root(sessionId), { recursive: true, mode: 0o700 });
    await disks.make(sessionId, root(sessionId));
    await mkdir(paths.workspace);
    return paths;
  }

  return {
    pathsOf,
    diskOf: root,
    checkpointPath: (sessionId, directory) => join(root(sessionId), "kept", `${directory}.git`),
    checkpointHome: (sessionId) => join(root(sessionId), "checkpoint-home"),
    begin,
    async beginEarly() {
      const id = randomUUID();
      const disk = join(early, id);
      await mkdir(disk, { recursive: true, mode: 0o700 });
      return { id, disk, home: join(disk, "home"), idle: join(disk, "idle") };
    },
    async beginWithIdle(sessionId) {
      const { home } = await begin(sessionId);
      return { id: sessionId, disk: root(sessionId), home, idle: join(root(sessionId), "idle") };
    },
    async adopt(sessionId, { disk, home }) {
      await setAside(sessionId);
      if (existsSync(forgotten(sessionId))) await removeFolder(forgotten(sessionId));
      await mkdir(sessions, { recursive: true, mode: 0o700 });
      await rename(disk, root(sessionId));
      await owner.moveOwner(disk, root(sessionId));
      const paths = pathsOf(sessionId);
      await mkdir(paths.workspace);
      await writeRecord(movedPath(sessionId), { workspace: paths.workspace, home });
      return paths;
    },
    removeEarly: ({ disk }) => removeMade(disk),
    isKept: (sessionId) => existsSync(root(sessionId)),
    async started(sessionId) {
      await disks.open(sessionId, root(sessionId));
      return readRecord<StartRecord[]>(startedPath(sessionId));
    },
    openWorkspace: (sessionId) => disks.openWorkspace(sessionId, root(sessionId)),
    close: (sessionId) => disks.close(sessionId, root(sessionId)),
    markStarted: (sessionId, starts) => writeRecord(startedPath(sessionId), starts),
    markMoved: (sessionId, originalPaths) => writeRecord(movedPath(sessionId), originalPaths),
    visiblePaths: async (sessionId) => (await readRecord<SessionPaths>(movedPath(sessionId))) ?? pathsOf(sessionId),
    setupFolder: (sessionId) => emptyFolder(join(root(sessionId), "setups", randomUUID())),
    resultFolder: (sessionId) => emptyFolder(join(results(sessionId), randomUUID())),
    removeSetup: removeMade,
    async endSetups(sessionId) {
      await removeMade(join(root(sessionId), "setups"));
      await rm(results(sessionId), { recursive: true, force: true });
    },
    piecesFolder: (sessionId) => emptyFolder(join(root(sessionId), "kept", "pieces")),
    incomingFolder: (sessionId) => emptyFolder(join(incoming, sessionId)),
    incomingPath: (sessionId) => join(incoming, sessionId),
    async forgetIncoming() {
      await rm(incoming, { recursive: true, force: true });
      for (const id of await namesIn(early)) await removeMade(join(early, id));
    },
    isSetUp: async (sessionId, directory) => (await setups(sessionId))[directory] !== undefined,
    async markSetUp(sessionId, directory, originalPaths) {
      await writeRecord(setupPath(sessionId), { ...(await setups(sessionId)), [directory]: { madeAt: originalPaths } });
    },
    async markAnswered(sessionId, answered) {
      await writeRecord(answeredPath(sessionId), { ...answered, boot: await bootId() });
    },
    async answered(sessionId) {
      const record = await readRecord<AnsweredRecord & { readonly boot: string }>(answeredPath(sessionId));
      if (record === null || record.boot !== (await bootId())) return null;
      return { message: record.message, answer: record.answer, events: record.events };
    },
    forgetAnswered: (sessionId) => rm(answeredPath(sessionId), { force: true }),
    async aliases(sessionId) {
      const { workspace, home } = pathsOf(sessionId);
      const known = Object.values(await setups(sessionId)).flatMap(({ madeAt }) => madeAt ?? []);
      return known.flatMap((original) => [
        { path: original.workspace, folder: workspace },
        { path: original.home, folder: home },
      ]);
    },
    list: () => namesIn(sessions),
    async isUntouchedFor(sessionId, ms) {
      const times = await Promise.all(
        [root(sessionId), pathsOf(sessionId).workspace].map((path) =>
          stat(path).then(
            ({ mtimeMs }) => mtimeMs,
            () => 0,
          ),
        ),
      );
      return Date.now() - Math.max(...times) > ms;
    },
    forget: setAside,
    removeForgotten: (sessionId) => removeFolder(forgotten(sessionId)),
    async remove(sessionId) {
      await disks.remove(sessionId, root(sessionId));
      await removeFolder(forgotten(sessionId));
      await removeMade(root(sessionId));
    },
  };
}

const noOwner = { releaseOwner: () => Promise.resolve(), moveOwner: () => Promise.resolve() };

async function emptyFolder(path: string): Promise<string> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true, mode: 0o700 });
  return path;
}

/** Names in a folder; none if it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    ignoreMissing(error);
    return [];
  });
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

/** Reads a record; null if there is none, or a loss of power left it unreadable: what it described is then made again. */
async function readRecord<T>(path: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as T;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Not durable: see `readRecord`. */
async function writeRecord(path: string, content: unknown): Promise<void> {
  await replaceFile(path, JSON.stringify(content));
}
