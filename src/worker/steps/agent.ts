import type { TurnResult } from "../../agents/harness.ts";
import { RunError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import { completeMessage, nextMessage, saveHarness, transcript } from "../../store/queue/progress.ts";
import type { Run } from "../attempt/run.ts";
import type { SafePoints } from "../attempt/safe-points.ts";
import { openSessionGateway } from "../attempt/session-gateway.ts";
import type { Checkpointer } from "../checkpoints/checkpoint.ts";
import type { RepositoryEnvironment } from "../setup/repository-environment.ts";
import { agentTurn, variablesOf, type AgentTurn } from "./agent-turn.ts";
import { chooseAgent } from "./choose-agent.ts";
import { firstPrompt, interruptedPrompt, transcriptText } from "./prompt.ts";

/** What the agent step needs. */
export interface AgentStep {
  readonly environments: readonly RepositoryEnvironment[];
  /** Where the work so far comes from. */
  readonly from: "disk" | "checkpoint" | "remote";
  readonly checkpointer: Checkpointer;
  readonly safePoints: SafePoints;
}

/**
 * Runs one turn for each message that is not answered yet, in order.
 * @returns the last turn; null if an earlier attempt had answered all messages
 * @throws RunError if a turn fails, BudgetUsedUp if the budget does
 */
export async function agentStep(run: Run, agent: AgentStep): Promise<TurnResult | null> {
  const { environments, from, checkpointer } = agent;
  const { database } = run.dependencies;
  const variables = variablesOf(run, environments);
  let last: TurnResult | null = null;
  for (;;) {
    const message = await nextMessage(database, run.session);
    if (message === null) return last;
    const text = message.interrupted ? interruptedPrompt(message.text, from) : message.text;
    const environment = { variables, image: environments[0]?.image ?? null };
    last = await turn(run, { ...message, text }, environment, agent);
    // Store the harness's memory first: a completed turn is never repeated.
    const isKept = await checkpointer.take();
    await completeMessage(database, run.session, message.id, { answer: run.mask.text(last.finalMessage), isKept });
  }
}

interface Message {
  readonly position: number;
  readonly text: string;
}

async function turn(
  run: Run,
  message: Message,
  environment: Pick<AgentTurn, "variables" | "image">,
  { checkpointer, safePoints }: AgentStep,
): Promise<TurnResult> {
  const { dependencies, session } = run;
  await requireSandbox(run);
  const { provider, model } = await chooseAgent(run);
  const over = new AbortController();
  const gateway = await openSessionGateway(run, (reason) => over.abort(reason));
  const { text } = message;
  checkpointer.follow(provider);
  const emit = async (event: NewEvent): Promise<void> => {
    await run.emit(event);
    checkpointer.hear(event);
    safePoints.hear(event);
  };
  const known = harnesses.get(session) ?? session.harness;
  try {
    return await agentTurn(
      { ...run, emit },
      {
        provider,
        model,
        gateway,
        ...environment,
        // The first message may have been cancelled before an agent got it.
        message: message.position === 1 || known == null ? firstPrompt(session, text) : text,
        transcript: transcriptText(await transcript(dependencies.database, session)),
        // Another provider can't load this session.
        resume: known?.provider === provider.id ? known.sessionId : null,
        onSession: async (sessionId) => {
          const harness = { provider: provider.id, sessionId };
          harnesses.set(session, harness);
          await saveHarness(dependencies.database, session, harness);
        },
        signal: AbortSignal.any([run.signal, over.signal]),
      },
    );
  } finally {
    await gateway.close();
    // The harness may end normally after a refused request; the turn is not done all the same.
    run.signal.throwIfAborted();
    over.signal.throwIfAborted();
  }
}

/** The harness's session after the last turn of this attempt; the claim has that of its start. */
const harnesses = new WeakMap<object, { provider: string; sessionId: string }>();

/** Checks that the sandbox works on this machine. @throws RunError sandbox_unavailable if it does not */
export async function requireSandbox({ dependencies: { sandbox } }: Run): Promise<void> {
  const problem = await sandbox.check();
  if (problem !== null) {
    throw new RunError({
      code: "sandbox_unavailable",
      reason: `Agents can't be sandboxed on this server: ${problem}`,
      retryable: true,
      mend: "Fix this and retry, or start the server with `--sandbox none` to run agents without isolation.",
    });
  }
}
