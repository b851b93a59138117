import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createGatewayProcesses } from "../../../src/gateway/process/process.ts";
import type { SandboxRequest } from "../../../src/sandboxes/sandbox.ts";
import type { Attempt, AttemptServices } from "../../../src/worker/attempt/attempt.ts";
import { createEnvironmentCache } from "../../../src/worker/disk/environment-cache.ts";
import { prepareWorkspace, type Workspace } from "../../../src/worker/steps/prepare.ts";
import { setUp, withoutSetup } from "../../../src/worker/steps/set-up.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

type SetupServices = StepServices & Parameters<typeof setUp>[1];

let world: StepWorld;
let folder: string;
let services: SetupServices;

beforeEach(async () => {
  world = await createStepWorld();
  // Short, since it holds sockets.
  folder = await mkdtemp(join(tmpdir(), "o-"));
  const ofSetups: Pick<AttemptServices, Exclude<keyof SetupServices, keyof StepServices>> = {
    environmentCache: createEnvironmentCache({ directory: join(folder, "cache"), maximumBytes: 2 ** 30 }),
    sandboxImage: null,
    setupLimitMs: 60_000,
    gateways: createGatewayProcesses(),
    egress: { open: false, rules: [] },
    registryHosts: [],
    sandboxAuthorities: [],
    socketDirectory: join(folder, "run"),
    modelPermits: [],
    models: {},
    prices: {},
    allowedModels: ["*"],
  };
  services = { ...world.worker("one"), ...ofSetups };
});

afterEach(async () => {
  await world.close();
  await rm(folder, { recursive: true, force: true });
});

async function begin(script: string): Promise<{ attempt: Attempt; workspace: Workspace }> {
  await world.database.pool.query("update repository set setup_script = $1", [script]);
  const attempt = await world.begin();
  return { attempt, workspace: await prepareWorkspace(attempt, services) };
}

const folderOf = ({ clones }: Workspace): string => clones[0]?.folder ?? "";

test("runs the setup script in the clone, shows its output, and does not run it again", async () => {
  const { attempt, workspace } = await begin("echo made > made.txt; echo it was set up");
  await setUp(attempt, services, workspace.missingSetups);
  expect(await readFile(join(folderOf(workspace), "made.txt"), "utf8")).toBe("made\n");
  expect((await world.events(attempt)).join("\n")).toContain("setup.output it was set up");
  expect(await withoutSetup(attempt, services, workspace.environments)).toEqual([]);
});

test("what a setup made is no part of the work", async () => {
  const { attempt, workspace } = await begin("echo changed > README.md; echo made > made.txt");
  await setUp(attempt, services, workspace.missingSetups);
  expect(await readFile(join(folderOf(workspace), "README.md"), "utf8")).toBe("An app\n");
  expect(await readFile(join(folderOf(workspace), ".git/info/exclude"), "utf8")).toContain("/made.txt");
});

test("fails with the end of the script's output, and is to be run again", async () => {
  const { attempt, workspace } = await begin("echo no compiler; exit 3");
  await expect(setUp(attempt, services, workspace.missingSetups)).rejects.toMatchObject({
    code: "setup_failed",
    message: expect.stringMatching(/ended with 3[^]*no compiler/u) as string,
    passing: true,
  });
  expect(await withoutSetup(attempt, services, workspace.environments)).toHaveLength(1);
});

test("that is only tried is not run again by itself", async () => {
  const { attempt, workspace } = await begin("echo no compiler; exit 3");
  const trial = { ...attempt, session: { ...attempt.session, setupTrial: true } };
  await expect(setUp(trial, services, workspace.missingSetups)).rejects.toMatchObject({ passing: false });
});

test("is ended at its time limit", async () => {
  const { attempt, workspace } = await begin("sleep 300; touch late.txt");
  const limited = { ...services, setupLimitMs: 1_000 };
  await expect(setUp(attempt, limited, workspace.missingSetups)).rejects.toMatchObject({
    code: "setup_failed",
    passing: false,
  });
  expect(existsSync(join(folderOf(workspace), "late.txt"))).toBe(false);
});

test("waits for a sandbox that is away, before the script and in the middle of it, and runs the script once it works", async () => {
  const { attempt, workspace } = await begin("echo made > made.txt");
  const { sandbox } = services;
  const away = { ...sandbox, kind: "container" as const, check: () => Promise.resolve("the engine does not answer") };
  const lost = {
    ...sandbox,
    start: (request: SandboxRequest) => ({
      ...sandbox.start(request),
      fault: () => (request.arguments.includes(".offstage/setup") ? { why: "it is gone", passes: true } : null),
    }),
  };
  for (const broken of [away, lost]) {
    await expect(setUp(attempt, { ...services, sandbox: broken }, workspace.missingSetups)).rejects.toMatchObject({
      code: "sandbox_unavailable",
      passing: true,
    });
    expect(await withoutSetup(attempt, services, workspace.environments)).toHaveLength(1);
  }
  await setUp(attempt, services, workspace.missingSetups);
  expect(await withoutSetup(attempt, services, workspace.environments)).toEqual([]);
});
