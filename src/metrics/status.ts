import type { OutgoingHttpHeaders } from "node:http";
import { metricsAccess, type MetricsRequest } from "./access.ts";
import type { Metrics } from "./metrics.ts";

/**
 * Requests of a cluster's probes and scrapers, under any host name: liveness, readiness and metrics.
 */
export const statusPaths = ["/healthz", "/readyz", "/metrics"] as const;
/** See `statusPaths`. */
export type StatusPath = (typeof statusPaths)[number];
/** The methods of each of them. */
export const statusMethods = ["GET", "HEAD"] as const;

/** An answer, for the HTTP server that was asked. */
export interface StatusAnswer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

/** Dependencies of the answers. */
export interface StatusOptions {
  readonly metrics: Metrics;
  /** Bearer token for the metrics; null: only programs on this machine may read them. */
  readonly token: string | null;
  /** The server's address for users; null if it serves none. */
  readonly publicUrl: () => string | null;
  /** Whether the database answers; a rejection counts as no. */
  readonly ready: () => Promise<boolean>;
}

/** Answers requests for a process's status: the same for every server that serves them. */
export async function answerStatus(
  path: StatusPath,
  request: MetricsRequest,
  { metrics, token, publicUrl, ready }: StatusOptions,
): Promise<StatusAnswer> {
  switch (path) {
    case "/healthz":
      return json(200, { status: "ok" });
    case "/readyz": {
      const isReady = await ready().catch(() => false);
      return isReady ? json(200, { status: "ready" }) : json(503, { error: "the database does not answer" });
    }
    case "/metrics": {
      const access = metricsAccess(request, { token, publicUrl: publicUrl() });
      if (access === "wrong token") {
        const error = "send the token of OFFSTAGE_METRICS_TOKEN as `Authorization: Bearer <token>`";
        return json(401, { error }, { "WWW-Authenticate": "Bearer" });
      }
      if (access === "hidden") {
        const error = "only this machine may read the metrics: set OFFSTAGE_METRICS_TOKEN to read them from elsewhere";
        return json(404, { error });
      }
      const { contentType, text } = await metrics.scrape();
      return { status: 200, headers: { "Content-Type": contentType, "Cache-Control": "no-store" }, body: text };
    }
  }
}

/** An answer of JSON, as all of Offstage's. */
export function json(
  status: number,
  body: Readonly<Record<string, string>>,
  headers: OutgoingHttpHeaders = {},
): StatusAnswer {
  const always = { "Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store" };
  return { status, headers: { ...always, ...headers }, body: JSON.stringify(body) };
}
