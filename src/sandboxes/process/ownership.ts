import { lstatSync } from "node:fs";
import { lchown, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { runProgram } from "./run-program.ts";
import type { UidClaims } from "./uids.ts";

/** User id used as root to check a container engine, before a session's own id is known. */
export const sandboxUid = 64_748;

/**
 * Creates a folder and, as root, changes the owner of the folder and its contents to the user id of the session, whose
 * folders have the same parent. No account has that id, and the kernel's per-user limits apply to each session alone. A
 * folder that already belongs to that user is left unchanged. No process of the session may run meanwhile.
 * Links are not followed (`-h`, and `-P`, the default). One `chown` takes far less than a call for each of 80,000
 * files; it changes a folder after its contents, so that an interrupted one is repeated.
 * @param claims assignment of user ids
 */
export async function giveToSandbox(directory: string, claims: UidClaims): Promise<void> {
  const made = await mkdir(directory, { recursive: true });
  if (process.getuid?.() !== 0) return;
  const uid = await claims.of(dirname(directory));
  if (ownerOf(directory) === uid) return;
  if (made !== undefined) await lchown(directory, uid, uid);
  else await runProgram("chown", ["-R", "-h", `${uid}:${uid}`, directory]);
}

/** User id that owns a file, or a link itself; null if it does not exist. */
export function ownerOf(path: string): number | null {
  return lstatSync(path, { throwIfNoEntry: false })?.uid ?? null;
}

/**
 * User id of a sandbox's processes if the server is root: the owner of its home, which only the server can change.
 * @throws Error if the home was not given to a session: root inside would be the kernel's root
 */
export function userOfHome(home: string): number {
  const uid = ownerOf(home);
  if (uid === null || uid === 0) throw new Error(`${home} belongs to no session: it must be made writable first`);
  return uid;
}
