import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import type { PreparedRepository } from "../git/workspace-repository.ts";
import { removeFolder } from "./remove-folder.ts";
import { watchedDisks, type SessionDisks } from "./session-disk.ts";

/** Folders as a setup or a harness saw them. */
export interface MadeAt {
  readonly workspace: string;
  readonly home: string;
}
/** By the repository's folder in the workspace. */
type SetupRecord = Readonly<Record<string, { readonly madeAt: MadeAt | null }>>;

/** Of the name of a session's folder that is about to be removed. */
export const forgottenPrefix = "removed-";

/**
 * Where a session's things are on the disk: `<data>/sessions/<id>/workspace` and `home`, which its agent may write, and
 * records of ours beside them, which it may not.
 * @param giveBack called for each folder that is gone, with all that was a session's alone
 */
export function createSessionFolders(
  dataDirectory: string,
  disks: SessionDisks = watchedDisks,
  giveBack: Sandbox["giveBack"] = () => Promise.resolve(),
) {
  const sessions = join(dataDirectory, "sessions");
  const incoming = join(dataDirectory, "incoming");
  const root = (sessionId: string): string => join(sessions, sessionId);
  const results = (sessionId: string): string => join(incoming, `${sessionId}-setups`);
  const forgotten = (sessionId: string): string => join(sessions, `${forgottenPrefix}${sessionId}`);
  const startedPath = (sessionId: string): string => join(root(sessionId), "prepared.json");
  const setupPath = (sessionId: string): string => join(root(sessionId), "setup.json");
  /** Where its harness saw the folders, where it began on another machine. */
  const movedPath = (sessionId: string): string => join(root(sessionId), "moved.json");
  const setups = async (sessionId: string) => (await readRecord<SetupRecord>(setupPath(sessionId))) ?? {};

  function placeOf(sessionId: string): MadeAt {
    return { workspace: join(root(sessionId), "workspace"), home: join(root(sessionId), "home") };
  }

  async function removeMade(folder: string): Promise<void> {
    await removeFolder(folder);
    await giveBack(folder);
  }

  return {
    placeOf,
    /** The one folder that has all of a session's, and that bounds of its disk are for. */
    diskOf: root,
    keptPath: (sessionId: string, directory: string): string => join(root(sessionId), "kept", `${directory}.git`),
    keptHome: (sessionId: string): string => join(root(sessionId), "checkpoint-home"),
    /** An empty workspace, and nothing else of the session. @returns its path */
    async begin(sessionId: string): Promise<MadeAt> {
      await disks.remove(sessionId, root(sessionId));
      await removeMade(root(sessionId));
      const place = placeOf(sessionId);
      await mkdir(root(sessionId), { recursive: true, mode: 0o700 });
      await disks.make(sessionId, root(sessionId));
      await mkdir(place.workspace);
      return place;
    },
    /** Whether a session has folders here, whose clones borrow from mirrors. */
    isKept: (sessionId: string): boolean => existsSync(root(sessionId)),
    /** What its repositories started from; null where its folders were not made to the end. */
    async started(sessionId: string): Promise<PreparedRepository[] | null> {
      await disks.open(sessionId, root(sessionId));
      return readRecord<PreparedRepository[]>(startedPath(sessionId));
    },
    /** To be called when nothing works in them any longer. */
    close: (sessionId: string): Promise<void> => disks.close(sessionId, root(sessionId)),
    /** To be called last: half-made folders have no such record, and are made again. */
    markStarted: (sessionId: string, prepared: readonly PreparedRepository[]): Promise<void> =>
      writeRecord(startedPath(sessionId), prepared),
    markMoved: (sessionId: string, madeAt: MadeAt): Promise<void> => writeRecord(movedPath(sessionId), madeAt),
    /** Folders as the session's harness sees them: where they are, or where they were on the machine that it began on. */
    seenAt: async (sessionId: string): Promise<MadeAt> =>
      (await readRecord<MadeAt>(movedPath(sessionId))) ?? placeOf(sessionId),
    /** An empty folder for one setup, another each time: what a killed one left goes with the session. */
    setupFolder: (sessionId: string): Promise<string> => emptyFolder(join(root(sessionId), "setups", randomUUID())),
    /** Where a setup's result waits: beside the session's disk, since both are there at once. A killed server's goes as pieces do. */
    resultFolder: (sessionId: string): Promise<string> => emptyFolder(join(results(sessionId), randomUUID())),
    removeSetup: removeMade,
    /** What is left of the session's setups, and of their results. */
    async endSetups(sessionId: string): Promise<void> {
      await removeMade(join(root(sessionId), "setups"));
      await rm(results(sessionId), { recursive: true, force: true });
    },
    /** An empty folder for a checkpoint's pieces on their way out; beside the session's own, since they are not sealed yet. */
    piecesFolder: (sessionId: string): Promise<string> => emptyFolder(join(root(sessionId), "kept", "pieces")),
    /** The same for pieces on their way in. What a killed server left there is removed when the next one starts. */
    incomingFolder: (sessionId: string): Promise<string> => emptyFolder(join(incoming, sessionId)),
    forgetIncoming: (): Promise<void> => rm(incoming, { recursive: true, force: true }),
    /** Whether a repository's script was run in the session's clone. */
    isSetUp: async (sessionId: string, directory: string): Promise<boolean> =>
      (await setups(sessionId))[directory] !== undefined,
    /** @param madeAt folders in which it was made, where it was taken from another session */
    async markSetUp(sessionId: string, directory: string, madeAt: MadeAt | null): Promise<void> {
      await writeRecord(setupPath(sessionId), { ...(await setups(sessionId)), [directory]: { madeAt } });
    },
    /** Where the session's folders are seen too. */
    async aliases(sessionId: string): Promise<{ path: string; folder: string }[]> {
      const { workspace, home } = placeOf(sessionId);
      const known = Object.values(await setups(sessionId)).flatMap(({ madeAt }) => madeAt ?? []);
      return known.flatMap((madeAt) => [
        { path: madeAt.workspace, folder: workspace },
        { path: madeAt.home, folder: home },
      ]);
    },
    /** Sessions that have folders here. */
    list: (): Promise<string[]> => namesIn(sessions),
    /** Whether nothing was made or removed in its folders for so long. */
    async isUntouchedFor(sessionId: string, ms: number): Promise<boolean> {
      const times = await Promise.all(
        [root(sessionId), placeOf(sessionId).workspace].map((path) =>
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
      await removeFolder(forgotten(sessionId));
      await disks.remove(sessionId, root(sessionId));
      await rename(root(sessionId), forgotten(sessionId)).catch(ignoreMissing);
      await giveBack(root(sessionId));
    },
    /** The session's folders, forgotten or not. */
    async remove(sessionId: string): Promise<void> {
      await disks.remove(sessionId, root(sessionId));
      await removeFolder(forgotten(sessionId));
      await removeMade(root(sessionId));
    },
  };
}

async function emptyFolder(path: string): Promise<string> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true, mode: 0o700 });
  return path;
}

/** What is in a folder; nothing where there is none. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: unknown) => {
    ignoreMissing(error);
    return [];
  });
}

function ignoreMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}

/** What a machine that lost its power left of one is none: what it would tell of is made again. */
async function readRecord<T>(path: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as T;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Whole or not at all, whatever happens in between. */
async function writeRecord(path: string, content: unknown): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(content));
  await rename(`${path}.new`, path);
}
