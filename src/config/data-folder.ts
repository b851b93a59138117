import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** The folder for a server's data if none was named. */
export interface DataFolder {
  readonly path: string;
  /** Why it is not `.offstage` in the working directory, as a sentence; null if it is. */
  readonly reason: string | null;
}

/** Of root's own, passable for every user, as the file hierarchy standard has it for what a service keeps. */
const folderOfRoot = "/var/lib/offstage";

/**
 * Chooses the folder for a server's data: `.offstage` in the working directory. As root, the embedded database runs as
 * its own user, which can't enter a folder below root's home, for example: then it is `/var/lib/offstage`, unless there
 * is a database in the working directory already. It stays there once the database was moved elsewhere, because the
 * master key is beside it.
 * @param situation.isRoot whether the server runs as root
 * @param situation.isEmbedded whether the database is the embedded one
 * @param ofRoot the folder for root
 */
export function chooseDataFolder(
  workingDirectory: string,
  { isRoot, isEmbedded }: { readonly isRoot: boolean; readonly isEmbedded: boolean },
  ofRoot = folderOfRoot,
): DataFolder {
  const path = join(workingDirectory, ".offstage");
  if (!isRoot || existsSync(join(path, "postgres"))) return { path, reason: null };
  if (!isEmbedded && (existsSync(path) || !existsSync(join(ofRoot, "postgres")))) return { path, reason: null };
  const closed = closedFolder(workingDirectory);
  if (closed === null) return { path, reason: null };
  const reason = `The data folder is ${ofRoot}, because the embedded database's user can't enter ${closed}; --data or OFFSTAGE_DATA names another folder.`;
  return { path: ofRoot, reason };
}

/** The first folder on the way to this one, itself included, that only its owner and group may enter; null if there is none. */
function closedFolder(folder: string): string | null {
  const real = realpathSync(folder);
  const parent = dirname(real);
  const above = parent === real ? null : closedFolder(parent);
  return above ?? ((statSync(real).mode & 0o001) === 0 ? real : null);
}
