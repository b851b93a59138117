import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestApp, type TestApp } from "./app.ts";

let testApp: TestApp;
const token = "token-of-the-metrics";

beforeAll(async () => {
  testApp = await createTestApp();
});

afterAll(() => testApp?.close());

test("the metrics of a server with a public name are not there without a token", async () => {
  const { status, body } = await testApp.get("/metrics");
  expect(status).toBe(404);
  expect(body.error).toContain("OFFSTAGE_METRICS_TOKEN");
});

test("a server of this machine alone shows them to it, and not to what a proxy brings", async () => {
  const app = await testApp.another({ publicUrl: () => "http://127.0.0.1:4747" });
  const shown = await app.inject({ url: "/metrics", headers: { host: "127.0.0.1:4747" } });
  expect(shown.statusCode).toBe(200);
  expect(shown.headers["content-type"]).toContain("text/plain");
  expect(shown.headers["cache-control"]).toBe("no-store");
  expect(shown.body).toContain("offstage_event_streams 0");
  const headers = { host: "127.0.0.1:4747", "x-forwarded-for": "203.0.113.7" };
  expect((await app.inject({ url: "/metrics", headers })).statusCode).toBe(404);
  const away = await app.inject({ url: "/metrics", headers: { host: "127.0.0.1" }, remoteAddress: "203.0.113.7" });
  expect(away.statusCode).toBe(404);
});

test("with a token set it alone opens them, by whatever name the server is asked for", async () => {
  const app = await testApp.another({ metricsToken: token });
  const ask = (authorization?: string) =>
    app.inject({
      url: "/metrics",
      headers: { host: "offstage-api.cluster:4747", ...(authorization !== undefined && { authorization }) },
    });
  expect((await ask()).statusCode).toBe(401);
  expect((await ask(`Bearer ${testApp.adminKey}`)).statusCode).toBe(401);
  expect((await ask(`Bearer ${token}`)).statusCode).toBe(200);
});

test("the API's description does not name them", async () => {
  const { body } = await testApp.get("/openapi.json");
  expect(Object.keys(body.paths)).toContain("/session/create");
  expect(Object.keys(body.paths)).not.toContain("/metrics");
});
