import { execFile } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Offstage } from "../../src/server/offstage.ts";
import { script } from "../end-to-end/script.ts";
import { connectForge, type ConnectedForge } from "../forge/connect.ts";
import { adminKey, createWorld, startInProcess, type World } from "../world.ts";

const root = join(import.meta.dirname, "../..");

describe.each(["github", "gitlab", "gitea"] as const)("the acceptance of the loop on %s", (kind) => {
  let world: World;
  let offstage: Offstage;
  let forge: ConnectedForge;

  beforeAll(async () => {
    world = await createWorld(script);
    ({ offstage } = await startInProcess(world, {
      OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
      OFFSTAGE_FORGES: "[]",
      OFFSTAGE_FORGE_HOSTS: "127.0.0.1",
    }));
    forge = await connectForge(world.forge, { kind, url: offstage.url, key: adminKey });
  });
  afterAll(async () => {
    await offstage?.stop();
    await world?.close();
  });

  /** As the documentation says to run it. */
  function run(url: string, more: readonly string[] = []): Promise<{ code: number; said: string }> {
    const parameters = ["scripts/accept-forge.ts", "--kind", kind, "--loop", offstage.url, "--lag", "1", ...more, url];
    const env = { PATH: process.env["PATH"], FORGE_TOKEN: world.forge.token, OFFSTAGE_API_KEY: adminKey };
    return new Promise((resolve) => {
      execFile(process.execPath, parameters, { cwd: root, env }, (error, stdout, stderr) => {
        resolve({ code: Number(error?.code ?? 0), said: `${stdout}${stderr}` });
      });
    });
  }

  it("says that no reaction comes if the forge does not deliver", async () => {
    world.forge.deliverTo([]);
    const { url } = await world.forge.createRepository("acme", "silent", { "a.txt": "a\n" });
    world.forge.describe("acme", "silent", { people: { tester: "write" }, tellsRights: true });
    const { code, said } = await run(url);
    expect([code, said]).toEqual([1, expect.stringMatching(/^FAIL a reaction shows that it was seen/mu)]);
    expect(said).not.toContain("a commit follows");
    expect((await world.forge.pullRequests("acme", "silent")).map(({ state }) => state)).not.toContain("open");
  });

  it("meets every expectation, and leaves no branch and no open pull request", async () => {
    world.forge.deliverTo([forge.hook]);
    const { url } = await world.forge.createRepository("acme", "trials", { "a.txt": "a\n" });
    world.forge.describe("acme", "trials", { people: { tester: "write" }, tellsRights: true });
    const { code, said } = await run(url);
    expect([code, said]).toEqual([0, expect.stringContaining("Every expectation is met.")]);
    // Those of the forge, of the loop, and of threads on lines, of which Gitea delivers none.
    expect(said.match(/^ok {3}/gmu)).toHaveLength(18 + 9 + (kind === "gitea" ? 0 : 2));
    for (const secret of [world.forge.token, adminKey]) expect(said).not.toContain(secret);
    const pulls = await world.forge.pullRequests("acme", "trials");
    expect(pulls.map(({ state }) => state)).not.toContain("open");
  });
});
