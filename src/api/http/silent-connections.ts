import type { Socket } from "node:net";
import type { App } from "./context.ts";

/**
 * Closes connections on which nothing was sent when the server stops: browsers and other clients open some in advance, and load
 * balancers to see whether they can. Node.js takes only those for idle that had a request, and would wait for the others until the
 * time for their headers is over, which is more than a minute.
 */
export function closeSilentConnections(app: App): void {
  const open = new Set<Socket>();
  app.server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  app.addHook("preClose", (done) => {
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    done();
  });
}
