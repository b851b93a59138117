import type { Database } from "../../database/database.ts";
import type { Logger } from "../../observability.ts";
import { whileOver } from "../../store/retention.ts";
import type { Workspaces } from "../clones/workspace.ts";
import { forgottenPrefix } from "../disk/session-folders.ts";

const untouchedMs = 24 * 60 * 60 * 1_000;

/**
 * Removes the folders of sessions that were over for so many days, and of what no session is known of (a replay that was
 * killed). A follow-up begins with a fresh clone of the pushed branch; the diff stays on the session.
 * @returns how many
 */
export async function pruneWorkspaces(
  { database, logger }: { readonly database: Database; readonly logger: Logger },
  workspaces: Workspaces,
  days: number,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (const name of await workspaces.list()) {
    // A worker that is to stop must not come to that late, for each may be as large as a disk.
    if (signal.aborted) break;
    try {
      // Half removed, when the server was killed.
      const isForgotten = name.startsWith(forgottenPrefix);
      const sessionId = isForgotten ? name.slice(forgottenPrefix.length) : name;
      const isOver = isForgotten ? true : await whileOver(database, name, days, () => workspaces.forget(name));
      // A replay's is of no session: it may be at work in another process.
      if (isOver === false || (isOver === null && !(await workspaces.isUntouchedFor(name, untouchedMs)))) continue;
      await workspaces.remove(sessionId);
      count += 1;
    } catch (error) {
      logger.warn({ err: error, sessionId: name }, "could not remove a session's folders; will try again");
    }
  }
  return count;
}
