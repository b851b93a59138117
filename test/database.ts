import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";
import { openDatabase, type Database } from "../src/database/database.ts";
import { createLogger } from "../src/observability.ts";

export interface TestDatabase {
  readonly database: Database;
  readonly url: string;
  close(): Promise<void>;
}

/** A database of its own, copied from the migrated one in a few milliseconds. */
export function createTestDatabase(): Promise<TestDatabase> {
  return create({ template: "template", migrated: true });
}

/** A database in which nothing is yet, opened as a restore opens it. */
export function createEmptyDatabase(): Promise<TestDatabase> {
  return create({ template: "template1", migrated: false });
}

async function create({ template, migrated }: { template: string; migrated: boolean }): Promise<TestDatabase> {
  const server = inject("databaseServer");
  const name = `test_${randomBytes(6).toString("hex")}`;
  // Copied as files: a copy by way of the log, which is the default, takes about twice to four times the processor time.
  await administer(server, `create database ${name} template ${template} strategy file_copy`);
  const url = server.replace("/postgres?", `/${name}?`);
  const database = await openDatabase({ url, directory: "", logger: createLogger("error"), migrated });
  return {
    database,
    url,
    async close() {
      await database.close();
      await administer(server, `drop database ${name} with (force)`);
    },
  };
}

async function administer(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
