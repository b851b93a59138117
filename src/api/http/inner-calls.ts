import { AsyncLocalStorage } from "node:async_hooks";
import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import type { App } from "./context.ts";

/** Requests that a tool of the MCP server makes of the API, within this process. */
export interface InnerCalls {
  /** Whether the code that runs serves such a request. */
  isInner(): boolean;
  /**
   * A `fetch` of the API's own operations on behalf of a request. It has that request's key or token and nothing else of its rights, so
   * each call is checked, audited and refused as if the caller had made it.
   */
  fetchFor(request: FastifyRequest): typeof fetch;
}

/** Statuses whose answers have no body. */
const empty: ReadonlySet<number> = new Set([204, 205, 304]);

/** Makes the calls of an app to itself. Nothing is sent over the network, so it works whatever address the server has. */
export function createInnerCalls(app: App): InnerCalls {
  const calls = new AsyncLocalStorage<true>();
  return {
    isInner: () => calls.getStore() === true,
    fetchFor: (outer) => (input, init) =>
      // `inject` begins once it is awaited, which must be within.
      calls.run(true, async () => {
        const headers = Object.fromEntries(new Headers(init?.headers));
        const answer = await app.inject({
          method: init?.method === "POST" ? "POST" : "GET",
          url: input as string,
          headers: {
            ...headers,
            host: outer.headers.host ?? "",
            authorization: outer.headers.authorization ?? "",
            ...(typeof outer.headers["traceparent"] === "string" && { traceparent: outer.headers["traceparent"] }),
          },
          remoteAddress: outer.ip,
          ...(typeof init?.body === "string" && { payload: init.body }),
          ...(init?.signal != null && { signal: init.signal }),
          payloadAsStream: true,
        });
        const body = empty.has(answer.statusCode) ? null : (Readable.toWeb(answer.stream()) as ReadableStream);
        return new Response(body, {
          status: answer.statusCode,
          headers: Object.entries(answer.headers).flatMap(([name, value]): [string, string][] =>
            value === undefined ? [] : [[name, String(value)]],
          ),
        });
      }),
  };
}
