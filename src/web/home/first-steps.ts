import type { Agent } from "../../domain/agents/agent.ts";
import type { Connection } from "../../domain/repositories/connection.ts";
import type { OfferedRepositories } from "../../domain/repositories/choice.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";

/** Whether a step to the first pull request is done. `unknown`: the server did not answer yet. */
export type StepState = "done" | "open" | "unknown";

/** Most sessions that an organization has while it is led to its first pull request. */
export const fewSessions = 3;

/** The agent that needs nothing but a model's key: what it lacks is the key. */
const needsOnlyKey = "basic";

interface AgentSteps {
  readonly key: { readonly state: StepState; readonly model: string | null; readonly problem: string | null };
  /** `name` is that of the agent that takes sessions; null: none does. */
  readonly agent: { readonly state: StepState; readonly name: string | null; readonly problem: string | null };
}

/** Whether there is a model's key, and an agent that works, by what the agents lack. @param agents undefined: not known yet */
export function agentSteps(agents: readonly Agent[] | undefined): AgentSteps {
  const nothing = { name: null, model: null, problem: null };
  if (agents === undefined) return { key: { state: "unknown", ...nothing }, agent: { state: "unknown", ...nothing } };
  const able = agents.filter(({ available }) => available);
  const basic = agents.find(({ id }) => id === needsOnlyKey);
  if (able.length === 0) {
    return {
      key: { state: "open", model: null, problem: basic?.problem ?? agents[0]?.problem ?? null },
      agent: { state: "open", ...nothing },
    };
  }
  const chosen = agents.find(({ isDefault }) => isDefault) ?? able[0];
  return {
    // A custom agent may bring its own key: then no other needs one.
    key: { state: "done", model: basic?.available === true ? basic.defaultModel : null, problem: null },
    agent: {
      state: chosen?.available === true ? "done" : "open",
      name: chosen?.name ?? null,
      problem: chosen?.problem ?? null,
    },
  };
}

interface ForgeStep {
  readonly state: StepState;
  readonly forges: readonly string[];
  readonly problems: readonly { readonly forge: string; readonly text: string }[];
}

/**
 * Whether a forge is connected: one that shows a repository, or whose connection works.
 * @param offered undefined: not known yet
 * @param connections undefined: not known, or not visible to the signed-in user
 */
export function forgeStep(
  offered: OfferedRepositories | undefined,
  connections: readonly Connection[] = [],
): ForgeStep {
  const working = connections.filter(({ health }) => health.state !== "broken");
  // A connection's repositories are shown under its name, and are of no use if it is broken.
  const others = (offered?.repositories ?? []).filter(
    ({ url }) => !connections.some(({ webUrl }) => url.startsWith(`${webUrl}/`)),
  );
  const forges = [...new Set([...working.map(({ name }) => name), ...others.map(({ forge }) => forge)])];
  if (forges.length > 0) return { state: "done", forges, problems: [] };
  if (offered === undefined) return { state: "unknown", forges, problems: [] };
  const broken = connections.flatMap(({ name, health }) =>
    health.problems
      .filter(({ essential }) => essential)
      .map(({ missing, why, remedy }) => ({ forge: name, text: `${missing}: ${why} ${remedy}` })),
  );
  return { state: "open", forges, problems: broken.length > 0 ? broken : offered.problems };
}

/** The session of a few that the guide is about: the newest with a pull request, else the newest. */
export function shownSession(sessions: readonly SessionDetail[]): SessionDetail | null {
  const newestFirst = sessions.toSorted((one, other) => other.createdAt.localeCompare(one.createdAt));
  return newestFirst.find(({ pullRequests }) => pullRequests.length > 0) ?? newestFirst[0] ?? null;
}

/** Whether a session has a pull request, and why not. @param session null: there is none yet */
export function pullRequestStep(session: SessionDetail | null): {
  readonly state: StepState;
  readonly stage: "later" | "underWay" | "waiting" | "nothing" | "cancelled";
} {
  if (session === null) return { state: "open", stage: "later" };
  const { status, pullRequests } = session;
  const state = pullRequests.length > 0 ? "done" : "open";
  if (status === "draft") return { state, stage: "later" };
  if (status === "waiting" || status === "cancelled") return { state, stage: status };
  return { state, stage: isFinal(status) ? "nothing" : "underWay" };
}
