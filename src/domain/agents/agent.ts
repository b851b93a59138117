import { z } from "zod";

/** Levels of reasoning that a third part of an agent's name may have if its provider says nothing else. */
export const usualLevels: readonly string[] = ["low", "medium", "high"];

/** An agent provider as `GET /agent/list` shows it. */
export const agentSchema = z.object({
  id: z.string(),
  name: z.string(),
  available: z.boolean(),
  /** Why the provider can't be used, with the remedy; null if it can be used. */
  problem: z.string().nullable(),
  /** Model of a session that names none. */
  defaultModel: z.string().nullable(),
  /** Levels of reasoning that may follow the model's name. Workers of the version before say none: these are the usual ones. */
  reasoningLevels: z.array(z.string()).default([...usualLevels]),
  isDefault: z.boolean(),
});
/** See `agentSchema`. */
export type Agent = z.infer<typeof agentSchema>;
/** Answer of `GET /agent/list`; it has one page only. */
export const agentListSchema = z.object({ agents: z.array(agentSchema), nextCursor: z.null() });

/** The parts of an agent's name. */
export interface AgentName {
  readonly provider: string;
  readonly model: string;
  /** Null: the harness's own. */
  readonly reasoning: string | null;
}

/**
 * Splits `<provider>:<model>`, or `<provider>:<model>:<reasoning>`. A model's name may have colons: only a last part that is one
 * of the levels is not of the model.
 * @param name valid by `agentNameSchema`
 * @param levels the provider's levels of reasoning
 */
export function splitAgentName(name: string, levels: readonly string[] = usualLevels): AgentName {
  const colon = name.indexOf(":");
  const last = name.lastIndexOf(":");
  const provider = name.slice(0, colon);
  const reasoning = name.slice(last + 1);
  if (last === colon || !levels.includes(reasoning)) return { provider, model: name.slice(colon + 1), reasoning: null };
  return { provider, model: name.slice(colon + 1, last), reasoning };
}
