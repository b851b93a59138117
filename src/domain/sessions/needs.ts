/**
 * What a session may need of a person: `person`: it waits for one, failed in the last days, or its pull request has a conflict,
 * red checks or a review that asks for changes; `review`: it is completed, and its pull request is open.
 */
export const sessionNeeds = ["person", "review"] as const;
/** See `sessionNeeds`. */
export type SessionNeed = (typeof sessionNeeds)[number];
