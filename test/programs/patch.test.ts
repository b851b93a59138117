import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inDirectory, lacksContent } from "../../src/domain/sessions/patch.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "offstage-patch-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function git(cwd: string, ...parameters: string[]): string {
  const named = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.hooksPath=/dev/null"];
  return execFileSync("git", [...named, ...parameters], {
    cwd,
    encoding: "utf8",
    maxBuffer: 1e8,
    env: { PATH: process.env["PATH"], HOME: folder, GIT_CONFIG_NOSYSTEM: "1" },
  });
}

/** Names that git quotes, that have blanks, and that look like the other parts of a header. */
const names = ["a", "b c", "é/ü", "d b/d", 'q"uote', "tab\tin", "deep/er/file", "x b/x b/x", "rename from", "a/b/a"];
/** Lines that look like parts of a patch, and others. */
const lines = [
  "one",
  "two",
  "diff --git a/a b/a",
  "--- a/a",
  "+++ b/a",
  "@@ -1 +1 @@",
  "rename from x",
  "-- a/q",
  "",
  "\\ No newline at end of file",
  "GIT binary patch",
];
const content = fc.oneof(
  { weight: 6, arbitrary: fc.array(fc.constantFrom(...lines), { maxLength: 12 }).map((all) => all.join("\n")) },
  { weight: 1, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from([0, ...bytes])) },
);
const tree = fc.dictionary(fc.constantFrom(...names), fc.record({ content, executable: fc.boolean() }), { maxKeys: 6 });
type Tree = typeof tree extends fc.Arbitrary<infer T> ? T : never;

/** A folder can't be a file too. */
const isTree = (files: Tree): boolean =>
  !Object.keys(files).some((one) => Object.keys(files).some((other) => other.startsWith(`${one}/`)));

function write(root: string, files: Tree): void {
  for (const name of readdirSync(root)) if (name !== ".git") rmSync(join(root, name), { recursive: true });
  for (const [name, file] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), file.content);
    chmodSync(join(root, name), file.executable ? 0o755 : 0o644);
  }
}

function read(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || path.includes("/.git/")) continue;
    const isExecutable = (statSync(path).mode & 0o100) !== 0;
    found[path.slice(root.length)] = `${isExecutable ? "x" : "-"} ${readFileSync(path).toString("base64")}`;
  }
  return found;
}

test("the patches of two repositories apply together in the folder that has both", () => {
  let run = 0;
  let changed = 0;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(tree.filter(isTree), tree.filter(isTree)), { minLength: 2, maxLength: 2 }),
      (both) => {
        run += 1;
        const root = join(folder, `run-${run}`);
        const target = join(root, "target");
        mkdirSync(target, { recursive: true });
        const expected = join(root, "expected");
        const patch = both
          .map(([before, after], index) => {
            const name = `repository-${index}`;
            const repository = join(root, name);
            mkdirSync(repository);
            git(repository, "init", "-q");
            write(repository, before);
            git(repository, "add", "-A");
            git(repository, "commit", "-qm", "before", "--allow-empty");
            cpSync(repository, join(target, name), { recursive: true, filter: (path) => !path.endsWith("/.git") });
            mkdirSync(join(target, name), { recursive: true });
            write(repository, after);
            git(repository, "add", "-A");
            const diff = git(repository, "diff", "--cached", "--binary", "-M", "-C", "--find-copies-harder");
            cpSync(repository, join(expected, name), { recursive: true, filter: (path) => !path.endsWith("/.git") });
            expect(lacksContent(diff)).toBe(false);
            return inDirectory(diff, name);
          })
          .join("");
        if (patch !== "") {
          changed += 1;
          writeFileSync(join(root, "patch"), patch);
          git(target, "apply", "--whitespace=nowarn", join(root, "patch"));
        }
        expect(read(target)).toEqual(read(expected));
        rmSync(root, { recursive: true });
      },
    ),
    { numRuns: 60, seed: 11 },
  );
  expect(changed).toBeGreaterThan(30);
});

test("a diff without the content of a file is known as one", () => {
  expect(lacksContent("diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n")).toBe(true);
  expect(lacksContent("diff --git a/x b/x\n@@ -1 +1 @@\n Binary files a/x and b/x differ\n")).toBe(false);
});
