import { join } from "node:path";
import { ConflictError, NotFoundError } from "../domain/errors/errors.ts";
import type { NewEvent } from "../domain/sessions/event.ts";
import { recordingName } from "../domain/sessions/recording.ts";
import { openGateway } from "../gateway/gateway.ts";
import { readRecording, type Exchange } from "../gateway/models/recording.ts";
import { createReplay } from "../gateway/models/replay.ts";
import { readRecordedSession, type RecordedSession } from "../store/checkpoints/recorded-session.ts";
import { beginAttempt, withSecrets, type Attempt, type AttemptServices } from "./attempt/attempt.ts";
import { withOwnForges } from "./attempt/own-forges.ts";
import { cloneSource } from "./attempt/session-repositories.ts";
import type { Clone } from "./clones/clone.ts";
import { makeClonesAgain } from "./clones/clones.ts";
import { removeSession } from "./clones/remove-session.ts";
import { requireSandbox } from "./sandboxed/require-sandbox.ts";
import { readEnvironments } from "./setup/repository-environment.ts";
import { agentTurn, variablesOf, type AgentTurn } from "./steps/agent/turn.ts";
import { chooseAgent } from "./steps/agent/choose.ts";
import { exportClones } from "./steps/commit/export-work.ts";
import { firstPrompt, transcriptText } from "./steps/agent/prompt.ts";
import { setUp, withoutSetup } from "./steps/set-up.ts";
import { offeredTools, toolServer } from "./tools/session-tools.ts";

/** The result of a replay; both parts are empty or 0 if it repeated the session exactly. */
export interface ReplayResult {
  /** Names of the repositories whose diff differs from the session's. */
  readonly different: readonly string[];
  /** Number of recorded model answers that no request asked for. */
  readonly unused: number;
}

/**
 * Repeats a recorded session: the same commits, the same agent, and the recorded answers of the models. It stores and
 * pushes nothing and calls no model or forge. It works in separate folders, which the agent sees at the paths of the
 * session's folders.
 * @param shared with the directory of the recordings
 * @param options.onEvent receives each event, masked, instead of the database
 * @throws NotFoundError if the session was not recorded, or the commits that it started from are gone
 * @throws ConflictError if the sandbox does not isolate: its folders could not have the session's paths
 * @throws SessionError if a turn fails, with the failure that the session itself would have
 */
export async function replaySession(
  shared: AttemptServices & { readonly recordingsDirectory: string },
  session: { readonly organizationId: string; readonly id: string },
  options: { readonly onEvent: (event: NewEvent) => void; readonly signal: AbortSignal },
): Promise<ReplayResult> {
  const services = await withOwnForges(shared, session);
  const original = await readRecordedSession(services.database, session.organizationId, session.id);
  const recording = await recordingOf(join(services.recordingsDirectory, recordingName(session.id)), session.id);
  if (!services.sandbox.isolates) {
    throw new ConflictError(
      "a replay needs a sandbox, so that its folders have the session's paths: set OFFSTAGE_SANDBOX to bubblewrap or container",
    );
  }
  const again = { ...original.session, sessionId: `replay-${crypto.randomUUID()}` };
  const begun = beginAttempt({ session: again, signal: options.signal, logger: services.logger }, services);
  const opened = await withSecrets(begun, services);
  const attempt: Attempt = {
    ...opened,
    emit: (event) => Promise.resolve(options.onEvent(opened.mask.event(event))),
  };
  try {
    await requireSandbox(services);
    return await replay(attempt, services, original, recording);
  } finally {
    await removeSession(services, again.sessionId);
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

async function replay(
  attempt: Attempt,
  services: AttemptServices,
  original: RecordedSession,
  recording: readonly Exchange[],
): Promise<ReplayResult> {
  const { session, signal, mask, emit } = attempt;
  const sources = session.repositories.map((repository) => cloneSource(attempt, services, repository));
  const request = { sessionId: session.sessionId, sources, signal };
  const clones = await makeClonesAgain(services, original.session.sessionId, request);
  const environments = await readEnvironments(attempt, services, clones);
  const missing = await withoutSetup(attempt, services, environments);
  if (missing.length > 0) await setUp(attempt, services, missing);

  const answers = createReplay(recording);
  const { list } = offeredTools(attempt, services);
  const call = () => Promise.resolve({ text: "this is a replay, which reads and changes no state", isError: true });
  const gateway = await openGateway({
    directory: services.socketDirectory,
    models: services.models,
    egress: { open: false, rules: [] },
    onRefused: (refusal) => void emit({ type: "egress.refused", data: refusal }),
    permits: services.modelPermits,
    tools: { list, call },
    answers: answers.gateway,
  });
  try {
    await replayTurns(attempt, services, original, clones, {
      gateway,
      toolServers: list.length === 0 ? [] : [toolServer(gateway)],
      variables: variablesOf(attempt, environments),
      image: environments[0]?.image ?? null,
    });
  } finally {
    await gateway.close();
  }
  const exported = await exportClones({ session, signal }, services, clones, { coAuthored: false });
  const different = exported.filter(({ clone, work }) => mask.text(work.patch) !== patchOf(original, clone));
  return { different: different.map(({ clone }) => clone.repository.name), unused: answers.left() };
}

/** @throws Error if the session has no such repository */
function patchOf({ patches }: Pick<RecordedSession, "patches">, { repository }: Clone): string {
  const patch = patches.get(repository.position);
  if (patch === undefined) throw new Error(`there is no repository ${repository.position} in the recorded session`);
  return patch;
}

async function replayTurns(
  attempt: Attempt,
  services: AttemptServices,
  original: RecordedSession,
  clones: readonly Clone[],
  environment: Pick<AgentTurn, "gateway" | "toolServers" | "variables" | "image">,
): Promise<void> {
  const { provider, model, reasoning } = await chooseAgent(attempt, services);
  const conversation: { from: "user" | "agent"; text: string }[] = [];
  let resume: string | null = null;
  for (const [index, message] of original.messages.entries()) {
    const { finalMessage } = await agentTurn(attempt, services, {
      provider,
      model,
      reasoning,
      ...environment,
      message: index === 0 ? firstPrompt(attempt.session, message, clones) : message,
      transcript: transcriptText(conversation),
      resume,
      onSession: (id) => Promise.resolve(void (resume = id)),
      // The recorded answers name files by the paths of the original session.
      visiblePaths: await services.folders.visiblePaths(original.session.sessionId),
      signal: attempt.signal,
    });
    conversation.push({ from: "user", text: message }, { from: "agent", text: finalMessage });
  }
}
