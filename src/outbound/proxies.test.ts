import { expect, it } from "vitest";
import { isDirectEntry, nodeProxyVariables, proxyOfUrl, proxyVariables, type Proxies } from "./proxies.ts";

const proxy = "http://proxy.example:3128";
const through = (...direct: string[]): Proxies => ({ http: null, https: proxy, direct });
const isDirect = (direct: string, host: string): boolean => proxyOfUrl(through(direct), `https://${host}/a`) === null;

it("sends each protocol through its own proxy", () => {
  expect(proxyOfUrl(through(), "https://a.example/x")?.host).toBe("proxy.example:3128");
  expect(proxyOfUrl(through(), "http://a.example/x")).toBeNull();
  expect(proxyOfUrl(through(), "ssh://git@a.example/x")).toBeNull();
  expect(proxyOfUrl(through(), "git@a.example:x")).toBeNull();
});

it("contacts this machine directly", () => {
  for (const host of ["localhost", "a.localhost", "127.0.0.1", "127.3.2.1:8080", "[::1]:80"])
    expect(isDirect("none.example", host)).toBe(true);
});

it.each([
  ["a.example", "a.example", true],
  ["a.example", "b.a.example", true],
  [".a.example", "a.example", true],
  ["*.a.example", "b.a.example", true],
  ["a.example", "nota.example", false],
  ["a.example", "a.example.org", false],
  ["a.example:8443", "a.example:8443", true],
  ["a.example:8443", "a.example", false],
  ["*", "anything.example", true],
  ["10.1.2.3", "10.1.2.3", true],
  ["10.0.0.0/8", "10.200.3.4", true],
  ["10.0.0.0/8", "11.0.0.1", false],
  ["10.0.0.0/8", "ten.example", false],
  ["fd00::/8", "[fd12::1]", true],
  ["[fd12::1]:443", "[fd12::1]", true],
])("reads %s of NO_PROXY: %s is direct: %s", (entry, host, expected) => {
  expect(isDirectEntry(entry)).toBe(true);
  expect(isDirect(entry, host)).toBe(expected);
});

it("refuses ranges that are none", () => {
  for (const entry of ["10.0.0.0/33", "a.example/8", "10.0.0.0/8/8", ""]) expect(isDirectEntry(entry)).toBe(false);
});

it("writes the variables as programs and Node read them", () => {
  const proxies: Proxies = { http: proxy, https: proxy, direct: ["*.a.example", "10.0.0.0/8"] };
  expect(proxyVariables(proxies)["no_proxy"]).toBe("a.example,10.0.0.0/8,localhost,127.0.0.1,::1");
  // curl takes it for all hosts only if it is alone.
  expect(proxyVariables({ ...proxies, direct: ["a.example", "*"] })["no_proxy"]).toBe("*");
  const node = nodeProxyVariables(proxies, ["https://10.2.3.4:8443/api", "https://b.example"])["no_proxy"];
  expect(node?.split(",")).toEqual(expect.arrayContaining(["a.example", ".a.example", "10.2.3.4"]));
  expect(node).not.toContain("b.example");
  expect(proxyVariables(through())).not.toHaveProperty("http_proxy");
  expect(proxyVariables({ http: null, https: null, direct: ["a.example"] })).toEqual({});
});
