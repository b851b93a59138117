import { expect, it } from "vitest";
import { english } from "../../texts/en/session.ts";
import { reviewMessage, type Comment } from "./comments.ts";

const comment = (file: string, line: number, more: Partial<Comment> = {}): Comment => ({
  id: `${file} ${line}`,
  file,
  side: "additions",
  line,
  code: null,
  text: "Why?",
  ...more,
});

it("has all comments in the order of files and lines, with the lines that they are about", () => {
  const message = reviewMessage(
    [
      comment("b.ts", 2),
      comment("a.ts", 30, { text: "Two\nlines." }),
      comment("a.ts", 4, { side: "deletions", code: "  const a = `b`;" }),
    ],
    english.comments,
  );
  expect(message).toBe(`Please go through these comments on your changes:

1. \`a.ts\`, line 4 before the change:

   > \`const a = 'b';\`

   Why?

2. \`a.ts\`, line 30:

   Two
   lines.

3. \`b.ts\`, line 2:

   Why?`);
});
