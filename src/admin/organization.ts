import { Readable } from "node:stream";
import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import { writeNewFile } from "../database/dump/backup-file.ts";
import { NotFoundError, UnavailableError } from "../domain/errors/errors.ts";
import { createObjectStore } from "../objects/object-store.ts";
import { recordingsDirectory } from "../server/open-stores.ts";
import { sweepObjects } from "../store/checkpoints/objects.ts";
import { beginErasure, finishErasure, unfinishedErasures } from "../store/organization-data/erase.ts";
import { exportOrganization } from "../store/organization-data/export.ts";
import { findOrganization } from "../store/people/organizations.ts";
import { attachDatabase, auditCommand, requireDatabase } from "./attach.ts";

/**
 * Writes all data of an organization to a tar archive. A server may be running.
 * @throws NotFoundError if there is no organization of this name
 * @throws ConflictError if the file exists already
 */
export function exportToFile(
  config: Config,
  name: string,
  file: string,
  signal: AbortSignal,
): Promise<{ readonly bytes: number }> {
  return withDatabase(config, async (database) => {
    const organizationId = await findOrganization(database, name);
    if (organizationId === null) throw new NotFoundError(`there is no organization ${name}`);
    const source = { database, organizationId, recordingsDirectory: recordingsDirectory(config) };
    const written = await writeNewFile(file, [Readable.from(exportOrganization(source))], signal);
    await auditCommand(database, organizationId, "organization export", organizationId);
    return written;
  });
}

/**
 * Erases an organization, or continues the erasures that were begun before if there is none of this name. A server may be running:
 * its workers do the same, and remove what they have on disk. Workers that don't run do so when they start.
 * @returns whether there was an organization of this name
 * @throws NotFoundError if there is no organization of this name, and nothing to continue
 * @throws UnavailableError if it was interrupted: a server, or the same command, continues
 */
export function eraseByName(config: Config, name: string, signal: AbortSignal): Promise<boolean> {
  return withDatabase(config, async (database) => {
    const organizationId = await findOrganization(database, name);
    if (organizationId !== null) await beginErasure(database, organizationId, name);
    const unfinished = await unfinishedErasures(database);
    if (organizationId === null && unfinished.length === 0) throw new NotFoundError(`there is no organization ${name}`);
    for (const id of unfinished) {
      if (!(await finishErasure(database, id, signal)))
        throw new UnavailableError(
          "interrupted: a running server continues, and so does this command if you repeat it",
        );
    }
    if (config.objects !== null) await sweepObjects(database, createObjectStore(config.objects), signal);
    return organizationId !== null;
  });
}

async function withDatabase<T>(config: Config, work: (database: Database) => Promise<T>): Promise<T> {
  await requireDatabase(config);
  const database = await attachDatabase(config);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}
