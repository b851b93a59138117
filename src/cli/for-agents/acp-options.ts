import { RequestError, type SessionConfigOption, type SetSessionConfigOptionRequest } from "@agentclientprotocol/sdk";
import type { Client } from "../../client.ts";

/** Means the server's default agent among the agents. */
export const defaultAgent = "default";

/** An editor's choices for a session. */
export interface Choices {
  readonly agent: string;
  readonly withChanges: boolean;
}

/** The options of a session as an editor shows them. @param hasBegun of a session that has begun, the agent stays */
export async function sessionOptions(
  client: Client,
  { agent, withChanges }: Choices,
  hasBegun: boolean,
): Promise<SessionConfigOption[]> {
  const usual = { value: defaultAgent, name: "The server's default" };
  const offered = hasBegun
    ? [agent === defaultAgent ? usual : { value: agent, name: agent }]
    : [usual, ...(await agentsOf(client))];
  return [
    { type: "select", id: "model", category: "model", name: "Agent", currentValue: agent, options: offered },
    {
      type: "select",
      id: "changes",
      category: "mode",
      name: "Uncommitted changes",
      description:
        "Whether the first prompt sends the checkout's commits and changes that its remote does not have, as a branch.",
      currentValue: withChanges ? "send" : "leave",
      options: [
        { value: "leave", name: "Leave them here" },
        { value: "send", name: "Send them along" },
      ],
    },
  ];
}

async function agentsOf(client: Client): Promise<{ value: string; name: string }[]> {
  const { agents } = await client.agent.list();
  return agents
    .filter(({ available }) => available)
    .map(({ id, name, defaultModel }) => ({
      value: defaultModel === null ? id : `${id}:${defaultModel}`,
      name: defaultModel === null ? name : `${name}: ${defaultModel}`,
    }));
}

/** The choices after an editor's request. @throws RequestError if that is not among the options */
export function chosen(
  before: Choices,
  options: readonly SessionConfigOption[],
  { configId, value }: SetSessionConfigOptionRequest,
): Choices {
  const option = options.find(({ id }) => id === configId);
  const isOffered = option?.type === "select" && option.options.some((each) => "value" in each && each.value === value);
  if (!isOffered || typeof value !== "string") {
    throw RequestError.invalidParams(undefined, `${configId} can't be ${String(value)} in this session`);
  }
  return configId === "model" ? { ...before, agent: value } : { ...before, withChanges: value === "send" };
}
