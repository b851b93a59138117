import { ConflictError, NotFoundError } from "../domain/errors.ts";
import type { NewEvent } from "../domain/event.ts";
import { openGateway } from "../gateway/gateway.ts";
import { readRecording, type Exchange } from "../gateway/models/recording.ts";
import { createReplay } from "../gateway/models/replay.ts";
import { readRecordedSession, type RecordedSession } from "../store/checkpoints/recorded-session.ts";
import { beginRun, secretsOf, type Run, type RunDependencies } from "./attempt/run.ts";
import { recordingFile } from "./attempt/session-gateway.ts";
import { workspaceRepository } from "./attempt/session-repositories.ts";
import { readEnvironments } from "./setup/repository-environment.ts";
import { agentTurn, variablesOf, type AgentTurn } from "./steps/agent-turn.ts";
import { requireSandbox } from "./steps/agent.ts";
import { chooseAgent } from "./steps/choose-agent.ts";
import { firstPrompt, transcriptText } from "./steps/prompt.ts";
import { setupStep, withoutSetup } from "./steps/setup.ts";

/** What a replay found; both parts are empty or 0 if it repeated the session exactly. */
export interface ReplayResult {
  /** Names of the repositories whose diff differs from the session's. */
  readonly different: readonly string[];
  /** Number of recorded model answers that no request asked for. */
  readonly unused: number;
}

/**
 * Repeats a recorded session: the same commits, the same agent, and the recorded answers of the models. It stores and pushes
 * nothing and calls no model or forge. It works in folders of its own, which the agent sees at the paths of the session's
 * folders.
 * @param dependencies with the directory of the recordings
 * @param options.onEvent receives each event, masked, instead of the database
 * @throws NotFoundError if the session was not recorded, or the commits that it started from are gone
 * @throws ConflictError if the sandbox does not isolate: its folders could not have the session's paths
 * @throws RunError if a turn fails, with the failure that the session itself would have
 */
export async function replaySession(
  dependencies: RunDependencies & { readonly recordingsDirectory: string },
  session: { readonly organizationId: string; readonly id: string },
  options: { readonly onEvent: (event: NewEvent) => void; readonly signal: AbortSignal },
): Promise<ReplayResult> {
  const original = await readRecordedSession(dependencies.database, session.organizationId, session.id);
  const recording = await recordingOf(recordingFile(dependencies.recordingsDirectory, session.id), session.id);
  if (!dependencies.sandbox.isolates) {
    throw new ConflictError(
      "a replay needs a sandbox, so that its folders have the session's paths: set OFFSTAGE_SANDBOX to bubblewrap or container",
    );
  }
  const again = { ...original.session, sessionId: `replay-${crypto.randomUUID()}` };
  const secrets = await secretsOf(dependencies, again);
  const run: Run = {
    ...beginRun(dependencies, again, options.signal, secrets),
    emit: (event) => Promise.resolve(options.onEvent(run.mask.event(event))),
  };
  try {
    await requireSandbox(run);
    return await replay(run, original, recording);
  } finally {
    await dependencies.workspaces.remove(again.sessionId);
  }
}

async function recordingOf(file: string, id: string): Promise<Exchange[]> {
  try {
    return await readRecording(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new NotFoundError(
      `session ${id} was not recorded: start the server with OFFSTAGE_RECORD=true before it runs`,
    );
  }
}

async function replay(run: Run, original: RecordedSession, recording: readonly Exchange[]): Promise<ReplayResult> {
  const { workspaces, models, modelPermits, socketDirectory } = run.dependencies;
  const repositories = run.session.repositories.map((repository) => workspaceRepository(run, repository));
  const { sessionId } = original.session;
  const prepared = await workspaces.prepareAgain(sessionId, run.session.sessionId, repositories, run.signal);
  const environments = await readEnvironments(run, prepared);
  const missing = await withoutSetup(run, environments);
  if (missing.length > 0) await setupStep(run, missing);

  const answers = createReplay(recording);
  const gateway = await openGateway({
    directory: socketDirectory,
    models,
    egress: { open: false, rules: [] },
    onRefused: (refusal) => void run.emit({ type: "egress.refused", data: refusal }),
    permits: modelPermits,
    answers: answers.gateway,
  });
  try {
    await takeTurns(run, original, {
      gateway,
      variables: variablesOf(run, environments),
      image: environments[0]?.image ?? null,
    });
  } finally {
    await gateway.close();
  }
  const collected = await workspaces.collect({
    sessionId: run.session.sessionId,
    repositories,
    message: run.session.title,
    coAuthor: null,
    signal: run.signal,
  });
  const different = run.session.repositories.filter(
    (_, index) => run.mask.text(collected[index]?.patch ?? "") !== (original.patches[index] ?? ""),
  );
  return { different: different.map(({ name }) => name), unused: answers.left() };
}

async function takeTurns(
  run: Run,
  original: RecordedSession,
  environment: Pick<AgentTurn, "gateway" | "variables" | "image">,
): Promise<void> {
  const { provider, model } = await chooseAgent(run);
  const said: { from: "user" | "agent"; text: string }[] = [];
  let resume: string | null = null;
  for (const [index, message] of original.messages.entries()) {
    const { finalMessage } = await agentTurn(run, {
      provider,
      model,
      ...environment,
      message: index === 0 ? firstPrompt(run.session, message) : message,
      transcript: transcriptText(said),
      resume,
      onSession: (id) => Promise.resolve(void (resume = id)),
      // The recorded answers name files by the paths of the original session.
      seenAt: run.dependencies.workspaces.folders(original.session.sessionId, []),
      signal: run.signal,
    });
    said.push({ from: "user", text: message }, { from: "agent", text: finalMessage });
  }
}
