import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../src/database/database.ts";
import { createLogger } from "../../src/observability.ts";
import { createTestDatabase } from "../database.ts";
import { freePorts } from "../fleet.ts";
import { waitFor } from "../wait-for.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A PgBouncer before a database of its own. @returns the database's address through it */
async function pooler(mode: "session" | "transaction", more: readonly string[]): Promise<string> {
  const { url, close } = await createTestDatabase();
  closing.push(close);
  const { pathname, searchParams } = new URL(url.replace("@/", "@host/"));
  const sockets = searchParams.get("host") ?? "";
  const { uid, gid } = statSync(sockets);
  const folder = mkdtempSync(join(tmpdir(), "offstage-pgbouncer-"));
  const [port = 0] = await freePorts(1);
  const name = pathname.slice(1);
  const settings = [
    "[databases]",
    `${name} = host=${sockets} user=offstage`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    `pool_mode = ${mode}`,
    ...more,
  ];
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(file, `${settings.join("\n")}\n`);
  for (const path of [folder, file]) chownSync(path, uid, gid);
  const child: ChildProcess = spawn("pgbouncer", [file], { uid, gid, stdio: "ignore" });
  closing.push(async () => {
    const ended = once(child, "exit");
    if (child.exitCode === null && child.kill("SIGKILL")) await ended;
    rmSync(folder, { recursive: true });
  });
  const address = `postgres://offstage@127.0.0.1:${port}/${name}`;
  await waitFor(async () => {
    const client = new pg.Client({ connectionString: address });
    return client.connect().then(
      () => client.end().then(() => true),
      () => false,
    );
  }, "PgBouncer answers");
  return address;
}

const open = (url: string) => openDatabase({ url, directory: "", logger: createLogger("silent") });
const ignored = ["ignore_startup_parameters = idle_in_transaction_session_timeout,extra_float_digits"];
const isThere = spawnSync("pgbouncer", ["--version"]).error === undefined;

describe.skipIf(!isThere)(`behind PgBouncer${isThere ? "" : " (not tried: it is not installed)"}`, () => {
  it.each([
    ["transaction", []],
    ["transaction", ignored],
    ["transaction", [...ignored, "server_round_robin = 1", "min_pool_size = 3"]],
    ["session", []],
  ] as const)("a start in %s mode with %j is refused, with the setting to change", async (mode, more) => {
    await expect(open(await pooler(mode, more))).rejects.toThrow(
      /^DATABASE_URL leads to a connection pooler.* set pool_mode = session .*ignore_startup_parameters/u,
    );
  });

  it("a start in session mode that ignores our setting works", async () => {
    const database = await open(await pooler("session", ignored));
    const heard: string[] = [];
    const subscription = await database.listen("offstage_work", (what) => void heard.push(what));
    database.notify("offstage_work", "session");
    await waitFor(() => heard.includes("session"), "it hears");
    await subscription.close();
    await database.close();
  });
});

it("a start without a pooler is not refused", async () => {
  const { url, close } = await createTestDatabase();
  closing.push(close);
  await (await open(url)).close();
});
