import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hasHmac, hasStandardSignature, hasToken, isRecent } from "./signatures.ts";

describe("hasHmac", () => {
  // https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
  const published = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
  const options = { algorithm: "sha256", encoding: "hex", prefix: "sha256=" } as const;

  test("accepts the example that GitHub publishes", () => {
    expect(hasHmac(published, "Hello, World!", ["It's a Secret to Everybody"], options)).toBe(true);
  });
  test("accepts either of two secrets", () => {
    expect(hasHmac(published, "Hello, World!", ["new", "It's a Secret to Everybody"], options)).toBe(true);
  });
  test("accepts it in upper case, as hexadecimal may be written", () => {
    const upper = `sha256=${published.slice("sha256=".length).toUpperCase()}`;
    expect(hasHmac(upper, "Hello, World!", ["It's a Secret to Everybody"], options)).toBe(true);
    expect(hasHmac(upper.replace(/.$/u, "8"), "Hello, World!", ["It's a Secret to Everybody"], options)).toBe(false);
  });
  test.each([
    ["no header", undefined],
    ["no prefix", published.slice("sha256=".length)],
    ["an empty signature", "sha256="],
    ["half a signature", published.slice(0, 39)],
    ["what is no hexadecimal", `sha256=${"z".repeat(64)}`],
    ["another signature", `${published.slice(0, -1)}8`],
  ])("refuses %s", (_, given) => {
    expect(hasHmac(given, "Hello, World!", ["It's a Secret to Everybody"], options)).toBe(false);
  });
  test("refuses all if there is no secret", () => {
    expect(hasHmac(published, "Hello, World!", [], options)).toBe(false);
  });
});

describe("hasStandardSignature", () => {
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const body = Buffer.from('{"test": 2432232314}');
  const at = 1_614_265_330;
  const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": String(at),
    "webhook-signature": signature,
  };

  test("accepts the published example", () => {
    expect(hasStandardSignature({ headers, body }, [secret], at * 1_000)).toBe(true);
  });
  test("accepts it under the names that Svix has for the headers, and no mixture of both", () => {
    const own = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.replace("webhook-", "svix-"), value]),
    );
    const isTaken = (given: Record<string, string>): boolean =>
      hasStandardSignature({ headers: given, body }, [secret], at * 1_000);
    expect(isTaken(own)).toBe(true);
    expect(isTaken({ ...own, "webhook-id": headers["webhook-id"] })).toBe(false);
    expect(isTaken({ ...own, "svix-id": "another" })).toBe(false);
  });
  test("accepts one of several signatures, and one of two secrets", () => {
    const several = { ...headers, "webhook-signature": `v1a,x v1,${Buffer.alloc(32).toString("base64")} ${signature}` };
    expect(hasStandardSignature({ headers: several, body }, ["whsec_AAAA", secret], at * 1_000)).toBe(true);
  });
  test("refuses a signature after five minutes, and one from the future", () => {
    expect(hasStandardSignature({ headers, body }, [secret], (at + 301) * 1_000)).toBe(false);
    expect(hasStandardSignature({ headers, body }, [secret], (at - 301) * 1_000)).toBe(false);
  });
  test.each(["webhook-id", "webhook-timestamp", "webhook-signature"])("refuses a delivery without %s", (name) => {
    expect(hasStandardSignature({ headers: { ...headers, [name]: undefined }, body }, [secret], at * 1_000)).toBe(
      false,
    );
  });
  test("refuses another body", () => {
    expect(hasStandardSignature({ headers, body: Buffer.from("{}") }, [secret], at * 1_000)).toBe(false);
  });
  test.each(["", "whsec_", "!!!", "秘密の鍵", "秘密AAAA", "a b", "A"])(
    "refuses what is signed with what is left of the secret %j, which is no base64",
    (weak) => {
      const key = Buffer.from(weak.replace(/^whsec_/u, ""), "base64");
      const forged = createHmac("sha256", key).update(`msg.${at}.`).update(body).digest("base64");
      const weakly = { "webhook-id": "msg", "webhook-timestamp": String(at), "webhook-signature": `v1,${forged}` };
      expect(hasStandardSignature({ headers: weakly, body }, [weak], at * 1_000)).toBe(false);
    },
  );
  test("refuses a time that is no number of seconds, although it was signed", () => {
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    const time = `${at}.5`;
    const forged = createHmac("sha256", key).update(`msg.${time}.`).update(body).digest("base64");
    const odd = { "webhook-id": "msg", "webhook-timestamp": time, "webhook-signature": `v1,${forged}` };
    expect(hasStandardSignature({ headers: odd, body }, [secret], at * 1_000)).toBe(false);
  });
});

test("an empty secret, or one that makes an empty key, accepts nothing", () => {
  const options = { algorithm: "sha256", encoding: "hex" } as const;
  const unkeyed = createHmac("sha256", "").update("body").digest("hex");
  expect(hasHmac(unkeyed, "body", [""], options)).toBe(false);
  expect(hasToken("", [""])).toBe(false);
  const signature = createHmac("sha256", "").update("msg.1.{}").digest("base64");
  const headers = { "webhook-id": "msg", "webhook-timestamp": "1", "webhook-signature": `v1,${signature}` };
  expect(hasStandardSignature({ headers, body: Buffer.from("{}") }, ["whsec_", "---"], 1_000)).toBe(false);
});

test("a token is compared as a whole", () => {
  expect(hasToken("secret", ["other", "secret"])).toBe(true);
  expect(hasToken("secre", ["secret"])).toBe(false);
  expect(hasToken("", [])).toBe(false);
  expect(hasToken(undefined, ["secret"])).toBe(false);
});

test("a time that is no number is not recent", () => {
  expect(isRecent(Number.NaN, 0)).toBe(false);
  expect(isRecent(0, 299_000)).toBe(true);
  expect(isRecent(0, 301_000)).toBe(false);
});
