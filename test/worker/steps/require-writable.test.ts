import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SessionError } from "../../../src/domain/errors/errors.ts";
import type { RemoteRepository } from "../../../src/worker/git/remote-repository.ts";
import { exportWork } from "../../../src/worker/steps/commit/export-work.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { requireWorkflowRight, requireWritable } from "../../../src/worker/steps/push/require-writable.ts";
import { whereToPush } from "../../../src/worker/steps/push/where-to-push.ts";
import type { RepositoryFacts } from "../../forge/state.ts";
import { folderOf } from "./step-actions.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let services: StepServices;

beforeEach(async () => {
  world = await createStepWorld();
  services = world.worker("one");
});

afterEach(() => world.close());

const facts = (of: RepositoryFacts): void => world.forge.describe("acme", "app", of);

test.each<[string, RepositoryFacts, string]>([
  ["is archived", { archived: true }, "repository_access_denied"],
  ["may not be pushed to", { push: false }, "repository_access_denied"],
  ["has no pull requests", { push: true, hasPullRequests: false }, "pull_request_refused"],
])("a repository that %s is refused before anything is fetched", async (_, of, code) => {
  facts(of);
  const attempt = await world.begin();
  await expect(requireWritable(attempt, services)).rejects.toMatchObject({ code });
  await expect(prepareWorkspace(attempt, services)).rejects.toMatchObject({ code });
});

test("a token that git does not let push is refused before the turn, whatever the API says of its user", async () => {
  facts({ push: true, gitPush: false });
  await expect(prepareWorkspace(await world.begin(), services)).rejects.toMatchObject({
    code: "repository_access_denied",
    passing: false,
    message: expect.stringContaining("Permission denied to the token's user") as string,
  });
});

test("so is a fine-grained token of GitHub's that may not write contents", async () => {
  world.forge.setGranted(["pull_requests"]);
  facts({ push: true });
  await expect(requireWritable(await world.begin(), services)).rejects.toMatchObject({
    code: "repository_access_denied",
  });
});

test("and one that may push, and open no pull requests", async () => {
  world.forge.setGranted(["contents"]);
  facts({ push: true });
  await expect(prepareWorkspace(await world.begin(), services)).rejects.toMatchObject({
    code: "repository_access_denied",
    passing: false,
    message: expect.stringContaining("may not open pull requests in acme/app") as string,
  });
});

test("and one that may is taken", async () => {
  world.forge.setGranted(["contents", "pull_requests"]);
  facts({ push: true });
  const { clones } = await prepareWorkspace(await world.begin(), services);
  expect(clones).toHaveLength(1);
});

test("a server that can't be asked for the right to push stops nothing, and is asked once for a session", async () => {
  facts({ push: true });
  const began = performance.now();
  await prepareWorkspace(await world.begin(), services);
  await world.forge.failNext({ kind: "hang", at: "push" });
  const attempt = await world.begin();
  // More than all of it takes on this machine, with all that it has to do now.
  const fetchLimits = { bytes: 2 ** 30, memoryBytes: 2 ** 32, ms: 1_000 + Math.ceil(performance.now() - began) };
  const mirrors = {
    ...services.mirrors,
    of: (remote: RemoteRepository) => ({ ...services.mirrors.of(remote), fetchLimits }),
  };
  await prepareWorkspace(attempt, { ...services, mirrors });
  expect(world.forge.pendingFailures()).toBe(0);
  facts({ push: true, gitPush: false });
  expect(await prepareWorkspace(await world.again(attempt, "one"), services)).toMatchObject({ origin: "disk" });
});

test("a refused right ends a fetch that would take longer than an attempt", async () => {
  facts({ archived: true });
  await world.forge.failNext({ kind: "hang", at: "fetch" });
  const attempt = await world.begin();
  await expect(prepareWorkspace(attempt, services)).rejects.toMatchObject({
    code: "repository_access_denied",
    message: expect.stringContaining("is archived") as string,
  });
  expect(attempt.signal.aborted).toBe(false);
});

test("rules of the work branch are said once, and stop nothing", async () => {
  facts({ push: true, rules: [{ type: "required_signatures" }] });
  const attempt = await world.begin();
  const known = await requireWritable(attempt, services);
  expect(known.get(attempt.session.repositories[0]?.id ?? "")?.mayPush).toBe(true);
  const next = await world.again(attempt, "one");
  await requireWritable(next, services);
  const notices = (await world.events(next)).filter((line) => line.startsWith("notice"));
  expect(notices).toEqual([expect.stringContaining("has rules for pushes to the branch")]);
});

test.each([404, 403])(
  "a forge whose API answers %i is asked again, and stops the session if it says so again",
  async (status) => {
    const attempt = await world.begin();
    const fail = () => world.forge.failNext({ kind: "status", status, at: "repository" });
    // Twice for each look: at the repository, and at its rules.
    await Promise.all([fail(), fail(), fail(), fail()]);
    const code = status === 404 ? "repository_not_found" : "repository_access_denied";
    await expect(requireWritable(attempt, services)).rejects.toMatchObject({ code, passing: false });
    expect(world.forge.pendingFailures()).toBe(0);
    await Promise.all([fail(), fail()]);
    expect((await requireWritable(attempt, services)).size).toBe(1);
  },
);

test("a forge that can't be asked stops nothing", async () => {
  const attempt = await world.begin();
  const failed = world.forge.failNext({ kind: "status", status: 500, at: "repository" });
  expect((await requireWritable(attempt, services)).size).toBe(0);
  await failed;
});

describe("a repository to which the token may not push", () => {
  test("is accepted if there may be a fork, to which the work goes", async () => {
    facts({ push: false, allowForking: true });
    const attempt = await world.begin();
    const forking = { ...services, forks: true };
    await requireWritable(attempt, forking);
    const [clone] = (await prepareWorkspace(attempt, forking)).clones;
    if (clone === undefined) throw new Error("there is no clone");
    const { fork, mirror } = await whereToPush(attempt, forking, clone);
    expect([fork?.path, mirror.url === clone.mirror.url]).toEqual(["tester/app", false]);
  });

  test("stays the target if the token may push after all", async () => {
    facts({ push: true });
    const attempt = await world.begin();
    const forking = { ...services, forks: true };
    const [clone] = (await prepareWorkspace(attempt, forking)).clones;
    if (clone === undefined) throw new Error("there is no clone");
    expect(await whereToPush(attempt, forking, clone)).toMatchObject({ fork: undefined, mirror: clone.mirror });
  });
});

test.each<[string, string | null, string]>([
  ["is refused if the token has no right to it", "repo", "repository_access_denied"],
  ["passes if the token has it", "repo, workflow", "passed"],
  ["passes if the forge does not say", null, "passed"],
])("a change of workflows %s", async (_, scopes, end) => {
  world.forge.setScopes(scopes);
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, services);
  await mkdir(join(folderOf(clones), ".github/workflows"), { recursive: true });
  await writeFile(join(folderOf(clones), ".github/workflows/a.yml"), "on: push\n");
  const [work] = await exportWork(attempt, services, clones);
  if (work === undefined) throw new Error("there is no work");
  const checking = requireWorkflowRight(attempt, services, work);
  expect(
    await checking.then(
      () => "passed",
      ({ code }: SessionError) => code,
    ),
  ).toBe(end);
});
