import { z } from "zod";

/** An agent provider as `GET /agent/list` shows it. */
export const agentSchema = z.object({
  id: z.string(),
  name: z.string(),
  available: z.boolean(),
  /** Why the provider can't be used, with the remedy; null if it can be used. */
  problem: z.string().nullable(),
  /** Model of a session that names none. */
  defaultModel: z.string().nullable(),
  isDefault: z.boolean(),
});
/** See `agentSchema`. */
export type Agent = z.infer<typeof agentSchema>;
/** Answer of `GET /agent/list`; it has one page only. */
export const agentListSchema = z.object({ agents: z.array(agentSchema), nextCursor: z.null() });

/** Splits `<provider>:<model>` at the first colon. @param name valid by `agentNameSchema` */
export function splitAgentName(name: string): { provider: string; model: string } {
  const colon = name.indexOf(":");
  return { provider: name.slice(0, colon), model: name.slice(colon + 1) };
}
