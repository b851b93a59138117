import { z } from "zod";

/** A provider of agents as `GET /agent/list` shows it. */
export const agentSchema = z.object({
  id: z.string(),
  name: z.string(),
  available: z.boolean(),
  /** Why it can't be used and how to mend that; null where it can. */
  problem: z.string().nullable(),
  /** Model used when none is named. */
  defaultModel: z.string().nullable(),
  isDefault: z.boolean(),
});
export type Agent = z.infer<typeof agentSchema>;
export const agentListSchema = z.object({ agents: z.array(agentSchema), nextCursor: z.null() });

/** Splits `<provider>:<model>` at the first colon. */
export function splitAgentName(name: string): { provider: string; model: string } {
  const colon = name.indexOf(":");
  return { provider: name.slice(0, colon), model: name.slice(colon + 1) };
}
