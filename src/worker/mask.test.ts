import { expect, test } from "vitest";
import { createMask } from "./mask.ts";

test("every secret is replaced, the longer before the one it begins with", () => {
  const mask = createMask(["token-12345", "token-12345-and-more"]);
  expect(mask.text("a token-12345-and-more b token-12345 c")).toBe("a [secret] b [secret] c");
});

test("secrets are replaced at any depth of an event", () => {
  const mask = createMask(["s3cret-value"]);
  const event = mask.event({
    type: "agent.tool",
    data: {
      toolCallId: "1",
      title: "echo s3cret-value",
      kind: "execute",
      status: "completed",
      locations: [{ path: "/s3cret-value", line: 1 }],
      content: [{ type: "text", text: "s3cret-value\n" }],
    },
  });
  expect(JSON.stringify(event)).not.toContain("s3cret-value");
  expect(event.data).toMatchObject({ title: "echo [secret]", content: [{ type: "text", text: "[secret]\n" }] });
});

test("a value too short to be told from a word is left alone", () => {
  expect(createMask(["main"]).text("main")).toBe("main");
});
