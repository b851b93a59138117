/** The text by which the order reaches the model. */
export const channels = {
  readme: "README that it is asked to read",
  notes: "notes for agents (AGENTS.md)",
  comment: "comment in the code",
  output: "output of the project's checks",
  dependency: "what a dependency's install script prints",
  fileName: "name of a file",
  commit: "subject of a commit",
  issue: "issue in a trigger's payload",
  prompt: "text pasted into the prompt",
  followUp: "follow-up message",
  template: "payload of a trigger",
} as const;
export type Channel = keyof typeof channels;
