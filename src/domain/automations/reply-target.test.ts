import { expect, it } from "vitest";
import { replyTargetOf, replyTargetSchema } from "./reply-target.ts";

it("answers a message in its thread and an issue of Linear below it, and nothing else", () => {
  const thread = replyTargetOf({ source: "slack", message: { channel: "C1", threadId: "1.2", text: "x" } });
  expect(thread).toEqual({ service: "slack", channel: "C1", threadId: "1.2" });
  expect(replyTargetSchema.parse(thread)).toEqual(thread);
  expect(replyTargetOf({ source: "linear", issue: { id: "i" } })).toEqual({ service: "linear", issueId: "i" });
  for (const event of [
    { source: "jira", issue: { id: "1" } },
    { source: "slack" },
    {},
    null,
    { source: "linear", issue: { id: "" } },
  ]) {
    expect(replyTargetOf(event)).toBeNull();
  }
});
