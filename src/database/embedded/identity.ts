import { execFile } from "node:child_process";
import { lstat, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { childEnvironment } from "../../domain/environments/child-environment.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";

/**
 * User and group id of PostgreSQL's processes; empty if the server does not run as root, because they then run as the
 * same user.
 */
export type ProcessIdentity =
  | { readonly uid: number; readonly gid: number }
  | { readonly uid?: never; readonly gid?: never };

/**
 * PostgreSQL refuses to run as root, and `initdb` needs its user in /etc/passwd. It is never `nobody`: other services
 * use that user too, and could access each other's processes and files.
 */
const ownUser = "offstage";
const databaseUsers = [ownUser, "postgres"];
const nobody = "nobody";
/** Commands of shadow-utils and of BusyBox. */
const programsThatAddUsers = [
  ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", ownUser],
  ["adduser", "-S", "-D", "-H", "-s", "/sbin/nologin", ownUser],
] as const;

type User = { readonly name: string; readonly uid: number; readonly gid: number };

/**
 * The user that the embedded PostgreSQL runs as if the server is root: the owner of its folder, else an existing user
 * `offstage` or `postgres`, else a new system user `offstage`.
 * @param directory of the database; it may not exist yet
 * @throws InvalidInputError if there is no such user and none can be added
 */
export async function databaseIdentity(directory: string): Promise<ProcessIdentity> {
  const users = await readUsers();
  const owner = await ownerOf(directory);
  const owning = users.find(({ uid, name }) => uid === owner?.uid && uid !== 0 && name !== nobody);
  if (owning !== undefined) return identityOf(owning);
  const known = userOf(users) ?? (await addUser());
  if (known !== undefined) return identityOf(known);
  throw new InvalidInputError(
    `the embedded database can't run as root: create a user for it with \`useradd --system ${ownUser}\`, or run Offstage as another user`,
  );
}

/**
 * Changes the owner of the database's folders to its user. This is needed because an earlier version ran PostgreSQL
 * as `nobody` if the system had no better user. No server may run on the folders.
 * @param place.socketDirectory contains a lock file only if its server could not remove it
 */
export async function takeOver(paths: {
  readonly directory: string;
  readonly socketDirectory: string;
  readonly identity: ProcessIdentity;
}): Promise<void> {
  const { uid, gid } = paths.identity;
  const owner = await ownerOf(paths.directory);
  if (uid === undefined || owner === null || owner.uid === uid) return;
  const parameters = ["-R", "-h", `${uid}:${gid}`, paths.directory, paths.socketDirectory];
  await promisify(execFile)("chown", parameters, { env: childEnvironment(process.env) });
}

/** Whether a folder belongs to `nobody`, as an earlier version left it. */
export async function isUnowned(folder: string): Promise<boolean> {
  const [owner, users] = await Promise.all([ownerOf(folder), readUsers()]);
  return users.some(({ name, uid }) => name === nobody && uid === owner?.uid);
}

const identityOf = ({ uid, gid }: User): ProcessIdentity => ({ uid, gid });

async function ownerOf(directory: string): Promise<{ readonly uid: number } | null> {
  return lstat(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}

function userOf(users: readonly User[]): User | undefined {
  return databaseUsers
    .map((userName) => users.find(({ name }) => name === userName))
    .find((user) => user !== undefined);
}

async function readUsers(): Promise<User[]> {
  const lines = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
  return lines.flatMap(([name = "", , uid, gid]) =>
    uid === undefined || gid === undefined ? [] : [{ name, uid: Number(uid), gid: Number(gid) }],
  );
}

/** Another process may add the user at the same time, so success is judged by whether the user exists afterwards. */
async function addUser(): Promise<User | undefined> {
  for (const [program, ...parameters] of programsThatAddUsers) {
    await promisify(execFile)(program, parameters, { env: childEnvironment(process.env) }).catch(() => undefined);
    const added = userOf(await readUsers());
    if (added !== undefined) return added;
  }
  return undefined;
}
