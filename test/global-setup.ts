import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { openDatabase } from "../src/database/database.ts";
import { startEmbeddedServer } from "../src/database/embedded/embedded.ts";
import { createLogger } from "../src/observability.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Connection string of the server whose database `template` is migrated. */
    databaseServer: string;
  }
}

/**
 * One real PostgreSQL for the whole run, with a migrated database that each test file copies. The embedded one, or that of
 * `OFFSTAGE_TEST_POSTGRES`, a superuser's address that ends in `/postgres?…`: nothing else may be on that one.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Most of what a server's start costs is to take the types out of its sources: done once for all of them.
  process.env["NODE_COMPILE_CACHE"] = join(import.meta.dirname, "../node_modules/.cache/node");
  const folder = await mkdtemp(join(tmpdir(), "offstage-postgres-"));
  // The unprivileged user that PostgreSQL runs as under root must be able to pass.
  await chmod(folder, 0o755);
  const logger = createLogger("warn");
  const named = process.env["OFFSTAGE_TEST_POSTGRES"];
  const server =
    named === undefined
      ? await startEmbeddedServer({ directory: join(folder, "postgres"), logger })
      : { url: named, stop: () => Promise.resolve() };
  const administration = await openDatabase({ url: server.url, directory: folder, logger });
  if (named === undefined) {
    // Nothing of it outlives the run, so nothing of it need outlive a loss of power: no commit waits for the disk.
    for (const setting of ["fsync", "synchronous_commit", "full_page_writes"])
      await administration.pool.query(`alter system set ${setting} = off`);
    await administration.pool.query("select pg_reload_conf()");
  }
  await administration.pool.query("drop database if exists template with (force)");
  await administration.pool.query("create database template");
  await administration.close();
  const template = await openDatabase({
    url: server.url.replace("/postgres?", "/template?"),
    directory: folder,
    logger,
  });
  await template.close();
  project.provide("databaseServer", server.url);
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
