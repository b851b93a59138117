import { answerStatus, statusPaths } from "../metrics/status.ts";
import type { ApiOptions, App } from "./http/context.ts";

/** Adds what probes and Prometheus ask. The metrics have Prometheus's text format. */
export function addStatus(
  app: App,
  {
    metrics,
    metricsToken: token,
    publicUrl,
    ready,
  }: Pick<ApiOptions, "metrics" | "metricsToken" | "publicUrl" | "ready">,
): void {
  for (const path of statusPaths) {
    app.get(path, { schema: { hide: true } }, async ({ headers: requestHeaders, socket }, reply) => {
      const request = { remoteAddress: socket.remoteAddress, headers: requestHeaders };
      const { status, headers, body } = await answerStatus(path, request, { metrics, token, publicUrl, ready });
      return reply.status(status).headers(headers).send(body);
    });
  }
}
