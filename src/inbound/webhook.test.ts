import { describe, expect, it } from "vitest";
import { webhookDeliveryId } from "./webhook.ts";

const idOf = (headers: Record<string, string>, body = "{}") => webhookDeliveryId({ headers, body: Buffer.from(body) });

describe("the id of a delivery", () => {
  it("is that of the delivery, not of the request that set it off, as GitLab tells both", () => {
    const [one, other] = ["a", "b"].map((id) => idOf({ "x-gitlab-event-uuid": "1", "idempotency-key": id }));
    expect([one, other]).toEqual(["a", "b"]);
  });
  it("of what tells only what set it off is told apart by the body", () => {
    const headers = { "x-gitlab-event-uuid": "1" };
    expect(idOf(headers, "a")).toBe(idOf(headers, "a"));
    expect(idOf(headers, "a")).not.toBe(idOf(headers, "b"));
    expect(idOf(headers, "a")).not.toBe(idOf({ "x-gitlab-event-uuid": "2" }, "a"));
  });
  it("is none without a header, and none that is empty or too long to be kept", () => {
    expect(idOf({})).toBeNull();
    expect(idOf({ "webhook-id": "", "x-github-delivery": "d" })).toBe("d");
    expect(idOf({ "webhook-id": "x".repeat(501) })).toBeNull();
  });
});
