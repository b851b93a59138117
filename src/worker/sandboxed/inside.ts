import { mkdir } from "node:fs/promises";
import { RunError } from "../../domain/errors.ts";
import type { Exceeded, Limits, Sandbox, SandboxedProcess, SandboxRequest } from "../../sandboxes/sandbox.ts";
import { insideVariables } from "../git/git.ts";
import { tailOf } from "./tail.ts";

export type InsidePlace = Pick<
  SandboxRequest,
  "workspace" | "workingDirectory" | "home" | "disk" | "readOnly" | "image"
>;
export type InsideCommand = Pick<SandboxRequest, "command" | "arguments"> &
  Partial<Pick<SandboxRequest, "environment">>;

/** Of a run, what a command needs that works among its session's files. */
export interface InsideRun {
  readonly dependencies: { readonly sandbox: Sandbox; readonly limits: Limits };
  readonly signal: AbortSignal;
}

/** What an agent left may make git wait for ever. */
const limitMs = 30 * 60_000;

/**
 * Runs a command of ours among a session's files. It is done inside the sandbox, where a link or a setting that the agent
 * left leads nowhere else. Nothing but files is needed: there is no network, and no secret.
 * @param use reads what it writes, and writes what it reads
 * @returns what it said on stderr
 * @throws RunError resources_exhausted; Error with the end of what it said if it does not end well otherwise
 */
export async function inside(
  run: InsideRun,
  place: InsidePlace,
  command: InsideCommand,
  use: (child: SandboxedProcess) => Promise<void> | void,
): Promise<string> {
  await mkdir(place.home, { recursive: true });
  const child = run.dependencies.sandbox.start({
    ...place,
    ...command,
    environment: { ...insideVariables(place.home), ...command.environment },
    limits: run.dependencies.limits,
    signal: AbortSignal.any([run.signal, AbortSignal.timeout(limitMs)]),
  });
  try {
    const [said] = await Promise.all([tailOf(child.stderr), use(child)]);
    const { code } = await child.exited;
    run.signal.throwIfAborted();
    if (code !== 0) throw new Error(`a command in the folder ended with ${code}: ${said.trim().slice(-500)}`);
    return said;
  } catch (error) {
    // What was ended for its bound breaks whatever it was read by: the bound is the reason.
    const exceeded = child.exceeded();
    throw exceeded === null || run.signal.aborted ? error : tooMuch(exceeded);
  } finally {
    child.stdin.end();
    child.kill();
    await child.exited;
  }
}

function tooMuch(exceeded: Exceeded): RunError {
  return new RunError({
    code: "resources_exhausted",
    reason: `The session's files could not be brought in or out: that used more ${exceeded} than a sandbox may.`,
    retryable: false,
    mend: "Raise OFFSTAGE_SANDBOX_MEMORY_MB, OFFSTAGE_SANDBOX_PROCESSES, OFFSTAGE_SANDBOX_DISK_MB or OFFSTAGE_SANDBOX_FILES, or start a new session with less in its folders.",
  });
}
