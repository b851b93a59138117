import fc from "fast-check";
import { expect, test } from "vitest";
import { createMask } from "./mask.ts";

const secret = "s3cret/value+with?signs";

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

test("a value too short to be distinguished from a word is not masked", () => {
  expect(createMask(["main"]).text("main")).toBe("main");
});

test.each([
  ["URL-encoded", encodeURIComponent(secret)],
  ["URL-encoded in lower case", encodeURIComponent(secret).toLowerCase()],
  ["JSON", JSON.stringify({ secret })],
  ["hexadecimal", Buffer.from(secret).toString("hex")],
  ["base64", Buffer.from(secret).toString("base64")],
  ["base64 for URLs", Buffer.from(secret).toString("base64url")],
  ["base64 after a user's name", Buffer.from(`x-access-token:${secret}`).toString("base64")],
])("a secret is recognised as %s", (_, spelt) => {
  expect(createMask([secret]).text(`before ${spelt} after`)).toContain("[secret]");
});

test("in base64 it is recognised whatever stands around it, broken into lines or not", () => {
  const mask = createMask([secret]);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 90 }), fc.uint8Array({ maxLength: 90 }), fc.boolean(), (a, b, lines) => {
      const encoded = Buffer.concat([a, Buffer.from(secret), b]).toString("base64");
      const shown = lines ? `${encoded.replaceAll(/.{76}/gu, "$&\n")}\n` : encoded;
      return mask.text(shown).includes("[secret]");
    }),
  );
});

test("cut anywhere, what is held back makes sure that no piece shows a part of it", () => {
  const mask = createMask([secret, `${secret}-longer`]);
  const whole = `words before ${secret} between ${secret}-longer and after`;
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), (size) => {
      let held = "";
      let shown = "";
      for (let at = 0; at < whole.length; at += size) {
        held += whole.slice(at, at + size);
        const keep = mask.unfinished(held);
        shown += mask.text(held.slice(0, held.length - keep));
        held = held.slice(held.length - keep);
      }
      return shown + mask.text(held) === "words before [secret] between [secret] and after";
    }),
  );
});

test("cut anywhere, an escaped character of two halves is not shown in part", () => {
  const odd = createMask(["key-\u{1f600}-of-\u{1f680}-mine"]);
  const escaped = String.raw`key-\ud83d\ude00-of-\ud83d\ude80-mine`;
  const whole = `{"a":"${escaped}"} and after`;
  for (let at = 1; at < whole.length; at += 1) {
    const first = whole.slice(0, at);
    const held = first.slice(first.length - odd.unfinished(first));
    const shown = odd.text(first.slice(0, first.length - held.length)) + odd.text(held + whole.slice(at));
    expect(shown, `cut at ${at}`).toBe('{"a":"[secret]"} and after');
  }
  // A half without its other half is a character, and holds nothing back.
  expect(odd.unfinished(String.raw`\ud83d and after`)).toBeLessThan(6);
});

test("nothing is held back of a text that is no secret's beginning", () => {
  expect(createMask([secret]).unfinished("an ordinary sentence.")).toBe(0);
  expect(createMask([]).unfinished("anything")).toBe(0);
});
