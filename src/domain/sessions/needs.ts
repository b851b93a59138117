/**
 * What a session may need of a person: `person`: it waits for one, failed in the last days, or its pull request collides with its
 * target; `review`: it is completed, and its pull request is open.
 */
export const sessionNeeds = ["person", "review"] as const;
/** See `sessionNeeds`. */
export type SessionNeed = (typeof sessionNeeds)[number];
