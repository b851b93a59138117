import { z } from "zod";
import type { McpParts } from "./parts.ts";

/** Adds what a person can ask an agent for by name. */
export function addPrompts({ server }: McpParts): void {
  server.registerPrompt(
    "hand_over",
    {
      title: "Hand over to Offstage",
      description: "Has the work that we talked about done in the background, as a pull request.",
      argsSchema: z.object({
        task: z.string().describe("What is to be done; empty: what we talked about last.").optional(),
        repository: z.string().describe("URL of the repository; empty: the one that we work in.").optional(),
      }),
    },
    ({ task, repository }) => ({
      messages: [
        {
          role: "user",
          content: {
            type: "text",
            text: [
              `Hand this over to Offstage with start_session: ${task ?? "what we talked about last"}.`,
              `Repository: ${repository ?? "the one that we work in; find its address with git remote get-url origin"}.`,
              "Write the prompt so that it is complete by itself: what is to be done, where, what we found out, what must stay, and how one sees that it is done. Leave out secrets.",
              "Then tell me the session's page, and go on without waiting for it.",
            ].join("\n"),
          },
        },
      ],
    }),
  );
}
