import { join } from "node:path";
import { namesIn } from "../disk/session-folders.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import type { CloneServices } from "./clone.ts";
import { unpin } from "./create-clone.ts";

/** Removes a session's folders, forgotten or not, and its pins in the mirrors. */
export async function removeSession(
  { folders, mirrors }: Pick<CloneServices, "folders" | "mirrors">,
  sessionId: string,
): Promise<void> {
  await folders.remove(sessionId);
  for (const mirror of await mirrorsIn(mirrors)) await mirrors.use.whileUsed(mirror, () => unpin(mirror, sessionId));
}

/**
 * Removes leftovers of a session, and its pins in mirrors that are not in use, unless it has folders again. Pins that
 * stay are removed with the maintenance of their mirrors.
 */
export async function removeForgotten(
  { folders, mirrors }: Pick<CloneServices, "folders" | "mirrors">,
  sessionId: string,
): Promise<void> {
  await folders.removeForgotten(sessionId);
  for (const mirror of await mirrorsIn(mirrors))
    await mirrors.use.whileUnused(mirror, async () => {
      // A session makes its folder before it pins.
      if (!folders.isKept(sessionId)) await unpin(mirror, sessionId);
    });
}

async function mirrorsIn({ directory }: Pick<Mirrors, "directory">): Promise<string[]> {
  return (await namesIn(directory)).filter((name) => name.endsWith(".git")).map((name) => join(directory, name));
}
