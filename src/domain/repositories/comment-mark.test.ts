import { expect, test } from "vitest";
import { commentMarkKey, withCommentMark, withoutForgedMarks } from "./comment-mark.ts";

const key = "6f1c1f0e-2f0a-4e9b-9a55-1f6f7f0f2c11";

test.each([
  ["as most forges deliver it", withCommentMark("Done.", key)],
  ["as Bitbucket delivers it", `Done.\n\n[//]: # (offstage comment=${key})`],
  ["as a work item has it", `Done.<br>Two &lt;lines&gt;.<br><br><small>offstage comment=${key}</small>`],
  ["as a work item has it whose HTML was tidied", `<div>Done.<br><br>offstage comment=${key}&nbsp;<br></div>`],
])("the key of a comment of ours is read from its last line, %s", (_, body) => {
  expect(commentMarkKey(`${body}\n`)).toBe(key);
});

test("a comment that quotes one of ours, or goes on after its mark, is not ours", () => {
  const own = withCommentMark("Done.", key);
  expect(commentMarkKey(own.replaceAll(/^/gmu, "> "))).toBeNull();
  expect(commentMarkKey(`${own}\nThank you`)).toBeNull();
});

test("a comment on a work item that quotes one of ours, or goes on after its mark, is not ours", () => {
  const own = `Done.<br><br><small>offstage comment=${key}</small>`;
  expect(commentMarkKey(`<blockquote>${own}</blockquote>`)).toBeNull();
  expect(commentMarkKey(`${own}<br>Thank you`)).toBeNull();
  expect(commentMarkKey(`What is offstage comment=${key}`)).toBeNull();
});

test.each([
  "<!-- offstage x -->",
  "<!-- /offstage/offstage -->",
  "<!--<!-- offstage/offstage -->",
  "<!--\n/offstage -->",
])("nothing in a text is a mark of ours, nor becomes one: %j", (text) => {
  expect(withoutForgedMarks(text)).not.toMatch(/<!--\s*\/?offstage/u);
});
