import { InvalidInputError } from "../../domain/errors/errors.ts";

/** Levels of reasoning, which the AI SDK maps to each provider's own. */
export const reasoningLevels = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
/** See `reasoningLevels`. */
export type ReasoningLevel = (typeof reasoningLevels)[number];

/**
 * The level of reasoning that `OFFSTAGE_AGENT_REASONING` names; null: the model's own.
 * @throws InvalidInputError if there is no such level
 */
export function reasoningFrom({
  OFFSTAGE_AGENT_REASONING: named,
}: Readonly<Record<string, string | undefined>>): ReasoningLevel | null {
  if (named === undefined) return null;
  const level = reasoningLevels.find((known) => known === named);
  if (level !== undefined) return level;
  throw new InvalidInputError(`OFFSTAGE_AGENT_REASONING: must be one of ${reasoningLevels.join(", ")}`);
}
