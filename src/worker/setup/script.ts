import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { StringDecoder } from "node:string_decoder";
import { forwardOutput } from "../../agents/acp/forward-output.ts";
import { messageOf, SessionError } from "../../domain/errors/errors.ts";
import { firstOf } from "../../domain/fields/text.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { programText } from "../../programs/program-text.ts";
import type { Exceeded, SandboxRequest } from "../../sandboxes/sandbox.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { openSetupGateway, type GatewayServicesOfAttempt } from "../attempt/session-gateway.ts";
import type { SessionRepository } from "../clones/clone.ts";
import type { Archives } from "../disk/environment-cache.ts";
import { limitBytes } from "../sandboxed/byte-limit.ts";
import { writeHarnessFiles } from "../sandboxed/harness-files.ts";
import { runCommand, type SandboxCommand, type SandboxedRun, type SandboxFolders } from "../sandboxed/run-command.ts";
import { runInSandbox } from "../sandboxed/run-in-sandbox.ts";
import { registrySettings } from "./registry-settings.ts";
import { createOutput } from "./output.ts";

type Services = Pick<AttemptServices, "sandbox" | "limits" | "setupLimitMs"> &
  Omit<GatewayServicesOfAttempt, "database" | "recordingsDirectory">;

/** Folders of a setup, the paths at which it sees them, and its environment. */
export type SetupFolders = SandboxFolders & Pick<SandboxRequest, "environment" | "aliases">;

/** How a setup script ended. */
export interface SetupResult {
  readonly code: number | null;
  /** The limit for which it was stopped; null if for none. */
  readonly exceeded: Exceeded | null;
  readonly timedOut: boolean;
  /** The end of its output, masked. */
  readonly tail: string;
}

const scriptFile = ".offstage/setup";
const namedFiles = 3;

interface ScriptRun {
  readonly folders: SetupFolders;
  readonly script: string;
  readonly repository: SessionRepository;
}

/**
 * Runs a repository's setup script in its sandbox with its own gateway, and emits its output as events.
 * @returns how it ended, also if it failed
 * @throws SessionError agent_crashed if the gateway's process ended unexpectedly; the reason of the attempt's signal
 */
export async function runRepositoryScript(attempt: Attempt, services: Services, run: ScriptRun): Promise<SetupResult> {
  const lost = new AbortController();
  const gateway = await openSetupGateway(attempt, services, [run.repository], (error) => lost.abort(error));
  try {
    return await runWithGateway(attempt, services, { gateway, lost: lost.signal }, run);
  } finally {
    await gateway.close();
  }
}

interface OpenGateway {
  readonly gateway: Gateway;
  /** Aborts if the gateway is lost; the reason is the SessionError. */
  readonly lost: AbortSignal;
}

async function runWithGateway(
  attempt: Attempt,
  { sandbox, limits, setupLimitMs }: Pick<Services, "sandbox" | "limits" | "setupLimitMs">,
  { gateway, lost }: OpenGateway,
  { folders, script, repository }: ScriptRun,
): Promise<SetupResult> {
  const home = folders.environment["HOME"] ?? folders.home;
  const installs = registrySettings(attempt.registries, gateway, home);
  const files = { ...installs.files, [scriptFile]: script };
  await writeHarnessFiles(sandbox, { ...folders, signal: attempt.signal }, files);
  const request = {
    ...folders,
    environment: { ...installs.environment, ...folders.environment },
    readOnly: [...folders.readOnly, ...installs.readOnly],
    command: "sh",
    arguments: ["-c", programText(import.meta.url, "run-script.sh"), "sh", scriptFile],
    gateway: gateway.socket,
    limits,
  };
  const bounds = { limitMs: setupLimitMs, signal: AbortSignal.any([attempt.signal, lost]) };
  const output = createOutput(attempt, repository);
  try {
    const { code, exceeded, timedOut, thrown } = await runInSandbox(sandbox, request, bounds, (child, over) => {
      child.stdin.end();
      const decoder = new StringDecoder("utf8");
      return forwardOutput(child.stdout, (piece) => output.take(decoder.write(piece)), over);
    }).catch((error: unknown) => {
      // The end of the attempt comes before that of its gateway.
      attempt.signal.throwIfAborted();
      throw error;
    });
    if (thrown !== null) throw thrown.error;
    await output.end(code === 0 && exceeded === null && !timedOut ? "completed" : "failed");
    return { code, exceeded, timedOut, tail: output.tail() };
  } finally {
    output.close();
  }
}

/** Whether a setup failed: by its exit code, a limit, or its time. */
export function hasFailed({ code, exceeded, timedOut }: SetupResult): boolean {
  return code !== 0 || exceeded !== null || timedOut;
}

/**
 * Removes a setup's changes to tracked files, and excludes its new files from git. To be called after a script has succeeded,
 * before its result is archived.
 */
export async function settleSetup(run: SandboxedRun, folders: SandboxFolders): Promise<void> {
  await runOnResult(run, folders, shell("settle.sh"), (child) => void child.stdout.resume());
}

/** Messages of GNU tar: its last line if it skipped files, and reasons other than an existing file in their place. */
const skippedFiles = /^tar: Exiting with failure status/mu;
const broken = /not recoverable|No space left|quota exceeded|Unexpected EOF/iu;

/**
 * Archives a setup's result. The archives are made inside the sandbox, so that nothing outside follows a link of the script's.
 * Both together may be as large as the session's disk limit, although they are outside that disk.
 * @throws Error if that fails or they exceed OFFSTAGE_SANDBOX_DISK_MB
 */
export async function archiveSetup(run: SandboxedRun, folders: SandboxFolders, archives: Archives): Promise<void> {
  let left = run.limits.diskBytes;
  const home = { command: "tar", arguments: ["--create", "--file=-", `--directory=${folders.home}`, "."] };
  for (const [command, file] of [
    [shell("archive-work.sh"), archives.work],
    [home, archives.home],
  ] as const) {
    await runOnResult(run, folders, command, (child) =>
      pipeline(child.stdout, limitBytes(left, "OFFSTAGE_SANDBOX_DISK_MB"), createWriteStream(file, { mode: 0o600 })),
    );
    left -= (await stat(file)).size;
  }
}

/**
 * Unpacks a setup's result into another clone and home. Files that can't be created, because the commit or an agent has a link
 * or a file in place of their folder, are skipped with a notice. Files that the clone's commit has otherwise than the result's get the
 * present time: a build tool that compares times would take what was built of the others for up to date.
 * @throws Error if an archive can't be unpacked
 */
export async function unpackSetup(
  { signal, emit }: Pick<Attempt, "signal" | "emit">,
  services: Pick<AttemptServices, "sandbox" | "limits">,
  folders: SandboxFolders,
  { name }: SessionRepository,
  { commit, ...archives }: Archives & { readonly commit: string },
): Promise<void> {
  for (const [program, file] of [
    ["unpack-work.sh", archives.work],
    ["unpack-home.sh", archives.home],
  ] as const) {
    const command = { ...shell(program), environment: { OFFSTAGE_MADE_OF: commit } };
    const output = await runOnResult({ ...services, signal }, folders, command, async (child) => {
      child.stdout.resume();
      await pipeline(createReadStream(file), child.stdin);
    });
    if (broken.test(output))
      throw new Error(`the result of a setup could not be unpacked: ${output.trim().slice(-500)}`);
    if (!skippedFiles.test(output)) continue;
    const files = output.split("\n").filter((line) => line.startsWith("tar: ") && !skippedFiles.test(line));
    const text = `Not all files that the setup of ${name} made could be added to what is there: ${firstOf(files, namedFiles, "; ")}`;
    await emit({ type: "notice", data: { level: "warning", text } });
  }
}

/** A shell program of this folder, as a command. */
function shell(program: string): SandboxCommand {
  return { command: "sh", arguments: ["-c", programText(import.meta.url, program)] };
}

/** Runs a command on the result of a setup. @throws SessionError of `runCommand`; Error that says so if it fails otherwise */
async function runOnResult(
  run: SandboxedRun,
  folders: SandboxFolders,
  command: SandboxCommand,
  use: Parameters<typeof runCommand>[3],
): Promise<string> {
  try {
    return await runCommand(run, folders, command, use);
  } catch (cause) {
    run.signal.throwIfAborted();
    // It has another reason, such as a limit or the sandbox's end.
    if (cause instanceof SessionError) throw cause;
    const reason = messageOf(cause);
    throw new Error(`the result of a setup could not be stored: ${reason}`, { cause });
  }
}
