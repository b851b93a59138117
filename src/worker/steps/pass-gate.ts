import { randomBytes } from "node:crypto";
import { StringDecoder } from "node:string_decoder";
import { forwardOutput } from "../../agents/acp/forward-output.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import { cutMiddle } from "../../domain/fields/text.ts";
import type { Mask } from "../../domain/masking/mask.ts";
import { programText } from "../../programs/program-text.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import { recordGate } from "../../store/queue/gate.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { openSetupGateway, type GatewayServicesOfAttempt } from "../attempt/session-gateway.ts";
import { untilStored } from "../attempt/until-stored.ts";
import { writeHarnessFiles } from "../sandboxed/harness-files.ts";
import { requireSandbox } from "../sandboxed/require-sandbox.ts";
import { runInSandbox, type SandboxedEnd } from "../sandboxed/run-in-sandbox.ts";
import { setupVariables } from "../setup/apart.ts";
import { registrySettings } from "../setup/registry-settings.ts";
import type { RepositoryEnvironment } from "../setup/repository-environment.ts";
import { turnFoldersOf } from "./agent/turn.ts";
import type { Workspace } from "./prepare.ts";
import { settleGate } from "./settle-gate.ts";

/** Services of the worker for a gate. */
export type GateServices = Pick<AttemptServices, "folders" | "mirrors" | "sandbox" | "limits" | "setupLimitMs"> &
  Omit<GatewayServicesOfAttempt, "recordingsDirectory">;

/** The part of a session's workspace that a gate needs. */
type GatedWorkspace = Pick<Workspace, "clones" | "environments" | "origin">;

type Gate = NonNullable<ClaimedSession["gate"]>;

const scriptFile = ".offstage/gate";
const eventFile = ".offstage/event.json";
/** Characters of a gate's output that the agent gets. */
const outputLimit = 20_000;
/** Characters of it that are read; what comes after is dropped. */
const readLimit = 1_000_000;
/** Characters of its end that a reason, and the log of an event, have. */
const tailLength = 2_000;
/** From this exit code on it could not be run, or a signal ended it: no decision (POSIX, 2.8.2 Exit Status for Commands). */
const firstFault = 126;

/**
 * Runs the gate of the session's automation in its folders, as the agent will find them: with the hosts that its setups may reach,
 * no secret and no model. It gets the event as standard input, and as the file that `OFFSTAGE_EVENT` names. Its decision is recorded, and
 * it is not run again; what it changed in the clones is no part of the work.
 * @returns the gate as decided
 * @throws SessionError gate_failed if it decided nothing: it could not be run, took too long, used too much or was ended;
 *   sandbox_unavailable; agent_crashed if the gateway's process ended unexpectedly
 */
export async function passGate(
  attempt: Attempt,
  services: GateServices,
  gate: Gate,
  workspace: GatedWorkspace,
): Promise<Gate> {
  const { session, mask } = attempt;
  await requireSandbox(services);
  const ended = await runAndUndo(attempt, services, gate, workspace);
  const output = cutMiddle(mask.text(ended.output), outputLimit);
  const log = tailOf(mask, ended.log);
  const { code, failure } = ended;
  if (failure !== null || code === null) {
    await attempt.emit({ type: "gate.decided", data: { outcome: "failed", code, output, log } });
    throw gateFailed(
      failure ?? { text: "ended without an exit code", passing: true },
      tailOf(mask, `${output}\n${log}`),
    );
  }
  const outcome = code === 0 ? "passed" : "filtered";
  const tail = tailOf(mask, `${output}\n${log}`);
  const reason = `the gate ended with ${code}${tail === "" ? "" : `:\n${tail}`}`;
  const decision = { outcome, code, output, log, reason } as const;
  await untilStored(attempt, () => recordGate(services.database, session, decision));
  return { ...gate, outcome, output };
}

/** Runs the gate, and undoes what it did in the clones and the home, however it ended. */
async function runAndUndo(
  attempt: Attempt,
  services: GateServices,
  gate: Gate,
  { clones, environments, origin }: GatedWorkspace,
): Promise<GateEnd> {
  const { session, signal, logger } = attempt;
  const run = { ...services, signal };
  // Folders of an earlier attempt: a crash may have ended its gate, so that its changes were not undone.
  const before = await settleGate(run, session, clones, { before: null, undo: origin === "disk" });
  const undo = async (): Promise<void> => {
    try {
      await settleGate(run, session, clones, { before, undo: true });
    } catch (error) {
      // The next attempt makes them again.
      if (!signal.aborted) await services.folders.forget(session.sessionId);
      throw error;
    }
  };
  const ended = await runGate(attempt, services, gate, environments).catch(async (error: unknown) => {
    await undo().catch((problem: unknown) => logger.warn({ err: problem }, "could not undo what a gate did"));
    throw error;
  });
  if (ended.failure === null) await undo();
  else await undo().catch((problem: unknown) => logger.warn({ err: problem }, "could not undo what a gate did"));
  return ended;
}

/** Masked before it is cut, so that no part of a secret stays. */
function tailOf(mask: Mask, text: string): string {
  return mask.text(text).slice(-tailLength).trim();
}

/** Why a gate decided nothing. */
interface GateFailure {
  readonly text: string;
  /** Whether it passes by itself: the sandbox was ended, not the gate. */
  readonly passing: boolean;
}

interface GateEnd {
  /** Null if it did not end by itself. */
  readonly code: number | null;
  readonly output: string;
  readonly log: string;
  readonly failure: GateFailure | null;
}

async function runGate(
  attempt: Attempt,
  services: GateServices,
  { script }: Gate,
  environments: readonly RepositoryEnvironment[],
): Promise<GateEnd> {
  const { session } = attempt;
  const lost = new AbortController();
  const gateway = await openSetupGateway(attempt, services, session.repositories, (error) => lost.abort(error));
  try {
    const { sandbox, limits, setupLimitMs } = services;
    const { paths, visiblePaths, aliases, workingDirectory } = await turnFoldersOf(attempt, services, undefined);
    const { home } = visiblePaths;
    const installs = registrySettings(attempt.registries, gateway, home);
    const event = JSON.stringify(session.payload ?? {});
    const files = { ...installs.files, [scriptFile]: script, [eventFile]: event };
    await writeHarnessFiles(sandbox, { ...paths, signal: attempt.signal }, files);
    const mark = `gate-${randomBytes(12).toString("hex")}`;
    const variables: Record<string, string> = Object.assign(
      {},
      ...environments.toReversed().map((each) => each.variables),
    );
    const image = environments[0]?.image ?? null;
    const request = {
      command: "sh",
      arguments: ["-c", programText(import.meta.url, "run-gate.sh"), "sh", scriptFile, mark],
      environment: {
        ...installs.environment,
        ...setupVariables(home, variables, {}),
        OFFSTAGE_EVENT: `${home}/${eventFile}`,
      },
      workspace: paths.workspace,
      workingDirectory,
      home: paths.home,
      disk: paths.disk,
      readOnly: [...paths.readOnly, ...installs.readOnly],
      aliases,
      ...(image !== null && { image }),
      gateway: gateway.socket,
      limits,
    };
    const bounds = { limitMs: setupLimitMs, signal: AbortSignal.any([attempt.signal, lost.signal]) };
    const reader = createReader(attempt.mask);
    const end = await runInSandbox(sandbox, request, bounds, (child, over) => {
      child.stdin.end();
      return forwardOutput(child.stdout, reader.take, over);
    });
    if (end.thrown !== null) throw end.thrown.error;
    return readEnd(end, reader.text(), mark, setupLimitMs);
  } finally {
    await gateway.close();
  }
}

/** Collects the beginning of a program's output. */
function createReader(mask: Mask) {
  const decoder = new StringDecoder("utf8");
  let kept = "";
  let isCut = false;
  return {
    take(piece: Buffer): void {
      if (isCut) return;
      kept += decoder.write(piece);
      if (kept.length <= readLimit) return;
      isCut = true;
      kept = kept.slice(0, readLimit);
      // The cut may have left the beginning of a secret.
      kept = kept.slice(0, kept.length - mask.unfinished(kept));
    },
    text: () => (isCut ? `${kept}\n[… the rest was left out …]` : kept + decoder.end()),
  };
}

/** The outcome of a gate whose processes have ended. */
function readEnd(end: SandboxedEnd, output: string, mark: string, limitMs: number): GateEnd {
  const ownEnd = new RegExp(String.raw`(?:^|\n)${mark} (\d+)\s*$`, "u").exec(end.printed);
  const log = ownEnd === null ? end.printed : end.printed.slice(0, ownEnd.index);
  const code = ownEnd === null ? null : Number(ownEnd[1]);
  const failed = (text: string, passing = false): GateEnd => ({ code, output, log, failure: { text, passing } });
  if (end.timedOut) return failed(`took longer than ${Math.round(limitMs / 60_000)} minutes`);
  if (end.exceeded !== null) return failed(`used more ${end.exceeded} than its sandbox allows`);
  if (code === null) return failed("was ended from outside: its sandbox broke off", true);
  if (code > firstFault + 1) return failed(`ended with ${code}: something in it was killed, or broke`);
  if (code >= firstFault) return failed(`could not be run, or a command in it could not (exit code ${code})`);
  return { code, output, log, failure: null };
}

function gateFailed({ text, passing }: GateFailure, tail: string): SessionError {
  return new SessionError({
    code: "gate_failed",
    reason: `The automation's gate ${text}${tail === "" ? "." : `:\n${tail}`}`,
    retryable: true,
    passing,
    remedy:
      "Fix the automation's gate and trigger it again, or retry the session: it keeps the gate that it began with. To filter a run, a gate ends with a code from 1 to 125.",
  });
}
