import { mkdir, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";

/** One node's way to the database, which can be cut: nothing is closed, and nothing comes through any more. */
export interface DatabaseLink {
  /** Connection string for the node. */
  readonly url: string;
  cut(): void;
  /** What was held up goes through now, however late it is. */
  repair(): void;
  isCut(): boolean;
  close(): Promise<void>;
}

const socketName = ".s.PGSQL.5432";

/** @param server folder of PostgreSQL's own socket @param folder where the node's is made */
export async function createDatabaseLink(server: string, folder: string): Promise<DatabaseLink> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, socketName);
  await rm(path, { force: true });
  const sockets = new Set<Socket>();
  let isCut = false;

  const listener = createServer((node) => {
    const upstream = connect(join(server, socketName));
    for (const [socket, other] of [
      [node, upstream],
      [upstream, node],
    ] as const) {
      sockets.add(socket);
      if (isCut) socket.pause();
      socket.on("data", (chunk) => {
        if (!other.write(chunk)) socket.pause();
      });
      socket.on("drain", () => void (isCut || other.resume()));
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => listener.listen(path, resolve));
  return {
    url: `postgres://offstage@/postgres?host=${encodeURIComponent(folder)}`,
    cut() {
      isCut = true;
      for (const socket of sockets) socket.pause();
    },
    repair() {
      isCut = false;
      for (const socket of sockets) socket.resume();
    },
    isCut: () => isCut,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
