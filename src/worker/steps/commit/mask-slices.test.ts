import { expect, test } from "vitest";
import { createMask } from "../../../domain/masking/mask.ts";
import { maskSlices } from "./mask-slices.ts";

const secret = "a-secret-of-some-length-that-goes-on";
const mask = createMask([secret]);

test("a secret is masked wherever the text is cut into slices", async () => {
  for (let before = 65_536 - secret.length - 2; before < 65_536 + 2; before += 1) {
    const text = `${"x".repeat(before)}${secret}${"y".repeat(100_000)}`;
    expect(await maskSlices(mask, text)).toBe(mask.text(text));
  }
});

test("a secret in base64 that is broken into lines is masked wherever the text is cut", async () => {
  const encoded = Buffer.from(`${"padding".repeat(20)}${secret}${"padding".repeat(20)}`).toString("base64");
  const lines = encoded.replaceAll(/.{64}/gu, "$&\n");
  expect(mask.text(lines)).not.toBe(lines);
  for (let before = 65_536 - lines.length; before <= 65_536; before += 7) {
    const text = `${"words\n".repeat(before / 6).padEnd(before)}${lines}${"words\n".repeat(20_000)}`;
    expect(await maskSlices(mask, text)).toBe(mask.text(text));
  }
});
