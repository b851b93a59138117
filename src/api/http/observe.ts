import type { FastifyReply, FastifyRequest } from "fastify";
import type { ApiOptions, App } from "./context.ts";

/**
 * Measures each request and traces those of operations. The query of the URL is never included, because it may
 * contain a key.
 */
export function observeRequests(app: App, { metrics, traces }: Pick<ApiOptions, "metrics" | "traces">): void {
  app.decorateRequest("span", null);
  app.decorateRequest("isStream", false);
  // No WeakMap: the young generation's collector keeps what its values refer to, so each request with its body would grow old.
  app.decorateRequest("endMeasured", null);
  // The first hook of all, so that rejected requests are measured too.
  app.addHook("onRequest", (request, reply, done) => {
    const { operation } = request.routeOptions.config;
    const name = request.routeOptions.schema?.operationId ?? "other";
    if (operation !== undefined) request.span = traces.begin(name, spanOptions(request));
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      endSpan(request, reply);
      // A stream lasts as long as the client reads it, so its duration says nothing about response times.
      if (!request.isStream) metrics.requestEnded(name, reply.statusCode, reply.elapsedTime / 1_000);
    };
    request.endMeasured = end;
    // If the client disconnects, the answer is never sent completely.
    reply.raw.once("close", end);
    done();
  });
  app.addHook("onResponse", (request, _reply, done) => {
    request.endMeasured?.();
    done();
  });
}

function spanOptions(request: FastifyRequest) {
  const traceParent = request.headers["traceparent"];
  return {
    kind: "server",
    traceParent: typeof traceParent === "string" ? traceParent : null,
    attributes: {
      "http.request.method": request.method,
      "http.route": request.routeOptions.url ?? "",
      "offstage.request.id": request.id,
    },
  } as const;
}

function endSpan({ span }: FastifyRequest, reply: FastifyReply): void {
  span?.set({ "http.response.status_code": reply.statusCode });
  if (reply.statusCode >= 500) span?.fail(String(reply.statusCode));
  span?.end();
}
