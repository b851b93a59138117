import type { Command } from "commander";
import type { BackupReport, CommandContext } from "../terminal/commands.ts";
import { serverFlags, withDataFlag } from "./server-flags.ts";

/** Adds the commands `backup`, `restore` and `move`. */
export function addBackupCommands(program: Command, { commands, terminal }: CommandContext): void {
  const backup = program
    .command("backup")
    .argument("<file>", "file to write; it must not exist yet")
    .description("write the whole database to one file; the server may run");
  withDataFlag(backup).action(async (file: string, flags) => {
    const report = await commands.backUp(serverFlags(flags), file, terminal.signal);
    terminal.write(`Backed up ${sizeOf(report)} to ${file} (${kilobytes(report.bytes)}).\n${keyOfBackup(report)}`);
  });

  const restore = program
    .command("restore")
    .argument("<file>", "file that backup wrote")
    .description("read a backup into an empty database, all of it or nothing");
  withDataFlag(restore).action(async (file: string, flags) => {
    const report = await commands.restore(serverFlags(flags), file, terminal.signal);
    terminal.write(
      `Restored ${sizeOf(report)}, as it was at ${report.takenAt}.\n${keyOfRestore(report)}` +
        "Before you start this server, stop the one that was backed up: otherwise both run the same sessions.\n",
    );
  });

  const move = program
    .command("move")
    .argument("<url>", "postgres://… of an empty database; put the password into PGPASSWORD, not here")
    .description("copy the embedded database of a stopped server into your own PostgreSQL, all of it or nothing");
  withDataFlag(move).action(async (url: string, flags) => {
    const report = await commands.move(serverFlags(flags), url, terminal.signal);
    const { inFile, source } = report.masterKey;
    terminal.write(
      `Moved ${sizeOf(report)}. Now set:\n` +
        "  DATABASE_URL to this address\n" +
        (inFile
          ? `  OFFSTAGE_MASTER_KEY to the lines of ${source}, joined by commas; a single server may keep using the file\n`
          : "  OFFSTAGE_MASTER_KEY as it is set now\n") +
        "The embedded database is unchanged: a server started without DATABASE_URL keeps using it.\n",
    );
  });
}

function sizeOf({ tables, rows, migration }: BackupReport): string {
  return `${rows} ${rows === 1 ? "row" : "rows"} of ${tables} tables at migration ${migration}`;
}

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_000)} kB`;
}

function keyOfBackup({ masterKey: { source, inFile, isThere } }: BackupReport): string {
  if (!inFile) return `The master key is not in it: keep the value of ${source} too, apart from the backup.\n`;
  return isThere
    ? `The master key is not in it: keep ${source} too, apart from the backup.\n`
    : `The master key is not in it, and ${source} is not there: no secret was stored from this data folder.\n`;
}

function keyOfRestore({ masterKey: { source, inFile, isThere } }: BackupReport): string {
  if (!inFile) return `Its secrets need the master key that sealed them: check that ${source} has it.\n`;
  return isThere
    ? `Its secrets need the master key that sealed them: check that ${source} has it.\n`
    : `A backup has no master key: put the one that sealed its secrets at ${source}, mode 0600, or set OFFSTAGE_MASTER_KEY.\n`;
}
