import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Offstage } from "../../src/server/offstage.ts";
import { script } from "../end-to-end/script.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createLogger } from "../../src/observability.ts";
import { pollPullRequests } from "../../src/worker/background/pull-request-polling.ts";
import { asAzure } from "../forge/azure-url.ts";
import { connectForge, type ConnectedForge } from "../forge/connect.ts";
import type { Script } from "../model/server.ts";
import { adminKey, createWorld, startInProcess, type World } from "../world.ts";

const root = join(import.meta.dirname, "../..");

/** How an agent resolves the conflict: both sides' lines, without the markers. */
const mend = "sed -i '/^[<=>]\\{7\\}/d' offstage-acceptance-*.txt && git add -A && git commit -q --no-edit";
const resolving: Script = (message, conversation) => {
  const rest = typeof script === "function" ? script(message, conversation) : script;
  return message.includes("First of all") ? [{ shell: mend }, ...rest] : rest;
};

/** What is tried of the loop beside what is on all: threads on lines, of which Gitea delivers none, and other programs' checks. */
const kinds = [
  { kind: "github", more: 3 },
  { kind: "gitlab", more: 3 },
  { kind: "gitea", more: 1 },
  { kind: "bitbucket", more: 3 },
  { kind: "bitbucketDataCenter", more: 2 },
  { kind: "azure", more: 2 },
] as const;

describe.each(kinds)("the acceptance of the loop on $kind", ({ kind, more }) => {
  let world: World;
  let offstage: Offstage;
  let forge: ConnectedForge;

  beforeAll(async () => {
    world = await createWorld(resolving);
    ({ offstage } = await startInProcess(world, {
      OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
      OFFSTAGE_FORGES: "[]",
      OFFSTAGE_FORGE_HOSTS: "127.0.0.1",
      OFFSTAGE_CHECK_SECONDS: "1",
    }));
    forge = await connectForge(world.forge, { kind, url: offstage.url, key: adminKey });
  });
  afterAll(async () => {
    await offstage?.stop();
    await world?.close();
  });

  /** As the documentation says to run it. */
  function run(url: string, reviewer: string | undefined): Promise<{ code: number; said: string }> {
    const parameters = ["scripts/accept-forge.ts", "--kind", kind, "--loop", offstage.url, "--lag", "1"];
    const keys = { FORGE_TOKEN: world.forge.token, FORGE_REVIEWER_TOKEN: reviewer, OFFSTAGE_API_KEY: adminKey };
    const env = { PATH: process.env["PATH"], ...keys };
    return new Promise((resolve) => {
      execFile(process.execPath, [...parameters, url], { cwd: root, env }, (error, stdout, stderr) => {
        resolve({ code: Number(error?.code ?? 0), said: `${stdout}${stderr}` });
      });
    });
  }

  const addressOf = (url: string): string => (kind === "azure" ? asAzure(url) : url);

  /** Asks the forge whether pull requests can be merged, more often than once a minute. @returns what ends it */
  function pollOften(): () => Promise<void> {
    const stopping = new AbortController();
    const { forgeOf } = createForges([forge.settings]);
    const poll = { database: offstage.database, logger: createLogger("silent"), forgeOf, minutes: 0 };
    const polling = (async () => {
      while (!stopping.signal.aborted) {
        await pollPullRequests(poll, stopping.signal);
        await pause(1_000);
      }
    })();
    return () => {
      stopping.abort();
      return polling;
    };
  }

  it("says that no sign comes if the forge does not deliver", async () => {
    world.forge.deliverTo([]);
    const { url } = await world.forge.createRepository("acme", "silent", { "a.txt": "a\n" });
    world.forge.describe("acme", "silent", { people: { tester: "write" }, tellsRights: true });
    const { code, said } = await run(addressOf(url), undefined);
    expect([code, said]).toEqual([1, expect.stringMatching(/^FAIL a sign shows that it was seen/mu)]);
    expect(said).not.toContain("a commit follows");
    expect((await world.forge.pullRequests("acme", "silent")).map(({ state }) => state)).not.toContain("open");
  });

  it("meets every expectation, and leaves no branch and no open pull request", async () => {
    world.forge.deliverTo([forge.hook]);
    const { url } = await world.forge.createRepository("acme", "trials", { "a.txt": "a\n" });
    world.forge.describe("acme", "trials", { people: { tester: "write", ann: "write" }, tellsRights: true });
    const reviewer = world.forge.addPerson("ann");
    const stopPolling = pollOften();
    const { code, said } = await run(addressOf(url), reviewer.token);
    await stopPolling();
    expect([code, said]).toEqual([0, expect.stringContaining("Every expectation is met.")]);
    // Those of the forge, and of the loop.
    expect(said.match(/^ok {3}/gmu)).toHaveLength(18 + 11 + more);
    for (const secret of [world.forge.token, reviewer.token, adminKey]) expect(said).not.toContain(secret);
    const pulls = await world.forge.pullRequests("acme", "trials");
    expect(pulls.map(({ state }) => state)).not.toContain("open");
  });
});
