import { execFileSync } from "node:child_process";
import { afterEach, expect, test } from "vitest";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import { asAzure } from "../forge/azure-url.ts";
import type { RepositoryFacts } from "../forge/state.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let close: () => Promise<void> = () => Promise.resolve();

afterEach(() => close());

const apis = { azure: "", github: "/api/v3", gitlab: "/api/v4", gitea: "/api/v1" };

async function start(kind: keyof typeof apis, forks: boolean) {
  world = await createWorld(script);
  const { url: webUrl, token } = world.forge;
  const forge = { kind, webUrl, apiUrl: `${webUrl}${apis[kind]}`, token };
  const { offstage, client } = await startInProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_FORGES: JSON.stringify([forge]),
    OFFSTAGE_FORKS: String(forks),
  });
  close = async () => {
    await offstage.stop();
    await world.close();
  };
  return {
    client,
    async run(facts: RepositoryFacts): Promise<SessionDetail> {
      const made = await world.forge.createRepository("acme", "app", { "README.md": "# Before\n" });
      const url = kind === "azure" ? asAzure(made.url) : made.url;
      world.forge.describe("acme", "app", facts);
      return untilOver(client, (await client.session.create({ prompt: "write a.txt: a", repositories: [url] })).id);
    },
  };
}

const show = (owner: string, ...parameters: string[]): string =>
  execFileSync("git", ["-C", world.forge.pathOf(owner, "app"), ...parameters], { encoding: "utf8" }).trim();
const pulls = () => world.forge.pullRequests("acme", "app");

test.each(["azure", "github", "gitlab", "gitea"] as const)(
  "without the right to push, work goes to a fork on %s, and to one pull request from there",
  async (kind) => {
    const { client, run } = await start(kind, true);
    const done = await run({ push: false });
    expect(done).toMatchObject({ status: "completed", failure: null, pullRequests: [{ number: 1, state: "open" }] });
    expect(await pulls()).toMatchObject([{ head: done.branchName, headOwner: "tester", base: "main" }]);
    expect(show("tester", "show", `${done.branchName}:a.txt`)).toBe("a");
    expect(show("acme", "branch", "--format=%(refname:short)")).toBe("main");

    await client.session.message(done.id, { message: "write b.txt: b" });
    const again = await untilOver(client, done.id);
    expect(again).toMatchObject({ status: "completed", pullRequests: [{ number: 1 }] });
    expect(show("tester", "show", `${done.branchName}:b.txt`)).toBe("b");
    expect(await pulls()).toHaveLength(1);
    expect(await noticesOf(client, done.id)).toContainEqual(
      expect.stringContaining(
        `the work is in the fork ${kind === "azure" ? "acme/app/_git/app.tester" : "tester/app"}`,
      ),
    );
  },
);

test.each(["azure", "github", "gitlab"] as const)(
  "%s that lags is waited for: until the fork is made, and until its branch is known",
  async (kind) => {
    const { run } = await start(kind, true);
    world.forge.lag(1_500);
    expect(await run({ push: false })).toMatchObject({ status: "completed", pullRequests: [{ number: 1 }] });
    expect(await pulls()).toHaveLength(1);
  },
);

test("unless the operator allows forks, or if the repository allows none, the session fails before the work", async () => {
  const { run } = await start("github", false);
  expect(await run({ push: false })).toMatchObject({ failure: { code: "repository_access_denied" } });
  expect(world.model.requests).toEqual([]);
  await close();
  const allowed = await start("github", true);
  expect(await allowed.run({ push: false, allowForking: false })).toMatchObject({
    failure: { code: "repository_access_denied" },
  });
  expect(world.model.requests).toEqual([]);
});

test("with the right to push, no fork is made", async () => {
  const { run } = await start("github", true);
  expect((await run({})).status).toBe("completed");
  expect(world.forge.asked().filter((path) => path.includes("/forks"))).toEqual([]);
  expect(await pulls()).toMatchObject([{ headOwner: null }]);
});

test.each(["azure", "github", "gitlab", "gitea"] as const)(
  "others' commits to a fork's branch on %s are in the clone before a follow-up",
  async (kind) => {
    const { client, run } = await start(kind, true);
    const done = await run({ push: false });
    await world.forge.commit("tester", "app", done.branchName, { "theirs.txt": "theirs" });
    await client.session.message(done.id, { message: "shell cat theirs.txt > seen.txt" });
    expect(await untilOver(client, done.id)).toMatchObject({ status: "completed", failure: null });
    expect(show("tester", "show", `${done.branchName}:seen.txt`)).toBe("theirs");
    expect(show("tester", "log", "--merges", "--oneline", done.branchName)).toBe("");
    expect(await pulls()).toHaveLength(1);
  },
);
