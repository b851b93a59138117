import type { Database } from "../../database/database.ts";
import type { Logger } from "../../observability.ts";
import { whileEnded } from "../../store/prune.ts";
import { removeForgotten, removeSession } from "../clones/remove-session.ts";
import { forgottenPrefix, type SessionFolders } from "../disk/session-folders.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";

const untouchedMs = 24 * 60 * 60 * 1_000;

/**
 * Removes the folders of sessions that have been over for the given number of days, and folders without a session (of a replay
 * that was killed). A follow-up starts with a fresh clone of the pushed branch; the diff stays on the session. Errors are
 * logged.
 * @returns how many were removed
 */
export async function pruneWorkspaces(
  services: {
    readonly database: Database;
    readonly logger: Logger;
    readonly folders: SessionFolders;
    readonly mirrors: Mirrors;
  },
  days: number,
  signal: AbortSignal,
): Promise<number> {
  const { database, logger, folders } = services;
  let count = 0;
  for (const name of await folders.list()) {
    // Checked before each one, since removing may take long and a stopping worker must not wait for all.
    if (signal.aborted) break;
    try {
      // Its removal was interrupted when the server was killed.
      const isForgotten = name.startsWith(forgottenPrefix);
      const sessionId = isForgotten ? name.slice(forgottenPrefix.length) : name;
      const isOver = isForgotten ? true : await whileEnded(database, name, days, () => folders.forget(name));
      // The folder of a replay has no session: another process may be using it.
      if (isOver === false || (isOver === null && !(await folders.isUntouchedFor(name, untouchedMs)))) continue;
      // Leftovers may be of a session that works here again since, in folders of the same name.
      await (isOver === true ? removeForgotten : removeSession)(services, sessionId);
      count += 1;
    } catch (error) {
      logger.warn({ err: error, sessionId: name }, "could not remove a session's folders; will retry");
    }
  }
  return count;
}
