import { createApp } from "../src/api/app.ts";
import type { Description } from "../src/description/operations.ts";
import { createMetrics } from "../src/metrics/metrics.ts";
import { createLogger } from "../src/observability.ts";
import { noTraces } from "../src/traces.ts";

/**
 * The API's OpenAPI description, as `/openapi.json` answers it. It follows from the routes alone, so the server that is made for it has
 * nothing behind it: no operation of it can be called.
 */
export async function describeApi(): Promise<Description> {
  const nothing = {
    database: { listen: () => Promise.resolve({ close: () => Promise.resolve() }) },
    logger: createLogger("silent"),
    metrics: createMetrics(),
    metricsToken: null,
    traces: noTraces,
    publicUrl: () => "http://localhost",
    rateLimitPerMinute: 1,
    hosts: [],
    trustedProxies: [],
    signInMethods: [],
    signInDays: 1,
    webDirectory: null,
  };
  const app = await createApp(nothing as unknown as Parameters<typeof createApp>[0]);
  try {
    const answer = await app.inject("/openapi.json");
    return answer.json<Description>();
  } finally {
    await app.close();
  }
}
