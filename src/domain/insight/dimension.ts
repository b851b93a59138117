/** By what figures can be told apart. */
export const insightDimensions = ["repository", "automation", "agent", "model", "person"] as const;
/** See `insightDimensions`. */
export type InsightDimension = (typeof insightDimensions)[number];
