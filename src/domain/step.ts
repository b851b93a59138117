/** The named steps of a run, in their order. Each may be repeated after a crash without harm. */
export const stepNames = ["prepare", "agent", "commit", "push", "pullRequest"] as const;
export type StepName = (typeof stepNames)[number];
