import { expect, test } from "vitest";
import { SessionError } from "../../../domain/errors/errors.ts";
import { createMask } from "../../../domain/masking/mask.ts";
import type { NewEvent } from "../../../domain/sessions/event.ts";
import { createRefusalNotices } from "./refusal-notices.ts";

function notices() {
  const events: NewEvent[] = [];
  const emit = (event: NewEvent): Promise<void> => Promise.resolve(void events.push(event));
  const made = createRefusalNotices({ mask: createMask(["a-token-of-the-forge"]), emit });
  return { ...made, events };
}
const refused = (name: string, reason: string) => ({
  name,
  error: new SessionError({ code: "push_rejected", reason, retryable: true, remedy: "Allow it." }),
});
const warning = (text: string) => ({ type: "notice", data: { level: "warning", text } });

test("work that may not be pushed and work that a forge refused have different notices", async () => {
  const { notPushed, notTaken, events } = notices();
  await notPushed([refused("app", "A token is in it.")]);
  await notTaken([refused("web", "It is protected.")]);
  expect(events).toEqual([
    warning("The work on app may not be pushed, which holds back no other repository: A token is in it."),
    warning("web did not take the work, which holds back no other repository: It is protected."),
  ]);
});

test("the same is said once, however often it comes up again", async () => {
  const { notTaken, events } = notices();
  await notTaken([refused("web", "It is protected."), refused("web", "It is protected.")]);
  await notTaken([refused("web", "It is protected."), refused("web", "It is archived.")]);
  expect(events).toHaveLength(2);
});

test("no secret is said, and a long reason is cut", async () => {
  const { notTaken, events } = notices();
  await notTaken([refused("web", `It is a-token-of-the-forge ${"x".repeat(3_000)}`)]);
  const [notice] = events;
  const text = notice?.type === "notice" ? notice.data.text : "";
  expect([text.includes("[secret]"), text.includes("a-token-of-the-forge"), text.length]).toEqual([true, false, 2_000]);
});
