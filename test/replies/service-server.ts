import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** What goes wrong with the next request. */
export type Fault =
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body: string;
    }
  /** The request is carried out, and its answer is lost. */
  | { readonly kind: "lost" }
  /** No answer comes. */
  | { readonly kind: "hang" };

/** A request as it arrived. */
export interface ServiceCall {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

/** A service of a vendor on this machine. */
export interface ServiceServer {
  readonly url: string;
  readonly calls: ServiceCall[];
  /** Faults of the next requests, in order. */
  readonly faults: Fault[];
  close(): Promise<void>;
}

/**
 * Starts a service on this machine.
 * @param handle carries a request out, and says what is answered with 200, or with another status
 */
export async function startService(
  handle: (call: ServiceCall) => { readonly status?: number; readonly body: unknown },
): Promise<ServiceServer> {
  const calls: ServiceCall[] = [];
  const faults: Fault[] = [];
  const server: Server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    const sent = await text(request);
    const call = {
      path: pathname,
      query: searchParams,
      headers: request.headers,
      body: sent === "" ? null : JSON.parse(sent),
    };
    calls.push(call);
    const fault = faults.shift();
    if (fault?.kind === "hang") return;
    if (fault?.kind === "answer") {
      response.writeHead(fault.status, fault.headers).end(fault.body);
      return;
    }
    const { status = 200, body } = handle(call);
    if (fault?.kind === "lost") {
      request.socket.destroy();
      return;
    }
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    faults,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
