import type { FastifyReply, FastifyRequest } from "fastify";
import type { ApiOptions, App } from "./context.ts";

/** Counts and times each request, and traces those of operations. Nothing of a URL's query, where a key may be, is in either. */
export function observeRequests(app: App, { metrics, traces }: ApiOptions): void {
  app.decorateRequest("span", null);
  app.decorateRequest("isStream", false);
  const ends = new WeakMap<FastifyRequest, () => void>();
  // The first hook of all, so that a request that is refused is seen too.
  app.addHook("onRequest", (request, reply, done) => {
    const { operation } = request.routeOptions.config;
    const name = request.routeOptions.schema?.operationId ?? "other";
    if (operation !== undefined) request.span = traces.begin(name, spanOptions(request));
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      endSpan(request, reply);
      // A stream lasts as long as it is watched: that says nothing of how fast answers are.
      if (!request.isStream) metrics.requestEnded(name, reply.statusCode, reply.elapsedTime / 1_000);
    };
    ends.set(request, end);
    // Who hangs up leaves an answer that is never sent to its end.
    reply.raw.once("close", end);
    done();
  });
  app.addHook("onResponse", (request, _reply, done) => {
    ends.get(request)?.();
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
