/** The steps of an attempt, in order. A step may run again after a crash without harm. */
export const stepNames = ["prepare", "setup", "restore", "gate", "agent", "commit", "push", "pullRequest"] as const;
/** See `stepNames`. */
export type StepName = (typeof stepNames)[number];

/** Steps that an attempt leaves out if they have nothing to do. */
export const optionalSteps: ReadonlySet<StepName> = new Set(["setup", "restore", "gate"]);
