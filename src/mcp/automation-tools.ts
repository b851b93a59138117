import { z } from "zod";
import { text } from "../domain/fields/text.ts";
import { factsAnswer } from "./answer.ts";
import type { McpParts } from "./parts.ts";
import { idempotencyKey } from "./session-tools.ts";

const automation = text(200).describe("The automation's macro or id.");
const page = {
  limit: z.int().min(1).max(100).default(50),
  cursor: z.string().max(200).optional().describe("nextCursor of the page before."),
};

/** Adds the tools that list and trigger automations, and show the outcomes. */
export function addAutomationTools({ server, client, answer, scopeChallenge }: McpParts): void {
  server.registerTool(
    "list_automations",
    {
      title: "List automations",
      description: "Saved instructions that start sessions, by their macros.",
      inputSchema: z.strictObject(page),
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    (query) =>
      answer(async () => {
        const { automations, nextCursor } = await client.automation.list(query);
        return factsAnswer({
          automations: automations.map(({ id, macro, name, paused, triggers, repositories }) => ({
            id,
            macro,
            name,
            paused,
            triggers: triggers.map(({ type }) => type),
            repositories: repositories.map(({ url }) => url),
          })),
          nextCursor,
        });
      }),
  );
  server.registerTool(
    "trigger_automation",
    {
      title: "Trigger an automation",
      description:
        "Starts a run of an automation. Its instructions see the event. Answers at once; get_run says what came of it.",
      inputSchema: z.strictObject({
        automation,
        event: z.record(z.string(), z.unknown()).default({}).describe("What the instructions refer to as event."),
        idempotencyKey,
      }),
      annotations: { destructiveHint: false, openWorldHint: true },
      ...scopeChallenge("trigger"),
    },
    ({ automation: name, event, idempotencyKey: key }) =>
      answer(async () => {
        const { id, status } = await client.automation.trigger(encodeURIComponent(name), event, {
          idempotencyKey: key,
        });
        return factsAnswer({ runId: id, status });
      }),
  );
  server.registerTool(
    "get_run",
    {
      title: "Show a run",
      description: "What came of a trigger: the sessions of the run, or why it has none.",
      inputSchema: z.strictObject({ runId: z.uuid() }),
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    ({ runId }) =>
      answer(async () => {
        const { id, status, runStatus, error, sessions } = await client.job.get(runId);
        return factsAnswer({
          runId: id,
          status: runStatus ?? status,
          problem: error,
          sessions: sessions.map((session) => ({
            sessionId: session.id,
            status: session.status,
            htmlUrl: session.htmlUrl,
            repositories: session.repositories.map(({ url }) => url),
          })),
        });
      }),
  );
}
