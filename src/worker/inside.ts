import { mkdir } from "node:fs/promises";
import type { SandboxedProcess, SandboxRequest } from "../sandboxes/sandbox.ts";
import { insideVariables } from "./git.ts";
import type { Run } from "./run.ts";
import { tailOf } from "./tail.ts";

export type InsidePlace = Pick<SandboxRequest, "workspace" | "workingDirectory" | "home" | "readOnly" | "image">;
export type InsideCommand = Pick<SandboxRequest, "command" | "arguments"> &
  Partial<Pick<SandboxRequest, "environment">>;

/** What an agent left may make git wait for ever. */
const limitMs = 30 * 60_000;

/**
 * Runs a command of ours among a session's files. It is done inside the sandbox, where a link or a setting that the agent
 * left leads nowhere else. Nothing but files is needed: there is no network, and no secret.
 * @param use reads what it writes, and writes what it reads
 * @returns what it said on stderr
 * @throws Error with the end of that where it does not end well
 */
export async function inside(
  run: Run,
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
  } finally {
    child.stdin.end();
    child.kill();
    await child.exited;
  }
}
