import { execFile } from "node:child_process";
import { lstat, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { childEnvironment } from "../../domain/child-environment.ts";
import { InvalidInputError } from "../../domain/errors.ts";

/** uid and gid for PostgreSQL's processes; empty if the server is not root, and they have its own. */
export type Identity = { readonly uid: number; readonly gid: number } | { readonly uid?: never; readonly gid?: never };

/**
 * PostgreSQL refuses to run as root, and `initdb` wants its user in the password file. Never `nobody`: other services run
 * under that name too, and could read and stop each other's processes and files.
 */
const ownUser = "offstage";
const databaseUsers = [ownUser, "postgres"];
const nobody = "nobody";
/** Of shadow-utils and of BusyBox. */
const programsThatAddUsers = [
  ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", ownUser],
  ["adduser", "-S", "-D", "-H", "-s", "/sbin/nologin", ownUser],
] as const;

type User = { readonly name: string; readonly uid: number; readonly gid: number };

/**
 * Whom an embedded PostgreSQL runs as, if the server is root: the owner of its folder, else the user `offstage` or
 * `postgres`, else the user `offstage`, which is added to the system.
 * @param directory of the database, which may not be there yet
 * @throws InvalidInputError if there is no such user, and none can be added
 */
export async function databaseIdentity(directory: string): Promise<Identity> {
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
 * Gives the database's folders to its user if they are another's: an earlier version ran it as `nobody` if the system had no
 * better user. To be called while no server runs on them.
 * @param place.socketDirectory holds a lock file only if its server could not remove it
 */
export async function takeOver(place: {
  readonly directory: string;
  readonly socketDirectory: string;
  readonly identity: Identity;
}): Promise<void> {
  const { uid, gid } = place.identity;
  const owner = await ownerOf(place.directory);
  if (uid === undefined || owner === null || owner.uid === uid) return;
  const parameters = ["-R", "-h", `${uid}:${gid}`, place.directory, place.socketDirectory];
  await promisify(execFile)("chown", parameters, { env: childEnvironment(process.env) });
}

/** Whether a folder is `nobody`'s, as an earlier version left it. */
export async function isNobodys(folder: string): Promise<boolean> {
  const [owner, users] = await Promise.all([ownerOf(folder), readUsers()]);
  return users.some(({ name, uid }) => name === nobody && uid === owner?.uid);
}

const identityOf = ({ uid, gid }: User): Identity => ({ uid, gid });

async function ownerOf(directory: string): Promise<{ readonly uid: number } | null> {
  return lstat(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}

function userOf(users: readonly User[]): User | undefined {
  return databaseUsers.map((wanted) => users.find(({ name }) => name === wanted)).find((user) => user !== undefined);
}

async function readUsers(): Promise<User[]> {
  const lines = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
  return lines.flatMap(([name = "", , uid, gid]) =>
    uid === undefined || gid === undefined ? [] : [{ name, uid: Number(uid), gid: Number(gid) }],
  );
}

/** Another process may add it at the same time: what counts is that it is there afterwards. */
async function addUser(): Promise<User | undefined> {
  for (const [program, ...parameters] of programsThatAddUsers) {
    await promisify(execFile)(program, parameters, { env: childEnvironment(process.env) }).catch(() => undefined);
    const added = userOf(await readUsers());
    if (added !== undefined) return added;
  }
  return undefined;
}
