import { join } from "node:path";
import { runTurn } from "../agents/acp.ts";
import type { HarnessLaunch, Provider, TurnResult } from "../agents/harness.ts";
import { RunError } from "../domain/errors.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { gatewayOrigin } from "../sandboxes/relay.ts";
import type { SandboxedProcess, SandboxRequest } from "../sandboxes/sandbox.ts";
import { completeMessage, nextMessage, saveHarness, transcript } from "../store/claims.ts";
import { chooseAgent } from "./choose-agent.ts";
import { writeHarnessFiles } from "./harness-files.ts";
import { firstPrompt, interruptedPrompt, transcriptText } from "./prompt.ts";
import type { Run } from "./run.ts";
import { openSessionGateway } from "./session-gateway.ts";
import { addressOf } from "./step-prepare.ts";
import { secretsFor, type RepositoryEnvironment } from "./step-setup.ts";

/** One turn for each message that is not done yet, in order. Null where all were done before a crash. */
export async function agentStep(run: Run, environments: readonly RepositoryEnvironment[]): Promise<TurnResult | null> {
  const { database } = run.dependencies;
  const variables = variablesOf(run, environments);
  let last: TurnResult | null = null;
  for (;;) {
    const message = await nextMessage(database, run.session);
    if (message === null) return last;
    last = await turn(run, message, variables);
    await completeMessage(database, run.session, message.id, run.mask.text(last.finalMessage));
  }
}

/** What the repositories' settings and secrets put into the agent's environment; the first repository's win. */
function variablesOf(run: Run, environments: readonly RepositoryEnvironment[]): Record<string, string> {
  const ofRepositories = environments.toReversed().map(({ repository, variables }) => ({
    ...variables,
    ...secretsFor(run, "agent", repository.id),
  }));
  return Object.assign({}, secretsFor(run, "agent", ""), ...ofRepositories) as Record<string, string>;
}

interface Message {
  readonly position: number;
  readonly text: string;
  readonly interrupted: boolean;
}

async function turn(run: Run, message: Message, variables: Record<string, string>): Promise<TurnResult> {
  await requireSandbox(run);
  const { provider, model } = await chooseAgent(run);
  const usedUp = new AbortController();
  const gateway = await openSessionGateway(run, (reason) => usedUp.abort(reason));
  const signal = AbortSignal.any([run.signal, usedUp.signal]);
  try {
    return await turnBehind(run, message, { provider, model, gateway, variables, signal });
  } finally {
    await gateway.close();
    // However the harness took the refusal: the turn is not over.
    run.signal.throwIfAborted();
    usedUp.signal.throwIfAborted();
  }
}

interface Behind {
  readonly provider: Provider;
  readonly model: string | null;
  readonly gateway: Gateway;
  readonly variables: Readonly<Record<string, string>>;
  /** Aborts when the run does, and when nothing is left to spend. */
  readonly signal: AbortSignal;
}

async function turnBehind(run: Run, message: Message, behind: Behind): Promise<TurnResult> {
  const { provider, model, gateway } = behind;
  const { dependencies, session } = run;
  const folders = foldersOf(run);
  const launch = provider.launch({ model, home: folders.home, models: gateway.modelsAt(gatewayOrigin) });
  await writeHarnessFiles(dependencies.sandbox, { ...folders, signal: run.signal }, launch.files);

  const aliases = await dependencies.workspaces.aliases(session.sessionId);
  const text = message.interrupted ? interruptedPrompt(message.text) : message.text;
  // Another provider's session means nothing to this one.
  const resume = harnessOf(run)?.provider === provider.id ? (harnessOf(run)?.sessionId ?? null) : null;
  return runTurn({
    provider,
    model,
    launch,
    start: (wanted, ended) =>
      startHarness(run, wanted, { ...behind, aliases, signal: AbortSignal.any([behind.signal, ended]) }),
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
    signal: behind.signal,
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

function startHarness(
  run: Run,
  launch: HarnessLaunch,
  { gateway, variables, aliases, signal }: Behind & Required<Pick<SandboxRequest, "aliases" | "signal">>,
): SandboxedProcess {
  const folders = foldersOf(run);
  return run.dependencies.sandbox.start({
    command: launch.command,
    arguments: launch.arguments,
    environment: { HOME: folders.home, LANG: "C.UTF-8", TERM: "dumb", ...variables, ...launch.environment },
    workspace: folders.workspace,
    workingDirectory: workingDirectory(run),
    home: folders.home,
    readOnly: [...launch.readOnly, ...folders.readOnly],
    aliases,
    gateway: gateway.socket,
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
