import { existsSync } from "node:fs";
import { join } from "node:path";
import type { BackupReport } from "../cli/terminal/commands.ts";
import type { Config } from "../config/config.ts";
import { migrationsDirectory, openDatabase, type Database } from "../database/database.ts";
import { checkBackup, interrupted, readBackup, writeBackup } from "../database/dump/backup-file.ts";
import { dumpDatabase, type DumpHeader, type DumpPart, type DumpTotals } from "../database/dump/dump.ts";
import { loadDatabase } from "../database/dump/load.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { createLogger } from "../observability.ts";
import { openVault } from "../server/open-stores.ts";
import { findDefaultOrganization } from "../store/people/organizations.ts";
import { auditCommand, requireDatabase } from "./attach.ts";

/**
 * Writes a consistent snapshot of the whole database to a file. A server may be running.
 * @param version of this Offstage
 * @throws NotFoundError if there is no database
 * @throws ConflictError if the file exists already
 */
export async function backUp(
  config: Config,
  file: string,
  { version, signal }: { readonly version: string; readonly signal: AbortSignal },
): Promise<BackupReport & { readonly bytes: number }> {
  await requireDatabase(config);
  const database = await open(config, config.databaseUrl, true);
  try {
    const seen = watch(dumpDatabase(database.pool, { version }), signal);
    const { bytes } = await writeBackup(file, seen.parts, signal);
    // A database that can't be written (a standby, or a schema of an older Offstage) can still be backed up.
    await note(database, "backup", null).catch(() => undefined);
    return { ...reportOf(config, seen.result()), bytes };
  } finally {
    await database.close();
  }
}

/**
 * Reads a backup into the configured database, which must be empty. Nothing is changed if it fails.
 * @throws InvalidInputError if the file is damaged, is not a backup, or was written by a newer Offstage
 * @throws ConflictError if the database is not empty, or a server uses it
 */
export async function restore(config: Config, file: string, signal: AbortSignal): Promise<BackupReport> {
  await checkBackup(file, signal);
  const database = await open(config, config.databaseUrl, false);
  try {
    const loaded = await loadDatabase(database.pool, readBackup(file, signal), migrationsDirectory);
    await note(database, "restore", loaded.takenAt);
    return reportOf(config, loaded);
  } finally {
    await database.close();
  }
}

/**
 * Copies the embedded database into an empty PostgreSQL database: a backup and a restore without a file.
 * @throws InvalidInputError if the target is not a PostgreSQL address, or DATABASE_URL names another database
 * @throws ConflictError if a server runs on the data folder, whose new sessions would be lost, or the target is not
 * empty
 */
export async function move(
  config: Config,
  url: string,
  { version, signal }: { readonly version: string; readonly signal: AbortSignal },
): Promise<BackupReport> {
  if (!/^postgres(?:ql)?:\/\//u.test(url)) {
    throw new InvalidInputError("the target must start with postgres:// or postgresql://");
  }
  if (config.databaseUrl !== null && config.databaseUrl !== url) {
    throw new InvalidInputError("DATABASE_URL: must not be set to another database: move copies the embedded one");
  }
  await requireDatabase({ ...config, databaseUrl: null });
  // Opened exclusively, as a server does, so that no server starts meanwhile and accepts sessions.
  const source = await open(config, null, false);
  try {
    const target = await open(config, url, false);
    try {
      const { parts } = watch(dumpDatabase(source.pool, { version }), signal);
      const loaded = await loadDatabase(target.pool, parts, migrationsDirectory);
      await note(target, "move", null);
      return reportOf(config, loaded);
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

function open({ databaseDirectory: directory }: Config, url: string | null, attach: boolean): Promise<Database> {
  return openDatabase({ url, directory, logger: createLogger("error"), attach, migrated: false });
}

/** Passes a dump's parts on until `signal` aborts, and keeps its header and totals. */
function watch(
  source: AsyncGenerator<DumpPart, void, void>,
  signal: AbortSignal,
): { readonly parts: AsyncGenerator<DumpPart, void, void>; result(): DumpHeader & DumpTotals } {
  let header: DumpHeader | null = null;
  let totals: DumpTotals | null = null;
  async function* parts(): AsyncGenerator<DumpPart, void, void> {
    for await (const part of source) {
      if (signal.aborted) throw interrupted();
      if (part.kind === "header") header = part;
      if (part.kind === "end") totals = part;
      yield part;
    }
  }
  return {
    parts: parts(),
    result() {
      if (header === null || totals === null) throw new Error("the dump has no header or no end");
      return { ...header, ...totals };
    },
  };
}

async function note(database: Database, action: string, target: string | null): Promise<void> {
  await auditCommand(database, await findDefaultOrganization(database), action, target);
}

function reportOf(config: Config, { tables, rows, takenAt, migrations }: DumpHeader & DumpTotals): BackupReport {
  const file = join(config.data, "master.key");
  return {
    tables,
    rows,
    takenAt,
    migration: migrations.at(-1)?.number ?? 0,
    masterKey: {
      source: openVault(config).keyring.source,
      inFile: config.masterKey === null,
      isThere: existsSync(file),
    },
  };
}
