import { mkdir } from "node:fs/promises";
import { SessionError } from "../../domain/errors/errors.ts";
import type { Exceeded, ResourceLimits, Sandbox, SandboxedProcess, SandboxRequest } from "../../sandboxes/sandbox.ts";
import { sandboxGitVariables } from "../git/git.ts";
import { runInSandbox } from "./run-in-sandbox.ts";

/** Folders and image that a command in the sandbox sees. */
export type SandboxFolders = Pick<
  SandboxRequest,
  "workspace" | "workingDirectory" | "home" | "disk" | "readOnly" | "image"
>;
/** A command of Offstage's to run in the sandbox. */
export type SandboxCommand = Pick<SandboxRequest, "command" | "arguments"> &
  Partial<Pick<SandboxRequest, "environment">>;

/** The sandbox that a command runs in, its limits, and what ends it early. */
export interface SandboxedRun {
  readonly sandbox: Sandbox;
  readonly limits: ResourceLimits;
  readonly signal: AbortSignal;
}

/** Bound on a command: files that an agent left may make git wait for ever. */
const limitMs = 30 * 60_000;

/**
 * Runs a command of Offstage's among a session's files. It runs inside the sandbox, so that no link or setting of the
 * agent's leads outside. It has no network and no secrets.
 * @param use reads the command's stdout, and writes its stdin
 * @returns the end of its stderr
 * @throws SessionError resources_exhausted if it exceeds a limit; Error with the end of its stderr if it fails otherwise, or what
 *   `use` throws; the reason of the attempt's signal
 */
export async function runCommand(
  { sandbox, limits, signal }: SandboxedRun,
  folders: SandboxFolders,
  command: SandboxCommand,
  use: (child: SandboxedProcess) => Promise<void> | void,
): Promise<string> {
  await mkdir(folders.home, { recursive: true });
  const environment = { ...sandboxGitVariables(folders.home), ...command.environment };
  const request = { ...folders, ...command, environment, limits };
  const { code, exceeded, printed, thrown } = await runInSandbox(sandbox, request, { limitMs, signal }, use);
  if (code === 0 && thrown === null) return printed;
  // A command that was ended at a limit breaks whatever reads it; the limit is the reason to report.
  if (exceeded !== null) throw tooMuch(exceeded);
  if (thrown !== null) throw thrown.error;
  throw new Error(`a command in the folder ended with ${code}: ${printed.trim().slice(-500)}`);
}

function tooMuch(exceeded: Exceeded): SessionError {
  return new SessionError({
    code: "resources_exhausted",
    reason: `The session's files could not be copied into or out of the sandbox: that used more ${exceeded} than a sandbox may.`,
    retryable: false,
    remedy:
      "Raise OFFSTAGE_SANDBOX_MEMORY_MB, OFFSTAGE_SANDBOX_PROCESSES, OFFSTAGE_SANDBOX_DISK_MB or OFFSTAGE_SANDBOX_FILES, or start a new session with less in its folders.",
  });
}
