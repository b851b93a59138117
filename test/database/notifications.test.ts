import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { openDatabase, type Database } from "../../src/database/database.ts";
import { createLogger } from "../../src/observability.ts";
import { createTestDatabase } from "../database.ts";
import { waitFor } from "../wait-for.ts";

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Two processes, as far as the database can tell. */
async function twoNodes(): Promise<[Database, Database]> {
  const first = await createTestDatabase();
  closing.push(first.close);
  const second = await openDatabase({ url: first.url, directory: "", logger: createLogger("error") });
  closing.push(second.close);
  return [first.database, second];
}

test("a word is heard once by every process, by the one that says it too", async () => {
  const [speaker, other] = await twoNodes();
  const heardBySpeaker: string[] = [];
  const heardByOther: string[] = [];
  await speaker.listen("channel", (word) => heardBySpeaker.push(word));
  await other.listen("channel", (word) => heardByOther.push(word));
  speaker.notify("channel", "mine");
  await waitFor(() => heardByOther.includes("mine"), "the other hears it");
  // What the first said comes back over its connection before this, if it comes back at all.
  other.notify("channel", "yours");
  await waitFor(() => heardBySpeaker.includes("yours"), "the speaker hears the other");
  expect(heardBySpeaker).toEqual(["mine", "yours"]);
  expect(heardByOther).toEqual(["mine", "yours"]);
});

test("a process that listens to nothing itself is heard", async () => {
  const [speaker, other] = await twoNodes();
  const heard: string[] = [];
  await other.listen("channel", (word) => heard.push(word));
  speaker.notify("channel", "mine");
  await waitFor(() => heard.length > 0, "the other hears it");
  expect(heard).toEqual(["mine"]);
});

test("a listener that lost its connection is asked to read the tables, and gets later notifications", async () => {
  const [speaker, other] = await twoNodes();
  const heard: string[] = [];
  await other.listen("channel", (word) => heard.push(word));
  const { rowCount } = await speaker.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like 'listen %'",
  );
  expect(rowCount).toBe(1);
  await waitFor(() => heard.includes(""), "it is asked to read");
  speaker.notify("channel", "after");
  await waitFor(() => heard.includes("after"), "it hears again");
});

/** A database over TCP. @param heard is called with what a node sends over a connection before it goes on */
async function overTcp(heard: (text: string, socket: Socket) => void = () => undefined) {
  const own = await createTestDatabase();
  const { host, searchParams, pathname } = new URL(
    own.url.replace("postgres://offstage@/", "postgres://offstage@host/"),
  );
  const socketPath = `${searchParams.get("host") ?? host}/.s.PGSQL.5432`;
  /** Connections that the relay accepted and never answers. */
  const ignored: Socket[] = [];
  const relayed = { ignores: false };
  const relay = createServer((node) => {
    if (relayed.ignores) {
      ignored.push(node.on("error", () => undefined).resume());
      return;
    }
    const server = connect(socketPath);
    node.on("data", (chunk: Buffer) => heard(chunk.toString("latin1"), node));
    for (const [from, to] of [
      [node, server],
      [server, node],
    ] as const) {
      from.pipe(to);
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  const { port } = relay.address() as AddressInfo;
  const url = `postgres://offstage@127.0.0.1:${port}${pathname}`;
  const database = await openDatabase({ url, directory: "", logger: createLogger("error") });
  closing.push(own.close, () => new Promise((resolve) => relay.close(() => resolve())), database.close);
  return { database, port, relayed, ignored };
}

test.each([
  ["is asked which it is", "pg_backend_pid() as own"],
  ["begins to listen", "listen "],
])("a connection that is lost while it %s is replaced by one, and no word is heard twice", async (_, said) => {
  const listening: Socket[] = [];
  const { database } = await overTcp((text, socket) => {
    if (!text.includes(said)) return;
    listening.push(socket);
    if (listening.length === 1) socket.destroy();
  });
  const heard: string[] = [];
  await database.listen("channel", (word) => heard.push(word));
  await database.pool.query("select pg_sleep(1)");
  expect(listening.filter((socket) => !socket.destroyed)).toHaveLength(1);
  await database.pool.query("select pg_notify('channel', 'once')");
  await waitFor(() => heard.includes("once"), "it hears");
  expect(heard.filter((word) => word === "once")).toHaveLength(1);
});

test.skipIf(process.platform !== "linux")("the kernel looks whether the database is still there", async () => {
  const { database, port } = await overTcp();
  await database.listen("channel", () => undefined);
  await database.pool.query("select 1");
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const connections = (await readFile("/proc/net/tcp", "utf8"))
    .split("\n")
    .map((line) => line.trim().split(/\s+/u))
    // Established ones; timer 02 is that of keep-alive (proc_net_tcp.txt of the kernel).
    .filter(([, , to, state]) => to === remote && state === "01");
  expect(connections.length).toBeGreaterThanOrEqual(2);
  expect(connections.map((columns) => columns[5]?.slice(0, 2))).toEqual(connections.map(() => "02"));
});

test("a node that closes while it begins to listen leaves no connection behind", async () => {
  const own = await createTestDatabase();
  closing.push(own.close);
  const node = await openDatabase({ url: own.url, directory: "", logger: createLogger("error") });
  const listening = node.listen("channel", () => undefined);
  await node.close();
  await listening;
  await waitFor(async () => {
    const { rows } = await own.database.pool.query(
      `select pid from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    );
    return rows.length === 0;
  }, "its connections are gone");
});

test("a node that closes while a database does not answer it waits for its own connection alone", async () => {
  const { database, relayed, ignored } = await overTcp();
  relayed.ignores = true;
  const listening = database.listen("channel", () => undefined);
  await waitFor(() => ignored.length === 1, "it begins to listen");
  const closed = once(ignored[0] as Socket, "close");
  await database.close();
  await Promise.all([listening, closed]);
  expect(ignored).toHaveLength(1);
});
