import { chmod, lstat, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "../config/config.ts";

/** What a server keeps in its data folder. The database's own folders belong to the user that it runs as, or are closed by it. */
const own = new Set([
  "address",
  "disks",
  "environments",
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
 * Makes the data folder, and closes it and what is in it to every other user of the machine; that of an older version too, which
 * let them read. What sandboxes read or write of it is bound into them by root, past folders that their users may not enter: so
 * nothing below those needs other modes. Under root the embedded database's user has to pass, and may see no names.
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
  // Whoever makes one of these later makes folders in it as it needs them: so they are there, and closed, before.
  for (const name of ["sessions", "mirrors"]) await mkdir(join(data, name), { mode: 0o700, recursive: true });
}

/** The file in which a server leaves its address, for the commands beside it. */
export function addressFile({ data }: Pick<Config, "data">): string {
  return join(data, "address");
}
