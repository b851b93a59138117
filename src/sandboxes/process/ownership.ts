import { lstatSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { runProgram } from "./run-program.ts";
import { UidClaims, usualUids } from "./uids.ts";

/** The user that a container engine is told of under root, before a session's own is known. */
export const sandboxUid = 64_748;

let usualClaims: UidClaims | null = null;

/**
 * Makes a folder, and under root gives it with all that is in it to the user of the session whose folders lie beside it: each
 * session has a user of its own, which no account has, and by it bounds of its own of all that the kernel counts for each user.
 * A folder that has its user already is left as it is.
 *
 * No process of the session may run meanwhile. Links are not followed (`-h`, and `-P`, which is the default). The program does
 * it in one go, where a call for each of 80,000 files would take seconds; it changes a folder after what is in it, so that one
 * which was cut off is done again.
 * @param claims who has which user; a default server's without it
 */
export async function giveToSandbox(directory: string, claims?: UidClaims): Promise<void> {
  await mkdir(directory, { recursive: true });
  if (process.getuid?.() !== 0) return;
  const uid = await (claims ?? (usualClaims ??= new UidClaims(usualUids()))).of(dirname(directory));
  if (ownerOf(directory) === uid) return;
  await runProgram("chown", ["-R", "-h", `${uid}:${uid}`, directory]);
}

/** Who owns a file, or a link itself; null if it is gone. */
export function ownerOf(path: string): number | null {
  return lstatSync(path, { throwIfNoEntry: false })?.uid ?? null;
}

/**
 * The user that a sandbox's processes run as under root: the owner of its home, which only the server can change.
 * @throws Error for a home that was not given to a session: root inside would be root of the kernel
 */
export function userOfHome(home: string): number {
  const uid = ownerOf(home);
  if (uid === null || uid === 0) throw new Error(`${home} belongs to no session: it must be made writable first`);
  return uid;
}
