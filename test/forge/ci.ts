import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { bareOf } from "./commits.ts";
import { gitEnvironment, type CheckRun, type ForgeState, type Place } from "./state.ts";

const run = promisify(execFile);

/** Runs a repository's CI over a commit, if it has one. @returns null if it has none */
export async function runCi(state: ForgeState, place: Place, branch: string, sha: string): Promise<CheckRun | null> {
  const key = `${place.owner}/${place.name}`;
  const ci = state.ci.get(key);
  if (ci === undefined) return null;
  const folder = await mkdtemp(join(tmpdir(), "offstage-ci-"));
  try {
    await run("git", ["clone", "--quiet", "--no-checkout", bareOf(state, place), folder], { env: gitEnvironment });
    await run("git", ["-C", folder, "checkout", "--quiet", "--detach", sha], { env: gitEnvironment });
    const { code, printed } = await commandsIn(folder, ci.script);
    const id = 30 + 2 * ci.runs.length;
    const ended: CheckRun = { id, sha, branch, conclusion: code === 0 ? "success" : "failure" };
    ci.runs.push(ended);
    keepLog(state, place, id, printed);
    return ended;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Keeps what a run printed as the log of its one job, whose number is the next. */
export function keepLog(state: ForgeState, { owner, name }: Place, id: number, printed: string): void {
  const key = `${owner}/${name}`;
  const job = String(id + 1);
  const facts = state.facts.get(key) ?? {};
  const jobs = { ...facts.jobs, [String(id)]: [job] };
  state.facts.set(key, { ...facts, jobs, logs: { ...facts.logs, [job]: printed } });
}

function commandsIn(cwd: string, script: string): Promise<{ readonly code: number; readonly printed: string }> {
  return new Promise((resolve) => {
    execFile("sh", ["-ec", script], { cwd, env: gitEnvironment }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), printed: `${stdout}${stderr}` });
    });
  });
}
