import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { createService, type Service } from "../../lifecycle/service.ts";
import {
  answerStatus,
  json,
  statusMethods,
  statusPaths,
  type StatusAnswer,
  type StatusOptions,
} from "../../metrics/status.ts";
import type { Logger } from "../../observability.ts";

/** The HTTP server of a worker that runs without the API. */
export interface StatusServer extends Service {
  /** The port on which it listens, once it has started. */
  readonly port: number;
}

/**
 * Makes the server of the health and metrics of a worker that runs without the API: `/metrics`, `/healthz`, `/readyz`, and
 * nothing else. `start` throws if it can't listen on the address.
 * @param options.port 0: any free port
 */
export function createStatusServer(
  options: StatusOptions & { readonly host: string; readonly port: number; readonly logger: Logger },
): StatusServer {
  const { host, port, logger } = options;
  const server = createServer((request, response) => {
    answerOf(request, options)
      .catch((error: unknown) => {
        logger.error({ err: error }, "could not answer a request for the worker's health or metrics");
        return json(500, { error: "internal error; the worker's log has the reason" });
      })
      .then(({ status, headers, body }) => response.writeHead(status, headers).end(body))
      .catch(() => response.destroy());
  });
  return {
    get port() {
      return (server.address() as AddressInfo).port;
    },
    ...createService({
      start: () =>
        new Promise((resolve, reject) => {
          server.once("error", reject);
          server.listen(port, host, resolve);
        }),
      stop: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    }),
  };
}

async function answerOf(
  { url = "", method = "", headers, socket }: IncomingMessage,
  options: StatusOptions,
): Promise<StatusAnswer> {
  const asked = url.split("?")[0];
  const path = statusPaths.find((each) => each === asked);
  if (path === undefined) return json(404, { error: `a worker has only ${statusPaths.join(", ")}` });
  if (!statusMethods.some((each) => each === method)) {
    const allow = statusMethods.join(", ");
    return json(405, { error: `there is no ${method} ${path}: use ${allow}` }, { Allow: allow });
  }
  return answerStatus(path, { remoteAddress: socket.remoteAddress, headers }, options);
}
