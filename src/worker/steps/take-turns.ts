import type { TurnResult } from "../../agents/harness.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import {
  completeMessage,
  nextMessage,
  reopenMessages,
  saveHarness,
  saveWorkspaceWorker,
  transcript,
} from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import type { SafePoints } from "../attempt/safe-points.ts";
import { openSessionGateway, type GatewayServicesOfAttempt } from "../attempt/session-gateway.ts";
import type { Checkpointer } from "../checkpoints/checkpointer.ts";
import type { Clone } from "../clones/clone.ts";
import type { RepositoryEnvironment } from "../setup/repository-environment.ts";
import { agentTurn, variablesOf, type TurnServices } from "./agent-turn.ts";
import { chooseAgent } from "./choose-agent.ts";
import { firstPrompt, interruptedPrompt, transcriptText } from "./prompt.ts";

/** What the turns of an attempt share. */
export interface Turns {
  readonly clones: readonly Clone[];
  readonly environments: readonly RepositoryEnvironment[];
  /** Where the work so far comes from, for the prompt after an interruption. */
  readonly origin: "disk" | "checkpoint" | "remote";
  readonly checkpointer: Pick<Checkpointer, "follow" | "observe" | "take">;
  readonly safePoints: SafePoints;
}

type Services = TurnServices &
  GatewayServicesOfAttempt &
  Pick<AttemptServices, "workerId" | "database" | "providers" | "defaultAgent">;

type Harness = ClaimedSession["harness"];

/**
 * Runs one turn for each message that is not answered yet, in order.
 * @returns the agent's last message: of this attempt, or of an earlier one that had answered all; null if there is none
 * @throws SessionError if a turn fails, BudgetUsedUp if the budget does
 */
export async function takeTurns(attempt: Attempt, services: Services, turns: Turns): Promise<string | null> {
  const { database } = services;
  const { session, mask } = attempt;
  const { checkpointer, safePoints } = turns;
  await reopenLost(attempt, services, turns);
  // From here on this disk has the newest state of the session.
  await saveWorkspaceWorker(database, session, services.workerId);
  let answer = session.summary;
  let harness = session.harness;
  safePoints.enter();
  for (;;) {
    // A message that is marked as running counts as interrupted in the next attempt, so none is once this one is to end.
    attempt.signal.throwIfAborted();
    const message = await nextMessage(database, session);
    if (message === null) break;
    const text = message.interrupted ? interruptedPrompt(message.text, turns.origin) : message.text;
    const turn = await takeTurn(attempt, services, turns, { position: message.position, text, harness });
    harness = turn.harness;
    answer = turn.result.finalMessage;
    // Store the harness's memory first: a completed turn is never repeated.
    const isKept = await checkpointer.take();
    await completeMessage(database, session, message.id, { answer: mask.text(answer), isKept });
  }
  // The remaining steps are short: finishing them here costs less than handing the session over.
  safePoints.leave();
  return answer || null;
}

/** Asks the agent again what it had answered, if the changes that it made then are lost. */
async function reopenLost(
  { session }: Pick<Attempt, "session">,
  { database }: Pick<Services, "database">,
  { clones, origin }: Pick<Turns, "clones" | "origin">,
): Promise<void> {
  if (origin === "disk" || isOnRemote(clones)) return;
  await reopenMessages(database, session, origin === "checkpoint" ? "not kept" : "all");
}

/** Whether the clones start with everything that was exported from the session so far. */
function isOnRemote(clones: readonly Clone[]): boolean {
  return (
    clones.length > 0 &&
    clones.every(({ repository, headSha }) => {
      return repository.headSha !== null && [headSha, repository.baseSha].includes(repository.headSha);
    })
  );
}

interface Message {
  readonly position: number;
  readonly text: string;
  /** The harness's session that the last turn left; null if there was none. */
  readonly harness: Harness;
}

async function takeTurn(
  attempt: Attempt,
  services: Services,
  { clones, environments, checkpointer, safePoints }: Turns,
  message: Message,
): Promise<{ readonly result: TurnResult; readonly harness: Harness }> {
  const { database } = services;
  const { session } = attempt;
  await requireSandbox(services);
  const { provider, model, reasoning } = await chooseAgent(attempt, services);
  const over = new AbortController();
  const gateway = await openSessionGateway(attempt, services, (reason) => over.abort(reason));
  checkpointer.follow(provider);
  const emit = async (event: NewEvent): Promise<void> => {
    await attempt.emit(event);
    checkpointer.observe(event);
    safePoints.observe(event);
  };
  let { harness } = message;
  try {
    const result = await agentTurn({ ...attempt, emit }, services, {
      provider,
      model,
      reasoning,
      gateway,
      variables: variablesOf(attempt, environments),
      image: environments[0]?.image ?? null,
      // The first message may have been cancelled before an agent got it.
      message: message.position === 1 || harness === null ? firstPrompt(session, message.text, clones) : message.text,
      transcript: transcriptText(await transcript(database, session)),
      // Another provider can't load this session.
      resume: harness?.provider === provider.id ? harness.sessionId : null,
      onSession: async (sessionId) => {
        harness = { provider: provider.id, sessionId };
        await saveHarness(database, session, harness);
      },
      signal: AbortSignal.any([attempt.signal, over.signal]),
    });
    return { result, harness };
  } finally {
    await gateway.close();
    // The harness may end normally after a refused request; the turn is not done all the same.
    attempt.signal.throwIfAborted();
    over.signal.throwIfAborted();
  }
}

/** Checks that the sandbox works on this machine. @throws SessionError sandbox_unavailable if it does not */
export async function requireSandbox({ sandbox }: Pick<AttemptServices, "sandbox">): Promise<void> {
  const problem = await sandbox.check();
  if (problem !== null) {
    throw new SessionError({
      code: "sandbox_unavailable",
      reason: `Agents can't be sandboxed on this server: ${problem}`,
      retryable: true,
      // An engine of containers is another service, which may be restarting; a program that is missing does not come by itself.
      passing: sandbox.kind === "container",
      remedy: "Fix this and retry, or start the server with `--sandbox none` to run agents without isolation.",
    });
  }
}
