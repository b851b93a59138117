import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openGateway } from "../../src/gateway/gateway.ts";
import type { Proxies } from "../../src/outbound/proxies.ts";
import { postTo } from "../../src/worker/background/http-post.ts";
import { pinPublicHost } from "../../src/worker/git/remote-address.ts";
import { startCompany, type Company } from "./company.ts";

let company: Company;
let directory: string;
let proxies: Proxies;

beforeAll(async () => {
  company = await startCompany();
  directory = await mkdtemp(join(tmpdir(), "offstage-proxied-"));
  proxies = { http: company.proxy, https: company.proxy, direct: [] };
});

afterAll(async () => {
  await company?.close();
  await rm(directory, { recursive: true, force: true });
});

/** A sandbox's CONNECT, answered by its gateway. */
async function connectFrom(socketPath: string, place: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, method: "CONNECT", path: place });
    asked.once("connect", ({ statusCode = 0 }, socket) => {
      socket.destroy();
      resolve(statusCode);
    });
    asked.once("error", reject).end();
  });
}

it("lets no sandbox ask the operator's proxy for what is private here", async () => {
  const refused: unknown[] = [];
  const gateway = await openGateway({
    directory,
    models: {},
    egress: { open: true, rules: [] },
    onRefused: (refusal) => refused.push(refusal),
    proxies,
    resolve: (host) =>
      Promise.resolve(host === "inside.company.test" || host.startsWith("10.") ? ("private" as const) : null),
  });
  try {
    for (const place of ["10.0.0.1:443", "inside.company.test:443"]) {
      expect(await connectFrom(gateway.socket, place)).toBe(403);
    }
    expect(refused).toHaveLength(2);
    expect(company.asked).toEqual([]);
    // The control: a name that only the proxy can resolve is asked of the proxy, which has no such host.
    expect(await connectFrom(gateway.socket, "elsewhere.company.test:443")).toBe(502);
    expect(company.asked).toEqual(["CONNECT elsewhere.company.test:443"]);
  } finally {
    await gateway.close();
  }
});

it("asks the proxy for no private repository or webhook that a user named", async () => {
  for (const host of ["10.0.0.1", "169.254.169.254", "[fd00::1]"]) {
    await expect(pinPublicHost(`https://${host}/acme/app`, true)).rejects.toThrow("in a private network");
    const call = { body: "{}", headers: {}, privateHosts: [], proxies, signal: AbortSignal.timeout(20_000) };
    expect((await postTo(`https://${host}/hook`, call)).error).toContain("in a private network");
  }
  expect(await pinPublicHost("https://elsewhere.company.test/acme/app", true)).toMatchObject({ address: null });
  await expect(pinPublicHost("https://elsewhere.company.test/acme/app")).rejects.toThrow("could not be resolved");
});
