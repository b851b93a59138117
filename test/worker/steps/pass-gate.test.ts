import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SandboxedProcess } from "../../../src/sandboxes/sandbox.ts";
import { readClaimed } from "../../../src/store/queue/claims.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { passGate, type GateServices } from "../../../src/worker/steps/pass-gate.ts";
import { withoutAgents } from "./step-actions.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let folder: string;
let services: StepServices & GateServices;

beforeEach(async () => {
  world = await createStepWorld(["a-sealed-value-0815"]);
  // Short, since it holds sockets.
  folder = await mkdtemp(join(tmpdir(), "o-"));
  services = {
    ...withoutAgents(world.worker("one")),
    setupLimitMs: 60_000,
    socketDirectory: join(folder, "run"),
  };
});

afterEach(async () => {
  await world.close();
  await rm(folder, { recursive: true, force: true });
});

/** Runs a session's gate. */
async function pass(attempt: Attempt, given: GateServices = services, prepare?: (clone: string) => Promise<void>) {
  const session = await readClaimed(world.database.pool, attempt.session);
  if (session.gate === null) throw new Error("the session has no gate");
  const workspace = await prepareWorkspace(attempt, services);
  await prepare?.(cloneOf(attempt));
  return passGate({ ...attempt, session }, given, session.gate, workspace);
}

const cloneOf = ({ session }: Attempt): string =>
  join(services.folders.pathsOf(session.sessionId).workspace, session.repositories[0]?.directory ?? ".");
const git = (clone: string, ...parameters: string[]): string =>
  execFileSync("git", ["-C", clone, ...parameters], { encoding: "utf8" }).trim();
/** What a gate may do to a clone, and what of it git then shows. */
const state = (clone: string) => ({
  branch: git(clone, "rev-parse", "--abbrev-ref", "HEAD"),
  head: git(clone, "rev-parse", "HEAD"),
  status: git(clone, "status", "--porcelain"),
});
const commit = "git -c user.name=G -c user.email=g@example.com commit -q --allow-empty";

test.each([
  ["commits on the branch", `echo x > made.txt; git add made.txt; ${commit} -m Gate`],
  ["checks out another commit", `${commit} -m One; git checkout -q HEAD~1`],
  ["makes another branch", `git checkout -q -b other; ${commit} -m Other`],
  [
    "changes and deletes files",
    "echo x >> README.md; mkdir -p a/b; echo x > a/b/c; git add a; echo y > made.txt; rm README.md",
  ],
  [
    "hides files from git",
    "echo report.md >> .git/info/exclude; git config core.excludesFile /dev/null; echo x > .gitignore",
  ],
  ["leaves a rebase and a lock", `${commit} -m One; git rebase -q --exec false HEAD~1 || touch .git/index.lock`],
])("what a gate that %s did in the clone is undone", async (_, gate) => {
  const attempt = await world.begin({
    gate: `cd "$(dirname "$(find . -name README.md)")"\n${gate}\nexit 0`,
    payload: {},
  });
  let before: unknown = null;
  const prepare = async (made: string): Promise<void> => {
    await writeFile(join(made, "mine.txt"), "of before");
    before = state(made);
  };
  const clone = cloneOf(attempt);
  expect(await pass(attempt, services, prepare)).toMatchObject({ outcome: "passed" });
  expect(state(clone)).toEqual(before);
  expect(await readFile(join(clone, "README.md"), "utf8")).toBe("An app\n");
  // What an agent makes later under the same names is part of the work.
  for (const name of ["made.txt", "report.md"]) await writeFile(join(clone, name), "of the agent");
  const shown = git(clone, "status", "--porcelain");
  expect(shown).toContain("?? made.txt");
  expect(shown).toContain("?? report.md");
});

test.each([
  ["is killed", "kill -9 $$", 60_000],
  ["takes too long", "sleep 300", 1_500],
])("nothing stays for the retry of a gate that %s", async (_, end, setupLimitMs) => {
  const gate = `echo x > made.txt; ${commit} -m Gate || true; test -e "$OFFSTAGE_EVENT"; ${end}`;
  const attempt = await world.begin({ gate, payload: { word: "private" } });
  let before: unknown = null;
  const prepare = (made: string): Promise<void> => {
    before = state(made);
    return Promise.resolve();
  };
  await expect(pass(attempt, { ...services, setupLimitMs }, prepare)).rejects.toMatchObject({ code: "gate_failed" });
  expect(state(cloneOf(attempt))).toEqual(before);
  const { home } = services.folders.pathsOf(attempt.session.sessionId);
  expect(existsSync(home)).toBe(true);
  expect(existsSync(join(home, ".offstage/event.json"))).toBe(false);
});

test("what a gate left whose worker died is undone before it runs again", async () => {
  const attempt = await world.begin({ gate: "test ! -e app/made.txt && test ! -e made.txt", payload: {} });
  await prepareWorkspace(attempt, services);
  await writeFile(join(cloneOf(attempt), "made.txt"), "of the dead gate");
  git(
    cloneOf(attempt),
    "-c",
    "user.name=G",
    "-c",
    "user.email=g@example.com",
    "commit",
    "-q",
    "--allow-empty",
    "-m",
    "Gate",
  );
  const later = await world.again(attempt, "one");
  expect(await pass(later)).toMatchObject({ outcome: "passed" });
  expect(git(cloneOf(later), "log", "--format=%s")).not.toContain("Gate");
});

test("the decision and the masked output are kept, so that another worker need not run it again", async () => {
  const attempt = await world.begin({ gate: "echo a-sealed-value-0815 and more", payload: {} });
  const kept = { outcome: "passed", output: "[secret] and more\n" };
  expect(await pass(attempt)).toMatchObject(kept);
  const { session } = await world.again(attempt, "two");
  expect(session.gate).toMatchObject(kept);
});

test("a run that is filtered asks its agent nothing, also if its worker dies before the session has ended", async () => {
  const attempt = await world.begin({ gate: "exit 7", payload: {} });
  expect(await pass(attempt)).toMatchObject({ outcome: "filtered" });
  const { session } = await world.again(attempt, "two");
  expect(session.gate).toMatchObject({ outcome: "filtered" });
  const { rows } = await world.database.pool.query("select status from message");
  expect(rows).toEqual([{ status: "done" }]);
});

test("is ended at its time limit, and may be run again by a retry", async () => {
  const attempt = await world.begin({ gate: "echo begun; sleep 300", payload: {} });
  await expect(pass(attempt, { ...services, setupLimitMs: 1_000 })).rejects.toMatchObject({
    code: "gate_failed",
    passing: false,
    retryable: true,
    message: expect.stringMatching(/took longer than[^]*begun/u) as string,
  });
  expect((await world.again(attempt, "two")).session.gate).toMatchObject({ outcome: null });
});

test("that its sandbox breaks off passes by itself, whatever code it ends with", async () => {
  // As an engine of containers does that is restarted: every process is gone, without a reason.
  const { sandbox } = services;
  let gate: SandboxedProcess | null = null;
  const breaking: GateServices = {
    ...services,
    sandbox: {
      ...sandbox,
      start(request) {
        const started = sandbox.start(request);
        if (request.environment["OFFSTAGE_EVENT"] === undefined) return started;
        gate = started;
        setTimeout(() => started.kill(), 500);
        return started;
      },
    },
  };
  const attempt = await world.begin({ gate: "sleep 300", payload: {} });
  await expect(pass(attempt, breaking)).rejects.toMatchObject({ code: "gate_failed", passing: true });
  expect(gate).not.toBeNull();
  // It decided nothing: another attempt runs it, and it may pass.
  expect((await world.again(attempt, "one")).session.gate).toMatchObject({ outcome: null });
});

test("a worker that lost the session records nothing", async () => {
  const attempt = await world.begin({ gate: "exit 0", payload: {} });
  const later = await world.again(attempt, "two");
  await expect(pass(attempt)).rejects.toThrow("was lost");
  const { gate } = await readClaimed(world.database.pool, later.session);
  expect(gate).toMatchObject({ outcome: null });
});
