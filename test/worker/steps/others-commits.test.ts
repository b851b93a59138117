import { execFileSync, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { openSigner, type Signer } from "../../../src/worker/git/signer.ts";
import { exportWork, salvage } from "../../../src/worker/steps/export-work.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

/** Whose the commits in a session's work are. */
let world: StepWorld;
let one: StepServices;

beforeEach(async () => {
  world = await createStepWorld();
  one = world.worker("one");
});

afterEach(() => world.close());

const identity = ["-c", "user.name=Agent", "-c", "user.email=offstage@localhost"];
const gitIn = ([clone]: readonly Clone[], ...parameters: string[]): string =>
  execFileSync("git", ["-C", clone?.folder ?? "", ...identity, ...parameters], { encoding: "utf8" }).trim();

async function commit(clones: readonly Clone[], name: string): Promise<void> {
  await writeFile(join(clones[0]?.folder ?? "", name), name);
  gitIn(clones, "add", "--all");
  gitIn(clones, "commit", "--quiet", "--message", `add ${name}`);
}

async function publish(attempt: Attempt, services: StepServices, clones: readonly Clone[]) {
  const works = await exportWork(attempt, services, clones);
  const { pushed } = await push(attempt, services, works);
  await openPullRequests(attempt, services, pushed, "");
}

const ssh = spawnSync("ssh-keygen", ["-?"]).error === undefined;
if (!ssh) console.warn("signatures by ssh are not tested: ssh-keygen is not installed");

describe.skipIf(!ssh)("where commits are signed", () => {
  let folder: string;
  let signer: Signer;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "offstage-sign-"));
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, "id")]);
    signer = await openSigner(join(folder, "id"), { folder: join(folder, "signing"), agent: null });
  });

  afterEach(async () => {
    await signer.close();
    await rm(folder, { recursive: true, force: true });
  });

  test("what the agent fetched and merged keeps its hashes, and the agent's own commits are signed", async () => {
    const services = { ...one, signer };
    const attempt = await world.begin();
    const { clones } = await prepareWorkspace(attempt, services);
    const branch = attempt.session.branchName;
    await commit(clones, "first.txt");
    // On the target, which moves on after that, and on a branch that is the agent's to know.
    await world.forge.commit("acme", "app", "main", { "target.txt": "t\n" });
    const onTarget = world.git("rev-parse", "main");
    world.git("branch", "feature", "main~1");
    await world.forge.commit("acme", "app", "feature", { "feature.txt": "f\n" });
    const onFeature = world.git("rev-parse", "feature");
    gitIn(clones, "fetch", "--quiet", world.forge.pathOf("acme", "app"), "main", "feature");
    gitIn(clones, "merge", "--quiet", "--no-edit", onTarget);
    gitIn(clones, "merge", "--quiet", "--no-edit", onFeature);
    await world.forge.commit("acme", "app", "main", { "later.txt": "l\n" });
    await commit(clones, "second.txt");
    await publish(attempt, services, clones);
    const pushed = world.git("rev-list", branch).split("\n");
    expect(pushed).toContain(onTarget);
    expect(pushed).toContain(onFeature);
    const own = world.git("rev-list", branch, "--not", "main", "feature").split("\n");
    expect(own).toHaveLength(4);
    for (const sha of own) expect(world.git("cat-file", "commit", sha)).toContain("gpgsig ");
  });
});

test("the text of a pull request lists commits of an attempt that ended before it", async () => {
  const first = await world.begin();
  const { clones } = await prepareWorkspace(first, one);
  await commit(clones, "first.txt");
  await salvage(first, one, first.signal);
  await world.database.pool.query("update session set workspace_worker = 'one'");
  const next = await world.again(first, "one");
  const kept = await prepareWorkspace(next, one);
  await commit(kept.clones, "second.txt");
  await publish(next, one, kept.clones);
  const [opened] = await world.forge.pullRequests("acme", "app");
  expect(opened?.body).toMatch(/- add first\.txt\n- add second\.txt/u);
  expect((await world.events(next)).filter((line) => line.startsWith("workspace.commit"))).toHaveLength(2);
});
