/** The named steps of a run, in their order. Each may be repeated after a crash without harm. */
export const stepNames = ["prepare", "setup", "agent", "commit", "push", "pullRequest"] as const;
export type StepName = (typeof stepNames)[number];

/** Steps that a run has only where there is something to do in them. */
export const optionalSteps: ReadonlySet<StepName> = new Set(["setup"]);
