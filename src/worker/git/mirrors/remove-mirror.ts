import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { mustGit } from "../git.ts";
import type { Mirrors } from "./mirrors.ts";

/** Prefix of the name of a mirror that is being removed, which no session looks for. */
export const removedPrefix = "removed-";

/** The mirrors, and the sessions whose clones borrow from them. */
interface Borrowers {
  readonly mirrors: Pick<Mirrors, "directory" | "use">;
  /** Returns whether a session has folders on this disk. */
  readonly folders: { isKept(sessionId: string): boolean };
}

/** Offstage's refs in a mirror, each with the session that it pins objects for; null if it is for none. */
export async function pinsOf(path: string, signal: AbortSignal): Promise<{ ref: string; sessionId: string | null }[]> {
  const listed = await mustGit(["for-each-ref", "--sort=-committerdate", "--format=%(refname)", "refs/offstage/"], {
    cwd: path,
    signal,
  });
  return listed
    .split("\n")
    .filter((ref) => ref !== "")
    .map((ref) => ({
      ref,
      sessionId:
        /^refs\/offstage\/(?:fetching\/refs-offstage-)?((?:replay-)?[0-9a-f]{8}-[0-9a-f-]{27})[/-]/u.exec(ref)?.[1] ??
        null,
    }));
}

async function isPinned({ folders }: Pick<Borrowers, "folders">, path: string, signal: AbortSignal): Promise<boolean> {
  const pins = await pinsOf(path, signal);
  return pins.some(({ sessionId }) => sessionId !== null && folders.isKept(sessionId));
}

/**
 * Removes a mirror that no session pins. The rename takes it away in one step: a session finds it whole or not at all, and then
 * makes it again.
 * @returns whether it was removed
 */
export async function removeUnpinned(
  { mirrors, folders }: Borrowers,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  const aside = join(mirrors.directory, `${removedPrefix}${randomBytes(8).toString("hex")}`);
  const isUnused = await mirrors.use.whileUnused(path, async () => {
    if (await isPinned({ folders }, path, signal)) return;
    await rename(path, aside);
    // A replay, which is another process, may have started to borrow from it in the meantime.
    if (await isPinned({ folders }, aside, signal)) await rename(aside, path);
  });
  if (!isUnused || !existsSync(aside)) return false;
  await rm(aside, { recursive: true, force: true });
  return true;
}
