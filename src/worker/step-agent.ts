import { join } from "node:path";
import { runTurn } from "../agents/acp.ts";
import type { HarnessLaunch, Provider, TurnResult } from "../agents/harness.ts";
import { parseEgressRule } from "../domain/egress.ts";
import { RunError } from "../domain/errors.ts";
import type { NewEvent } from "../domain/event.ts";
import { openGateway, type Gateway } from "../gateway/gateway.ts";
import { gatewayOrigin } from "../sandboxes/relay.ts";
import type { SandboxedProcess } from "../sandboxes/sandbox.ts";
import { completeMessage, nextMessage, saveHarness, transcript } from "../store/claims.ts";
import { chooseAgent } from "./choose-agent.ts";
import { writeHarnessFiles } from "./harness-files.ts";
import { firstPrompt, interruptedPrompt, transcriptText } from "./prompt.ts";
import type { Run } from "./run.ts";
import { addressOf } from "./step-prepare.ts";

/** One turn for each message that is not done yet, in order. Null where all were done before a crash. */
export async function agentStep(run: Run): Promise<TurnResult | null> {
  const { database } = run.dependencies;
  let last: TurnResult | null = null;
  for (;;) {
    const message = await nextMessage(database, run.session);
    if (message === null) return last;
    last = await turn(run, message);
    await completeMessage(database, run.session, message.id, run.mask.text(last.finalMessage));
  }
}

interface Message {
  readonly position: number;
  readonly text: string;
  readonly interrupted: boolean;
}

async function turn(run: Run, message: Message): Promise<TurnResult> {
  await requireSandbox(run);
  const { provider, model } = await chooseAgent(run);
  const gateway = await openSessionGateway(run);
  try {
    return await turnBehind(run, message, { provider, model, gateway });
  } finally {
    await gateway.close();
  }
}

interface Behind {
  readonly provider: Provider;
  readonly model: string | null;
  readonly gateway: Gateway;
}

async function turnBehind(run: Run, message: Message, { provider, model, gateway }: Behind): Promise<TurnResult> {
  const { dependencies, session } = run;
  const folders = foldersOf(run);
  const launch = provider.launch({ model, home: folders.home, models: gateway.modelsAt(gatewayOrigin) });
  await writeHarnessFiles(dependencies.sandbox, { ...folders, signal: run.signal }, launch.files);

  const text = message.interrupted ? interruptedPrompt(message.text) : message.text;
  // Another provider's session means nothing to this one.
  const resume = harnessOf(run)?.provider === provider.id ? (harnessOf(run)?.sessionId ?? null) : null;
  return runTurn({
    provider,
    model,
    launch,
    start: (wanted, signal) => startHarness(run, wanted, gateway.socket, signal),
    workingDirectory: workingDirectory(run),
    resume,
    message: message.position === 1 ? firstPrompt(session, text) : text,
    transcript: transcriptText(await transcript(dependencies.database, session)),
    emit: run.emit,
    onSession: async (sessionId) => {
      const harness = { provider: provider.id, sessionId };
      harnesses.set(session, harness);
      await saveHarness(dependencies.database, session, harness);
    },
    stallMs: dependencies.stallMs,
    limitMs: dependencies.turnLimitMs,
    permission: dependencies.permissions,
    mask: run.mask,
    traffic: gateway.traffic,
    signal: run.signal,
  });
}

/** Hosts of which one turn tells; a program that tries again and again is told of once. */
const refusalLimit = 50;

/** The way out of this turn's sandbox: what the server allows, and what was allowed for the session's repositories. */
function openSessionGateway(run: Run): Promise<Gateway> {
  const { models, egress, socketDirectory, logger } = run.dependencies;
  const rules = run.session.repositories.flatMap(({ egress: allowed }) => allowed.map(parseEgressRule));
  const told = new Set<string>();
  /** Told beside the turn: where the lease was lost, the turn's own events find out. */
  const tell = (event: NewEvent): void => {
    run.emit(event).catch((error: unknown) => logger.debug({ err: error }, "could not tell what the gateway saw"));
  };
  return openGateway({
    directory: socketDirectory,
    models,
    egress: { ...egress, rules: [...egress.rules, ...rules.filter((rule) => rule !== null)] },
    onRefused(refusal) {
      const place = `${refusal.host}:${refusal.port}`;
      if (told.has(place) || told.size >= refusalLimit) return;
      told.add(place);
      tell({ type: "egress.refused", data: refusal });
    },
    onUsage: (maker, usage) => tell({ type: "model.usage", data: { provider: maker, ...usage } }),
  });
}

/** The harness's session as of the last turn of this run, which the claim does not know yet. */
const harnesses = new WeakMap<object, { provider: string; sessionId: string }>();
function harnessOf(run: Run): { provider: string; sessionId: string } | null {
  return harnesses.get(run.session) ?? run.session.harness;
}

/** With one repository the agent starts inside it; with more, in the folder that holds them. */
function workingDirectory(run: Run): string {
  const { workspace } = foldersOf(run);
  const [only, ...others] = run.session.repositories;
  return only === undefined || others.length > 0 ? workspace : join(workspace, only.directory);
}

function foldersOf(run: Run) {
  const urls = run.session.repositories.map((repository) => addressOf(repository).cloneUrl);
  return run.dependencies.workspaces.folders(run.session.sessionId, urls);
}

function startHarness(run: Run, launch: HarnessLaunch, gateway: string, signal: AbortSignal): SandboxedProcess {
  const folders = foldersOf(run);
  return run.dependencies.sandbox.start({
    command: launch.command,
    arguments: launch.arguments,
    environment: { HOME: folders.home, LANG: "C.UTF-8", TERM: "dumb", ...launch.environment },
    workspace: folders.workspace,
    workingDirectory: workingDirectory(run),
    home: folders.home,
    readOnly: [...launch.readOnly, ...folders.readOnly],
    gateway,
    limits: run.dependencies.limits,
    signal,
  });
}

async function requireSandbox(run: Run): Promise<void> {
  const { sandbox } = run.dependencies;
  const problem = await sandbox.check();
  if (problem !== null) {
    throw new RunError({
      code: "sandbox_unavailable",
      reason: `Agents can't be sandboxed on this server: ${problem}`,
      retryable: true,
      mend: "Mend it and retry, or start the server with `--sandbox none` to run agents without isolation.",
    });
  }
}
