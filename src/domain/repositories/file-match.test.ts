import { expect, it } from "vitest";
import { matchPaths } from "./file-match.ts";

const paths = ["src/web/main.tsx", "src/main.ts", "README.md", "src/domain/sessions/session.ts", "docs/Main.md"];

it("puts a file of the name before one whose name begins so, and before one whose path has it", () => {
  expect(matchPaths(paths, "main.ts", 2)).toEqual(["src/main.ts", "src/web/main.tsx"]);
  expect(matchPaths([...paths, "main/x"], "main", 4)).toEqual([
    "src/main.ts",
    "docs/Main.md",
    "src/web/main.tsx",
    "main/x",
  ]);
});

it("finds characters in order, and nothing that lacks one", () => {
  expect(matchPaths(paths, "dosess", 10)).toEqual(["src/domain/sessions/session.ts"]);
  expect(matchPaths(paths, "zzz", 10)).toEqual([]);
});

it("gives the shortest paths if nothing was written, and no more than asked for", () => {
  expect(matchPaths(paths, " ", 2)).toEqual(["README.md", "src/main.ts"]);
});
