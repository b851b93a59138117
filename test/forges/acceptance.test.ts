import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { acceptForge, type Expectation } from "../../scripts/forge-acceptance.ts";
import { startForge, type TestForge } from "../forge/server.ts";

let server: TestForge;
let repositoryUrl: string;

beforeEach(async () => {
  server = await startForge();
  ({ url: repositoryUrl } = await server.createRepository("acme", "trials", { "a.txt": "a\n" }));
});

afterEach(() => server?.close());

/** As the documentation says to run it. */
function run(kind: string, token = server.token): Promise<{ code: number; said: string }> {
  const parameters = ["scripts/accept-forge.ts", "--kind", kind, repositoryUrl];
  const options = { cwd: join(import.meta.dirname, "../.."), env: { PATH: process.env["PATH"], FORGE_TOKEN: token } };
  return new Promise((resolve) => {
    execFile(process.execPath, parameters, options, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), said: `${stdout}${stderr}` });
    });
  });
}

const branches = (): string =>
  execFileSync("git", ["-C", server.pathOf("acme", "trials"), "branch", "--format=%(refname:short)"], {
    encoding: "utf8",
  }).trim();

describe.each(["github", "gitlab", "gitea"] as const)("the acceptance of %s", (kind) => {
  it("meets every expectation, and leaves no branch and no open pull request", async () => {
    const { code, said } = await run(kind);
    expect([code, said]).toEqual([0, expect.stringContaining("Every expectation is met.")]);
    expect(said.match(/^ok {3}/gmu)).toHaveLength(14);
    expect(said).not.toContain(server.token);
    expect(branches()).toBe("main");
    const pulls = await server.pullRequests("acme", "trials");
    expect(pulls.map(({ state }) => state)).toEqual(["closed", "closed", "closed"]);
  });

  it("meets them on a forge that lags", async () => {
    server.lag(1_000, 200);
    const met: Expectation[] = [];
    const api = { github: "v3", gitlab: "v4", gitea: "v1" }[kind];
    const settings = { kind, webUrl: server.url, apiUrl: `${server.url}/api/${api}`, token: server.token };
    await acceptForge({ settings, repositoryUrl, lagMs: 10_000 }, (each) => met.push(each));
    expect(met.filter(({ problem }) => problem !== null)).toEqual([]);
  });

  it("says which expectation a forge does not meet", async () => {
    server.describe("acme", "trials", { archived: true });
    const { code, said } = await run(kind);
    expect(code).toBe(1);
    expect(said).toMatch(/^FAIL the forge says that the token may push/mu);
    expect(said).toContain("archived");
  });

  it("does not begin without a token that may read the repository", async () => {
    const { code, said } = await run(kind, "wrong");
    expect(code).toBe(2);
    expect(said).toContain("ls-remote failed");
    expect(await run(kind, "")).toMatchObject({ code: 2, said: expect.stringContaining("usage:") as string });
  });
});
