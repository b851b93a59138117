import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { metricsAccess } from "../../metrics/access.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Logger } from "../../observability.ts";

/** The HTTP server of a worker that runs without the API. */
export interface StatusServer {
  readonly port: number;
  /** Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Serves the health and metrics of a worker that runs without the API: `/metrics`, `/healthz`, `/readyz`, and nothing else.
 * @param options.port 0: any free port
 * @param options.token bearer token for the metrics; null: only programs on this machine may read them
 * @param options.ready whether the database answers; a rejection counts as no
 * @throws Error if it can't listen on the address
 */
export async function startStatusServer(options: {
  readonly host: string;
  readonly port: number;
  readonly token: string | null;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly ready: () => Promise<boolean>;
}): Promise<StatusServer> {
  const { host, port, token, metrics, logger, ready } = options;

  async function answer(
    { url = "", method, headers, socket }: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (method !== "GET" && method !== "HEAD")
      return send(response, 404, { error: "there is nothing to post here: use GET" });
    switch (url.split("?")[0]) {
      case "/healthz":
        return send(response, 200, { status: "ok" });
      case "/readyz": {
        const isReady = await ready().catch(() => false);
        return isReady
          ? send(response, 200, { status: "ready" })
          : send(response, 503, { error: "the database does not answer" });
      }
      case "/metrics": {
        const access = metricsAccess({ remoteAddress: socket.remoteAddress, headers }, { token, publicUrl: null });
        if (access === "wrong token") return send(response, 401, { error: "send the token of OFFSTAGE_METRICS_TOKEN" });
        if (access === "hidden")
          return send(response, 404, { error: "set OFFSTAGE_METRICS_TOKEN to read the metrics" });
        const { contentType, text } = await metrics.scrape();
        response.writeHead(200, { "Content-Type": contentType, "Cache-Control": "no-store" }).end(text);
        return undefined;
      }
      default:
        return send(response, 404, { error: "a worker has only /metrics, /healthz and /readyz" });
    }
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      logger.error({ err: error }, "a worker could not tell of itself");
      if (response.headersSent) response.destroy();
      else send(response, 500, { error: "something broke inside Offstage; the worker's log has the reason" });
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  let closed: Promise<void> | null = null;
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      (closed ??= new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      })),
  };
}

function send(response: ServerResponse, status: number, body: Record<string, string>): void {
  response.writeHead(status, { "Content-Type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
}
