import { NotFoundError, UnauthenticatedError } from "../domain/errors.ts";
import { metricsAccess } from "../metrics/access.ts";
import type { ApiOptions, App } from "./http/context.ts";

/** Prometheus's default path. The answer has Prometheus's text format. */
export const metricsPath = "/metrics";

/** Adds the operation that Prometheus reads. */
export function addMetrics(app: App, options: ApiOptions): void {
  const { metrics, metricsToken: token, publicUrl } = options;
  app.get(metricsPath, { schema: { hide: true } }, async (request, reply) => {
    const { headers, socket } = request;
    const access = metricsAccess({ remoteAddress: socket.remoteAddress, headers }, { token, publicUrl: publicUrl() });
    if (access === "wrong token") {
      throw new UnauthenticatedError("send the token of OFFSTAGE_METRICS_TOKEN as `Authorization: Bearer <token>`");
    }
    if (access === "hidden") {
      throw new NotFoundError(
        "only this machine may read the metrics: set OFFSTAGE_METRICS_TOKEN to read them from elsewhere",
      );
    }
    const { contentType, text } = await metrics.scrape();
    return reply.header("Cache-Control", "no-store").type(contentType).send(text);
  });
}
