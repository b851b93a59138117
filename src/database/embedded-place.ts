import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chown, mkdir, readFile, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { InvalidInputError } from "../domain/errors.ts";

/**
 * PostgreSQL refuses to run as root, and `initdb` wants its user in the password file: under root the first of these that is
 * there.
 */
const unprivilegedUsers = ["offstage", "postgres", "nobody"];

/** Where an embedded PostgreSQL lives. */
export interface Place {
  readonly directory: string;
  readonly socketDirectory: string;
  readonly url: string;
  /** uid and gid for PostgreSQL's processes; empty where we are not root. */
  readonly identity: Identity;
}

type Identity = { readonly uid: number; readonly gid: number } | { readonly uid?: never; readonly gid?: never };

/**
 * Makes what the server needs beside its own folder.
 * @throws InvalidInputError where the directory can't be used
 */
export async function preparePlace(directory: string): Promise<Place> {
  await mkdir(dirname(directory), { recursive: true });
  const identity = process.getuid?.() === 0 ? await unprivilegedIdentity() : {};
  if (identity.uid !== undefined && spawnSync("test", ["-x", dirname(directory)], identity).status !== 0) {
    throw new InvalidInputError(
      `${dirname(directory)} can't be reached by the unprivileged user that the database runs as: choose another folder, for example --data /var/lib/offstage`,
    );
  }
  const socketDirectory = join(
    tmpdir(),
    `offstage-${createHash("sha256").update(directory).digest("hex").slice(0, 16)}`,
  );
  await mkdir(socketDirectory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const owner = (await stat(socketDirectory)).uid;
  if (owner !== process.getuid?.() && owner !== identity.uid) {
    throw new InvalidInputError(
      `${socketDirectory} belongs to another user: remove it, or set TMPDIR to a folder of your own`,
    );
  }
  if (identity.uid !== undefined) await chown(socketDirectory, identity.uid, identity.gid);
  const url = `postgres://offstage@/postgres?host=${encodeURIComponent(socketDirectory)}`;
  return { directory, socketDirectory, url, identity };
}

/** @throws InvalidInputError where the system has none of the users */
async function unprivilegedIdentity(): Promise<Identity> {
  const entries = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
  for (const name of unprivilegedUsers) {
    const [, , uid, gid] = entries.find(([user]) => user === name) ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new InvalidInputError(
    "the embedded database can't run as root: create a user for it with `useradd --system offstage`, or run Offstage as another user",
  );
}
