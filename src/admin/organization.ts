import { Readable } from "node:stream";
import type { MadeOrganization } from "../cli/terminal/commands.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../database/database.ts";
import { writeNewFile } from "../database/dump/backup-file.ts";
import { InvalidInputError, NotFoundError, UnavailableError } from "../domain/errors/errors.ts";
import { problemOf } from "../domain/errors/problem.ts";
import {
  createOrganizationSchema,
  type CreateOrganization,
  type ListedOrganization,
} from "../domain/people/organization.ts";
import { createObjectStore } from "../objects/object-store.ts";
import { openVault, recordingsDirectory } from "../server/open-stores.ts";
import { sweepObjects } from "../store/checkpoints/objects.ts";
import { beginErasure, finishErasure, unfinishedErasures } from "../store/organization-data/erase.ts";
import { exportOrganization } from "../store/organization-data/export.ts";
import { createOrganization, listOrganizations } from "../store/people/all-organizations.ts";
import { findOrganization } from "../store/people/organizations.ts";
import { attachDatabase, auditCommand, lastAddress, requireDatabase } from "./attach.ts";

/**
 * Creates an organization. A server may be running; if it has a mail server, its workers mail the invitation.
 * @returns what lets its first admin in
 * @throws InvalidInputError if the body is none of the API
 * @throws ConflictError if there is an organization of the name
 */
export function createByName(config: Config, body: CreateOrganization): Promise<MadeOrganization> {
  return withDatabase(config, async (database) => {
    const read = createOrganizationSchema.safeParse(body);
    if (!read.success)
      throw new InvalidInputError(
        read.error.issues.map((issue) => `${issue.path.join(".")}: ${problemOf(issue)}`).join("; "),
      );
    const mailing = config.mail === null ? null : ({ vault: openVault(config), language: "en" } as const);
    const { organization, invitation, adminKey } = await createOrganization(database, read.data, mailing);
    await auditCommand(database, organization.id, "organization create", organization.id);
    const { name } = organization;
    if (invitation === null) return { name, invitation, adminKey };
    const { token, expiresAt, mailedTo } = invitation;
    const url = `${await lastAddress(config)}/sign-in#${token}`;
    return { name, invitation: { url, expiresAt, mailedTo }, adminKey };
  });
}

/** All organizations, newest first. A server may be running. */
export function listAll(config: Config): Promise<readonly ListedOrganization[]> {
  return withDatabase(config, async (database) => {
    const all: ListedOrganization[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await listOrganizations(database, { limit: 100, ...(typeof cursor === "string" && { cursor }) });
      all.push(...page.items);
      cursor = page.nextCursor;
    } while (cursor !== null);
    return all;
  });
}

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
