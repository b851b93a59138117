import fc from "fast-check";
import { expect, it } from "vitest";
import { commentWithMark, withCommentMarks, withReferenceMarks } from "./reference-marks.ts";

const marks = "<!-- offstage 0123abc --><!-- /offstage -->";
const last = "<!-- offstage session=0198c1f0-0000-7000-8000-000000000001 commit=abc -->";

it.each([
  `Words\n${marks}\n\n---\nMade by a session.\n${last}`,
  `${marks}\n\n---\nMade by a session.`,
  `Words\n\n\n\n${marks}\n\n\n\nMore\n${last}`,
  `Words\n<!-- a template's own words -->\n${last}`,
])("marks come back as they were sent: %j", (text) => {
  const sent = withReferenceMarks(text);
  expect(sent).not.toContain("<!-- offstage");
  expect(withCommentMarks(sent)).toBe(text);
  // A browser may have sent it back with other ends of lines.
  expect(withCommentMarks(sent.replaceAll("\n", "\r\n")).replaceAll("\r\n", "\n")).toBe(text);
});

it("a text stays as it is if it has no mark", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      fc.pre(!text.includes("offstage"));
      expect([withReferenceMarks(text), withCommentMarks(text)]).toEqual([text, text]);
    }),
  );
});

it.each(["offstage comment=x", "offstageoffstage comment=x", "/offstage", "/offstage/offstage", "[//]: # (offstage x"])(
  "what an agent writes in Bitbucket's form is no mark: %s",
  (content) => {
    const sent = withReferenceMarks(`Words\n\n[//]: # (${content})\n`);
    expect([withCommentMarks(sent), commentWithMark(sent)]).toEqual([sent, sent]);
  },
);

it("a comment's mark is known in a line of its own, whatever is left of the empty lines", () => {
  const key = "<!-- offstage comment=0198c1f0 -->";
  for (const text of [withReferenceMarks(`Words\n${key}`), "Words\n\n[//]: # (offstage comment=0198c1f0)\n"]) {
    expect(commentWithMark(text).trimEnd().endsWith(`\n${key}`)).toBe(true);
  }
  expect(commentWithMark("> [//]: # (offstage comment=0198c1f0)")).not.toContain("<!--");
});
