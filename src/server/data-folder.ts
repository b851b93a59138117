import { chmod, lstat, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config/config.ts";

/**
 * Names that a server uses in its data folder. The database's own folders are not included: they belong to its user,
 * or PostgreSQL itself sets their mode.
 */
const own = new Set([
  "address",
  "disks",
  "environments",
  "erased",
  "incoming",
  "master.key",
  "mirrors",
  "postgres.log",
  "postgres.log.1",
  "recordings",
  "run",
  "sessions",
  "worker-id",
]);

/**
 * Creates the data folder and closes it and its content to other users of the machine. This also closes the folder of
 * an older version, which was readable. Sandboxes get what they need by mounts that root makes, past folders that
 * their users may not enter, so nothing below these folders needs other modes. Under root the embedded database's
 * user must be able to pass through the folder, but can't list it.
 */
export async function closeDataFolder({ data, databaseUrl }: Pick<Config, "data" | "databaseUrl">): Promise<void> {
  const isPassed = databaseUrl === null && process.getuid?.() === 0;
  await mkdir(data, { recursive: true });
  await chmod(data, isPassed ? 0o711 : 0o700);
  for (const name of await readdir(data)) {
    if (!own.has(name)) continue;
    const path = join(data, name);
    const found = await lstat(path);
    if (found.isDirectory()) await chmod(path, 0o700);
    else if (found.isFile()) await chmod(path, 0o600);
  }
  // Created here with the right mode, because other code later creates folders inside them and would create them with
  // the default mode.
  for (const name of ["sessions", "mirrors"]) await mkdir(join(data, name), { mode: 0o700, recursive: true });
}

/** The file in which a server leaves its address, for commands on the same machine. */
export function addressFile({ data }: Pick<Config, "data">): string {
  return join(data, "address");
}
