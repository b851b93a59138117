import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { acceptForge } from "../../scripts/forge-acceptance.ts";
import type { Expectation } from "../../scripts/forge-trial.ts";
import { asAzure } from "../forge/azure-url.ts";
import { uuidOf } from "../forge/bitbucket-shapes.ts";
import { startForge, type TestForge } from "../forge/server.ts";

let server: TestForge;
let repositoryUrl: string;

beforeEach(async () => {
  server = await startForge();
  ({ url: repositoryUrl } = await server.createRepository("acme", "trials", { "a.txt": "a\n" }));
});

afterEach(() => server?.close());

/** As the documentation says to run it. */
function run(
  kind: string,
  token = server.token,
  more: readonly string[] = [],
): Promise<{ code: number; said: string }> {
  const named = kind === "bitbucket" ? ["--username", "me@acme.example"] : [];
  const url = kind === "azure" ? asAzure(repositoryUrl) : repositoryUrl;
  const parameters = ["scripts/accept-forge.ts", "--kind", kind, ...named, ...more, url];
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

describe.each(["azure", "github", "gitlab", "gitea", "bitbucket", "bitbucketDataCenter"] as const)(
  "the acceptance of %s",
  (kind) => {
    it("meets every expectation, and leaves no branch and no open pull request", async () => {
      const { code, said } = await run(kind);
      expect([code, said]).toEqual([0, expect.stringContaining("Every expectation is met.")]);
      expect(said.match(/^ok {3}/gmu)).toHaveLength(18);
      expect(said).not.toContain(server.token);
      expect(branches()).toBe("main");
      const pulls = await server.pullRequests("acme", "trials");
      expect(pulls.map(({ state }) => state)).toEqual(["closed", "closed", "closed"]);
    });

    it("sets labels, reviewers and assignees that are named, or says that this kind has none", async () => {
      server.describe("acme", "trials", { people: { ada: "write", tester: "write" }, labels: ["bug"] });
      const reviewer = kind === "bitbucket" ? uuidOf("ada") : "ada";
      const names = ["--label", "bug", "--reviewer", reviewer, "--assignee", "ada"];
      const { code, said } = await run(kind, server.token, names);
      const isBitbucket = kind === "bitbucket" || kind === "bitbucketDataCenter";
      const none = isBitbucket ? ["labels", "assignees"] : kind === "azure" ? ["assignees"] : [];
      const failed = [...said.matchAll(/^FAIL it gets (\w+)/gmu)].map(([, field]) => field);
      expect(failed).toEqual(none);
      expect(said.match(/can't set \w+: its pull requests have none/gu) ?? []).toHaveLength(none.length);
      expect(said.match(/^ok {3}it gets/gmu) ?? []).toHaveLength(3 - none.length);
      expect(code).toBe(none.length === 0 ? 0 : 1);
      const [pull] = await server.pullRequests("acme", "trials");
      expect(pull).toMatchObject({
        reviewers: ["ada"],
        ...(!none.includes("labels") && { labels: ["bug"] }),
        ...(!none.includes("assignees") && { assignees: ["ada"] }),
      });
    });

    it("meets them on a forge that lags", async () => {
      server.lag(1_000, 200);
      const met: Expectation[] = [];
      const api = {
        azure: "",
        github: "/api/v3",
        gitlab: "/api/v4",
        gitea: "/api/v1",
        bitbucket: "/2.0",
        bitbucketDataCenter: "/rest/api/latest",
      }[kind];
      const settings = { kind, webUrl: server.url, apiUrl: `${server.url}${api}`, token: server.token };
      const url = kind === "azure" ? asAzure(repositoryUrl) : repositoryUrl;
      await acceptForge({ settings, repositoryUrl: url, lagMs: 10_000 }, (each) => met.push(each));
      expect(met.filter(({ problem }) => problem !== null)).toEqual([]);
    });

    it("says which expectation a forge does not meet", async () => {
      // Bitbucket Cloud archives nothing.
      const [facts, words] =
        kind === "bitbucket"
          ? [{ push: false }, "may not push"]
          : [{ archived: true }, kind === "azure" ? "disabled" : "archived"];
      server.describe("acme", "trials", facts);
      const { code, said } = await run(kind);
      expect(code).toBe(1);
      expect(said).toMatch(/^FAIL the forge says that the token may push/mu);
      expect(said).toContain(words);
    });

    it("does not begin without a token that may read the repository", async () => {
      const { code, said } = await run(kind, "wrong");
      expect(code).toBe(2);
      expect(said).toContain("ls-remote failed");
      expect(await run(kind, "")).toMatchObject({ code: 2, said: expect.stringContaining("usage:") as string });
    });
  },
);
