import { describe, expect, it } from "vitest";
import { hunkTo, linesTo, readHunks } from "./diff-hunk.ts";

const diff = `diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1,4 +1,4 @@ function
 one
-two
+2
 three
 four
@@ -20,2 +20,3 @@
 twenty
+new
-old
\\ No newline at end of file
`;

describe("a hunk of a diff", () => {
  const hunks = readHunks(diff);
  it("ends with the line that is meant, by its number in the newer file", () => {
    expect(hunkTo(hunks, 2)).toBe("@@ -1,4 +1,4 @@ function\n one\n-two\n+2");
    expect(hunkTo(hunks, 4)?.split("\n").at(-1)).toBe(" four");
    expect(hunkTo(hunks, 21)).toBe("@@ -20,2 +20,3 @@\n twenty\n+new");
  });
  it("is found by the older file's number if the newer one has no such line, and else not", () => {
    const removed = readHunks("@@ -7,2 +7 @@\n seven\n-eight\n");
    expect(hunkTo(removed, 8)).toBe("@@ -7,2 +7 @@\n seven\n-eight");
    expect(hunkTo(hunks, 10)).toBeNull();
    expect(hunkTo(readHunks("Binary files differ"), 1)).toBeNull();
  });
  it("is cut before what is far from the line", () => {
    const long = `@@ -1,200 +1,200 @@\n${Array.from({ length: 200 }, (_, index) => ` line ${index + 1}`).join("\n")}`;
    const lines = hunkTo(readHunks(long), 200)?.split("\n") ?? [];
    expect([lines.length, lines[1], lines.at(-1)]).toEqual([61, " line 141", " line 200"]);
  });
});

it("the lines of a file stand for a hunk where there are no diffs", () => {
  expect(linesTo("a\r\nb\r\nc", 2)).toBe("@@ -1,2 +1,2 @@\n a\n b");
  expect(
    linesTo(Array.from({ length: 30 }, (_, index) => index + 1).join("\n"), 20)
      ?.split("\n")
      .slice(0, 2),
  ).toEqual(["@@ -11,10 +11,10 @@", " 11"]);
  expect([linesTo("a", 0), linesTo("a", 2)]).toEqual([null, null]);
});
