import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chown, mkdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { childEnvironment } from "../../domain/environments/child-environment.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { databaseIdentity, isUnowned, type ProcessIdentity } from "./identity.ts";

/** Folders and address of an embedded PostgreSQL. */
export interface EmbeddedPaths {
  readonly directory: string;
  readonly socketDirectory: string;
  readonly url: string;
  /** User and group id of PostgreSQL's processes; empty if we are not root. */
  readonly identity: ProcessIdentity;
}

/**
 * Creates the folders that the server needs in addition to its own.
 * @throws InvalidInputError if the directory can't be used
 */
export async function prepareEmbeddedPaths(directory: string): Promise<EmbeddedPaths> {
  await mkdir(dirname(directory), { recursive: true });
  const identity = process.getuid?.() === 0 ? await databaseIdentity(directory) : {};
  const env = childEnvironment(process.env);
  if (identity.uid !== undefined && spawnSync("test", ["-x", dirname(directory)], { ...identity, env }).status !== 0) {
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
  const isOwn = owner === process.getuid?.() || owner === identity.uid;
  if (!isOwn && (identity.uid === undefined || !(await isUnowned(socketDirectory)))) {
    throw new InvalidInputError(
      `${socketDirectory} belongs to another user: remove it, or set TMPDIR to a folder of your own`,
    );
  }
  if (identity.uid !== undefined) await chown(socketDirectory, identity.uid, identity.gid);
  const url = `postgres://offstage@/postgres?host=${encodeURIComponent(socketDirectory)}`;
  return { directory, socketDirectory, url, identity };
}
