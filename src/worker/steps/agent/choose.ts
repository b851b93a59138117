import type { Provider } from "../../../agents/harness.ts";
import { splitAgentName } from "../../../domain/agents/agent.ts";
import { SessionError } from "../../../domain/errors/errors.ts";
import type { Attempt, AttemptServices } from "../../attempt/attempt.ts";

/**
 * The provider and model of a session's agent: its own choice, else the organization's default, else the server's.
 * @returns model, reasoning null: the harness chooses
 * @throws SessionError agent_unavailable if there is none, or it can't run on this server
 */
export async function chooseAgent(
  { session }: { readonly session: Pick<Attempt["session"], "agent" | "organization"> },
  { providers, defaultAgent }: Pick<AttemptServices, "providers" | "defaultAgent">,
): Promise<{ provider: Provider; model: string | null; reasoning: string | null }> {
  const name = session.agent ?? session.organization.defaultAgent ?? (await defaultAgent());
  if (name === null) {
    throw new SessionError({
      code: "agent_unavailable",
      reason: "No agent can run on this server: each lacks something that it needs.",
      retryable: true,
      remedy:
        "Run `offstage doctor` on the server; a model key (for example ANTHROPIC_API_KEY) is enough for the built-in agent.",
    });
  }
  // A default may name only the provider, whose own default model is then used.
  const id = name.split(":", 1)[0] ?? name;
  const provider = providers.find((known) => known.id === id);
  const problem = provider === undefined ? `there is no provider ${id}` : await provider.problem();
  if (provider === undefined || problem !== null) {
    throw new SessionError({
      code: "agent_unavailable",
      reason: `The agent ${name} can't run on this server: ${problem}.`,
      retryable: true,
      remedy: "Choose another agent (`GET /agent/list`), or add what is missing, then retry.",
    });
  }
  if (!name.includes(":")) return { provider, model: provider.defaultModel, reasoning: null };
  const { model, reasoning } = splitAgentName(name, provider.reasoningLevels);
  return { provider, model, reasoning };
}
