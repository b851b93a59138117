import type { TurnResult } from "../agents/harness.ts";
import { RunError } from "../domain/errors.ts";
import { completeMessage, nextMessage, saveHarness, transcript } from "../store/claims.ts";
import { agentTurn, variablesOf, type AgentTurn } from "./agent-turn.ts";
import { chooseAgent } from "./choose-agent.ts";
import { firstPrompt, interruptedPrompt, transcriptText } from "./prompt.ts";
import type { Run } from "./run.ts";
import { openSessionGateway } from "./session-gateway.ts";
import type { RepositoryEnvironment } from "./step-setup.ts";

/** One turn for each message that is not done yet, in order. Null where all were done before a crash. */
export async function agentStep(run: Run, environments: readonly RepositoryEnvironment[]): Promise<TurnResult | null> {
  const { database } = run.dependencies;
  const variables = variablesOf(run, environments);
  let last: TurnResult | null = null;
  for (;;) {
    const message = await nextMessage(database, run.session);
    if (message === null) return last;
    last = await turn(run, message, { variables, image: environments[0]?.image ?? null });
    await completeMessage(database, run.session, message.id, run.mask.text(last.finalMessage));
  }
}

interface Message {
  readonly position: number;
  readonly text: string;
  readonly interrupted: boolean;
}

async function turn(
  run: Run,
  message: Message,
  environment: Pick<AgentTurn, "variables" | "image">,
): Promise<TurnResult> {
  const { dependencies, session } = run;
  await requireSandbox(run);
  const { provider, model } = await chooseAgent(run);
  const usedUp = new AbortController();
  const gateway = await openSessionGateway(run, (reason) => usedUp.abort(reason));
  const text = message.interrupted ? interruptedPrompt(message.text) : message.text;
  const known = harnesses.get(session) ?? session.harness;
  try {
    return await agentTurn(run, {
      provider,
      model,
      gateway,
      ...environment,
      message: message.position === 1 ? firstPrompt(session, text) : text,
      transcript: transcriptText(await transcript(dependencies.database, session)),
      // Another provider's session means nothing to this one.
      resume: known?.provider === provider.id ? known.sessionId : null,
      onSession: async (sessionId) => {
        const harness = { provider: provider.id, sessionId };
        harnesses.set(session, harness);
        await saveHarness(dependencies.database, session, harness);
      },
      signal: AbortSignal.any([run.signal, usedUp.signal]),
    });
  } finally {
    await gateway.close();
    // However the harness took the refusal: the turn is not over.
    run.signal.throwIfAborted();
    usedUp.signal.throwIfAborted();
  }
}

/** The harness's session as of the last turn of this run, which the claim does not know yet. */
const harnesses = new WeakMap<object, { provider: string; sessionId: string }>();

/** @throws RunError sandbox_unavailable */
export async function requireSandbox({ dependencies: { sandbox } }: Run): Promise<void> {
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
