/** The dimensions by which figures can be grouped. */
export const insightDimensions = ["repository", "automation", "agent", "model", "person"] as const;
/** See `insightDimensions`. */
export type InsightDimension = (typeof insightDimensions)[number];
