import { expect, test } from "vitest";
import { metricsAccess } from "./access.ts";

const token = "token-of-the-metrics";
const local = { remoteAddress: "127.0.0.1", headers: { host: "127.0.0.1:4747" } };
const atHome = { token: null, publicUrl: "http://127.0.0.1:4747" };

test("who shows the token may read from anywhere", () => {
  const headers = { host: "offstage.svc", authorization: `Bearer ${token}` };
  expect(metricsAccess({ remoteAddress: "10.0.0.9", headers }, { token, publicUrl: "https://x.example" })).toBe(
    "granted",
  );
});

test.each([
  ["no token", {}],
  ["another token", { authorization: "Bearer token-of-the-metricz" }],
  ["a part of it", { authorization: `Bearer ${token.slice(0, -1)}` }],
  ["it by another scheme", { authorization: `Basic ${token}` }],
])("with a token set %s is refused, on this machine too", (_name, headers) => {
  expect(metricsAccess({ ...local, headers: { ...local.headers, ...headers } }, { token, publicUrl: null })).toBe(
    "wrong token",
  );
});

test.each([
  ["127.0.0.1", "127.0.0.1:4747"],
  ["::ffff:127.0.0.1", "localhost:4747"],
  ["::1", "[::1]:4747"],
])("without one this machine may read: %s asking for %s", (remoteAddress, host) => {
  expect(metricsAccess({ remoteAddress, headers: { host } }, atHome)).toBe("granted");
});

test.each([
  ["another machine", { ...local, remoteAddress: "192.0.2.7" }, atHome],
  ["a connection that is gone", { ...local, remoteAddress: undefined }, atHome],
  ["a page whose name leads here", { ...local, headers: { host: "evil.example" } }, atHome],
  ["no host", { ...local, headers: {} }, atHome],
  ["a proxy that says so", { ...local, headers: { ...local.headers, "x-forwarded-for": "192.0.2.7" } }, atHome],
  ["a proxy that does not, on a server of a public name", local, { token: null, publicUrl: "https://x.example" }],
])("without one the metrics are hidden from %s", (_name, request, server) => {
  expect(metricsAccess(request, server)).toBe("hidden");
});
