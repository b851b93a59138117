import { expect, it } from "vitest";
import { withoutQuickActions } from "./quick-actions.ts";

it.each([
  ["/merge", "\\/merge"],
  ["Words\n/assign @mallory\nmore", "Words\n\\/assign @mallory\nmore"],
  ["  /label ~bug", "  \\/label ~bug"],
  ["\u00a0/close", "\u00a0\\/close"],
  ["Words\r\n/close\r\n", "Words\n\\/close\n"],
  // GitLab takes carriage returns out.
  ["Words\n\r/close", "Words\n\n\\/close"],
  ["```\n/merge\n```", "```\n\\/merge\n```"],
  ["\\/merge", "\\/merge"],
])("in %j a line that GitLab would carry out is text", (text, expected) => {
  expect(withoutQuickActions(text)).toBe(expected);
  expect(withoutQuickActions(expected)).toBe(expected);
});

it.each(["See /merge", "/usr/bin/env node", "https://example.com/merge", "- a/b", ""])("%j stays", (text) => {
  expect(withoutQuickActions(text)).toBe(text);
});
