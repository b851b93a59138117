import { lstat } from "node:fs/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import type { Clone } from "./clone.ts";

/** Whether a clone's folder is there, or a link in its place, which is not followed: an agent may have removed it, or moved it away. */
export async function hasFolder({ folder }: Pick<Clone, "folder">): Promise<boolean> {
  const found = await lstat(folder).catch(() => null);
  return found !== null && (found.isDirectory() || found.isSymbolicLink());
}

/** The failure of a turn after which a clone's folder is gone. @param directory its name in the workspace */
export function folderGone(directory: string): SessionError {
  return new SessionError({
    code: "workspace_broken",
    reason: `The agent removed its repository's folder ${directory}, or moved it away, so that there is nothing to take out.`,
    retryable: false,
    remedy: "Tell the agent in a message to go on: it then has a fresh clone, with the work up to the last checkpoint.",
  });
}
