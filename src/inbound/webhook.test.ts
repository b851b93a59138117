import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { verifyWebhook, webhookDeliveryId } from "./webhook.ts";

const idOf = (headers: Record<string, string>, body = "{}") => webhookDeliveryId({ headers, body: Buffer.from(body) });

describe("the id of a delivery", () => {
  it("is that of the delivery, not of the request that set it off, as GitLab tells both", () => {
    const [one, other] = ["a", "b"].map((id) => idOf({ "x-gitlab-event-uuid": "1", "idempotency-key": id }));
    expect([one, other]).toEqual(["a", "b"]);
  });
  it("that names only its cause is identified by the body", () => {
    const headers = { "x-gitlab-event-uuid": "1" };
    expect(idOf(headers, "a")).toBe(idOf(headers, "a"));
    expect(idOf(headers, "a")).not.toBe(idOf(headers, "b"));
    expect(idOf(headers, "a")).not.toBe(idOf({ "x-gitlab-event-uuid": "2" }, "a"));
  });
  it("is none without a header, and none that is empty or too long to be kept", () => {
    expect(idOf({})).toBeNull();
    expect(idOf({ "webhook-id": "", "x-github-delivery": "d" })).toBe("d");
    expect([idOf({ "svix-id": "s" }), idOf({ "x-shopify-webhook-id": "t" })]).toEqual(["s", "t"]);
    expect(idOf({ "webhook-id": "x".repeat(501) })).toBeNull();
  });
});

describe("a signature", () => {
  const algorithms = ["sha1", "sha256", "sha512"] as const;
  const encodings = ["hex", "base64"] as const;
  const ways = algorithms.flatMap((algorithm) => encodings.map((encoding) => ({ algorithm, encoding })));

  it.each(ways)(
    "by $algorithm in $encoding is taken with its prefix, and as nothing else",
    ({ algorithm, encoding }) => {
      const verification = { type: "hmac", header: "x-signature", algorithm, encoding, prefix: "v0=" } as const;
      const body = Buffer.from('{"a":"é"}');
      const isTaken = (signature: string, prefix = "v0="): boolean =>
        verifyWebhook(
          verification,
          { headers: { "x-signature": `${prefix}${signature}` }, body },
          ["secret"],
          Date.now(),
        );
      const by = (one: string, as: "hex" | "base64"): string => createHmac(one, "secret").update(body).digest(as);
      expect(isTaken(by(algorithm, encoding))).toBe(true);
      expect(isTaken(by(algorithm, encoding), "")).toBe(false);
      for (const other of ways.filter((way) => way.algorithm !== algorithm || way.encoding !== encoding))
        expect([other, isTaken(by(other.algorithm, other.encoding))]).toEqual([other, false]);
    },
  );
});
