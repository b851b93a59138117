import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface FlakyProxy {
  readonly url: string;
  /** Breaks every connection and refuses new ones until `repair`. */
  cut(): void;
  repair(): void;
  close(): Promise<void>;
}

/** A way to a server that can be cut, as a lost network is. */
export async function openFlakyProxy(target: string): Promise<FlakyProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) {
      socket.destroy();
      return;
    }
    const upstream = connect(Number(port), hostname);
    for (const end of [socket, upstream]) {
      sockets.add(end);
      // Either end may go first; the other follows.
      end.on("error", () => end.destroy());
      end.on("close", () => {
        sockets.delete(end);
        socket.destroy();
        upstream.destroy();
      });
    }
    socket.pipe(upstream).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true;
      breakAll();
    },
    repair: () => void (isCut = false),
    async close() {
      breakAll();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
