import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { createStepWorld, type StepWorld } from "./step-world.ts";

let world: StepWorld;

beforeEach(async () => {
  world = await createStepWorld();
});

afterEach(() => world.close());

test("makes a clone of each repository, on the session's branch, and records the base", async () => {
  const attempt = await world.begin();
  const workspace = await prepareWorkspace(attempt, world.worker("one"));
  expect(workspace).toMatchObject({ origin: "remote", checkpoint: null, missingSetups: [] });
  const [clone] = workspace.clones;
  const main = world.git("rev-parse", "main");
  expect(clone).toMatchObject({ baseSha: main, headSha: main, targetBranch: "main" });
  expect(await readFile(join(clone?.folder ?? "", "README.md"), "utf8")).toBe("An app\n");
  expect(await readFile(join(clone?.folder ?? "", ".git/HEAD"), "utf8")).toContain(attempt.session.branchName);
  const { rows } = await world.database.pool.query("select base_sha from session_repository");
  expect(rows).toEqual([{ base_sha: main }]);
});

test("finds the clones of the last attempt as they were left, whatever the remote has by now", async () => {
  const attempt = await world.begin();
  const { clones } = await prepareWorkspace(attempt, world.worker("one"));
  const file = join(clones[0]?.folder ?? "", "new.txt");
  await writeFile(file, "not committed\n");
  await world.forge.commit("acme", "app", "main", { "README.md": "Another app\n" });
  const kept = await prepareWorkspace(await world.again(attempt, "one"), world.worker("one"));
  expect(kept).toMatchObject({ origin: "disk", clones: [{ baseSha: clones[0]?.baseSha }] });
  expect(existsSync(file)).toBe(true);
});

test("finds clones whose record an earlier version wrote, without the names of their folders", async () => {
  const attempt = await world.begin();
  const services = world.worker("one");
  const { clones } = await prepareWorkspace(attempt, services);
  const record = join(services.folders.diskOf(attempt.session.sessionId), "prepared.json");
  const starts = JSON.parse(await readFile(record, "utf8")) as { directory?: string }[];
  expect(starts).toMatchObject([{ directory: clones[0]?.repository.directory }]);
  for (const start of starts) delete start.directory;
  await writeFile(record, JSON.stringify(starts));
  const kept = await prepareWorkspace(await world.again(attempt, "one"), services);
  expect(kept).toMatchObject({ origin: "disk", clones: [{ baseSha: clones[0]?.baseSha }] });
});

test("makes clones again whose record lacks a repository, rather than leave that out", async () => {
  const attempt = await world.begin();
  const services = world.worker("one");
  await prepareWorkspace(attempt, services);
  await writeFile(join(services.folders.diskOf(attempt.session.sessionId), "prepared.json"), "[]");
  const again = await prepareWorkspace(await world.again(attempt, "one"), services);
  expect(again).toMatchObject({ origin: "remote", clones: [{ targetBranch: "main" }] });
});

test("leaves a workspace alone that another worker had since", async () => {
  const attempt = await world.begin();
  const services = world.worker("one");
  const { clones } = await prepareWorkspace(attempt, services);
  await writeFile(join(clones[0]?.folder ?? "", "outdated.txt"), "outdated\n");
  await world.database.pool.query("update session set workspace_worker = 'another'");
  const again = await prepareWorkspace(await world.again(attempt, "one"), services);
  expect(again.origin).toBe("remote");
  expect(existsSync(join(again.clones[0]?.folder ?? "", "outdated.txt"))).toBe(false);
});

test("fetches a mirror again that was removed under the clones", async () => {
  const attempt = await world.begin();
  const services = world.worker("one");
  const { clones } = await prepareWorkspace(attempt, services);
  await rm(clones[0]?.mirror.path ?? "", { recursive: true });
  const kept = await prepareWorkspace(await world.again(attempt, "one"), services);
  expect(kept.origin).toBe("disk");
  expect(existsSync(clones[0]?.mirror.path ?? "")).toBe(true);
});

test("refuses a repository that the organization no longer allows, before it is fetched", async () => {
  const attempt = await world.begin();
  await world.database.pool.query("update organization set repositories = '{github.com/*}'");
  const services = world.worker("one");
  await expect(prepareWorkspace(attempt, services)).rejects.toMatchObject({ code: "repository_not_allowed" });
  expect(existsSync(services.mirrors.directory)).toBe(false);
});

test.each(["git@git.example:acme/app.git", "/srv/repositories/app"])(
  "refuses %s before it is fetched, if the organization uses none of the server's access to forges",
  async (url) => {
    const { session, ...attempt } = await world.begin();
    const repositories = session.repositories.map((repository) => ({ ...repository, url }));
    await world.database.pool.query("update organization set uses_server_forges = false");
    await expect(
      prepareWorkspace({ ...attempt, session: { ...session, repositories } }, world.worker("one")),
    ).rejects.toMatchObject({
      code: "repository_not_allowed",
      message: expect.stringContaining("the server's own ssh keys or disk"),
    });
  },
);

test("fails with a stable code if the target branch is not there", async () => {
  const attempt = await world.begin({ targetBranch: "gone" });
  await expect(prepareWorkspace(attempt, world.worker("one"))).rejects.toMatchObject({
    code: "target_branch_not_found",
  });
});

test("reads how a clone is set up from its base, and says what is missing", async () => {
  await world.forge.commit("acme", "app", "main", {
    ".devcontainer/devcontainer.json": JSON.stringify({ postCreateCommand: "make", containerEnv: { A: "1" } }),
  });
  const { environments, missingSetups } = await prepareWorkspace(await world.begin(), world.worker("one"));
  expect(environments).toMatchObject([{ script: expect.stringContaining("make") as string, variables: { A: "1" } }]);
  expect(missingSetups).toEqual(environments);
});

test("reads a devcontainer file in a folder of its own, and says once what of it is not followed", async () => {
  const file = { image: "debian", features: { "ghcr.io/devcontainers/features/go:1": {} }, postCreateCommand: "make" };
  await world.forge.commit("acme", "app", "main", { ".devcontainer/go/devcontainer.json": JSON.stringify(file) });
  const attempt = await world.begin();
  const services = world.worker("one");
  const { environments } = await prepareWorkspace(attempt, services);
  expect(environments).toMatchObject([{ script: expect.stringContaining("make") as string, image: null }]);
  await prepareWorkspace(await world.again(attempt, "one"), services);
  const said = (await world.events(attempt)).filter((line) => line.startsWith("notice"));
  expect(said).toEqual([expect.stringContaining("acme/app: its devcontainer file has image, features, not followed")]);
});

test("uses none of several devcontainer files in folders of their own, and says so", async () => {
  await world.forge.commit("acme", "app", "main", {
    ".devcontainer/go/devcontainer.json": '{ "postCreateCommand": "make go" }',
    ".devcontainer/rust/devcontainer.json": '{ "postCreateCommand": "make rust" }',
  });
  const attempt = await world.begin();
  const { environments } = await prepareWorkspace(attempt, world.worker("one"));
  expect(environments).toMatchObject([{ script: null }]);
  expect((await world.events(attempt)).join()).toContain(".devcontainer/go/devcontainer.json, .devcontainer/rust/");
});
