import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shellQuote } from "../../src/programs/shell-quote.ts";
import { listChanges } from "../../src/worker/checkouts/changes.ts";
import { removeSession } from "../../src/worker/clones/remove-session.ts";
import { textOf } from "../programs/run.ts";
import {
  createOverlayWorld,
  gitIn,
  overlaysMissing,
  type OverlayWorld,
  type SandboxedSession,
} from "./overlay-world.ts";

// Whatever an agent does in a clone, what its overlay's changes make of the index is what `git add --all` makes of it, there and in a
// plain clone: the same tree, byte for byte.

const missing = await overlaysMissing();

const files: Readonly<Record<string, string>> = {
  "a.txt": "aaaa\n",
  "b.txt": "bbbb\n",
  ".gitignore": "ignored/\n*.log\n!kept.log\n",
  "kept.log": "kept\n",
  "dir/one": "1\n",
  "dir/two": "2\n",
  "dir/sub/three": "3\n",
  "dir/sub/deep/four": "4\n",
  "src/main.c": "int main;\n",
  "src/lib/x.c": "int x;\n",
  "src/lib/y.c": "int y;\n",
  "with space/ü": "name\n",
  "ignored/tracked": "tracked, although it is ignored\n",
};
const there = [...Object.keys(files), "link", "run.sh", "dir", "dir/sub", "src", "src/lib", "ignored", "with space"];
const fresh = [
  "new.txt",
  "new/deep/file",
  "dir/new",
  "src/new.log",
  "ignored/new",
  "two\nlines",
  "moved",
  "moved/in",
  "-dash",
];
const anyPath = fc.oneof(fc.constantFrom(...there), fc.constantFrom(...fresh));

/** What an agent may do, as shell commands; one that fails does nothing. */
const deed = fc.oneof(
  fc.tuple(anyPath, fc.constantFrom("aaaa", "bbbb", "longer text", "")).map(([path, content]) => {
    const word = shellQuote(`./${path}`);
    return `mkdir -p "$(dirname ${word})" && printf '%s\\n' ${shellQuote(content)} > ${word}`;
  }),
  on(anyPath, (path) => `rm -rf ${path}`),
  on(anyPath, (path) => `chmod u+x ${path}`),
  on(anyPath, (path) => `chmod u-x ${path}`),
  on(anyPath, (path) => `touch ${path}`),
  on(anyPath, (path) => `rm -rf ${path} && mkdir -p ${path} && echo inner > ${path}/inner`),
  on(anyPath, (path) => `rm -rf ${path} && ln -s src ${path}`),
  onTwo((from, to) => `mkdir -p "$(dirname ${to})" && mv ${from} ${to}`),
  onTwo((from, to) => `cp -pR ${from} ${to}`),
  // Of the same size, with the times that the files have.
  onTwo((from, to) => `mv ${from} swapped && mv ${to} ${from} && mv swapped ${to}`),
  onTwo((from, to) => `ln -f ${from} ${to}`),
  onTwo((from, to) => `git mv -k ${from} ${to}`),
  on(anyPath, (path) => `git add ${path}`),
  on(anyPath, (path) => `git add --force ${path}`),
  on(anyPath, (path) => `git add --intent-to-add ${path}`),
  on(anyPath, (path) => `git rm --quiet -r --cached ${path}`),
  on(anyPath, (path) => `git rm --quiet -r --force ${path}`),
  on(anyPath, (path) => `git checkout --quiet HEAD -- ${path}`),
  on(anyPath, (path) => `git update-index --assume-unchanged ${path}`),
  on(anyPath, (path) => `git update-index --skip-worktree ${path}`),
  on(anyPath, (path) => `git update-index --chmod=+x ${path}`),
  on(anyPath, (path) => `git init --quiet ${path}`),
  on(
    anyPath,
    (path) =>
      `git init --quiet ${path} && git -C ${path} commit --quiet --allow-empty -m inner && git -C ${path} remote add o u`,
  ),
  on(anyPath, (path) => `git worktree add --quiet ${path} HEAD`),
  fc.constantFrom(
    "git add --all",
    "git commit --quiet --all -m more",
    "git reset --quiet --mixed HEAD~1",
    "git reset --quiet --hard HEAD~1",
    "git reset --quiet --hard",
    "git stash --quiet --include-untracked",
    "git clean --quiet -fdx",
    "git checkout --quiet --detach HEAD~1",
    "git read-tree HEAD",
    "git config core.fileMode false",
    "git config core.autocrlf input",
    "echo '*.txt' >> .gitignore",
    "echo > .gitignore",
    "git rm --quiet --cached -r .",
    "printf '\\r\\n' >> a.txt",
    "git merge --quiet --no-edit origin/main",
  ),
);

function on(paths: fc.Arbitrary<string>, command: (path: string) => string): fc.Arbitrary<string> {
  return paths.map((path) => command(shellQuote(`./${path}`)));
}

function onTwo(command: (one: string, other: string) => string): fc.Arbitrary<string> {
  return fc.tuple(anyPath, anyPath).map(([one, other]) => command(shellQuote(`./${one}`), shellQuote(`./${other}`)));
}

const person = { NAME: "A", EMAIL: "a@example.com", DATE: "@1700000000 +0000" };
const identity = Object.fromEntries(
  Object.entries(person).flatMap(([key, value]) => [
    [`GIT_AUTHOR_${key}`, value],
    [`GIT_COMMITTER_${key}`, value],
  ]),
);

/** What went wrong once, or nearly did: these come before the drawn ones. */
const known: readonly (readonly string[])[] = [
  // A file that is ignored and was tracked is tracked no longer.
  ["git rm --quiet -r --cached ./ignored/tracked"],
  ["git rm --quiet -r --cached ./ignored/tracked", "echo more >> ./ignored/tracked", "git commit --quiet -m without"],
  ["git rm --quiet -r --cached ./ignored/tracked", "rm -r ./ignored", "ln -s src ./ignored"],
  ["git update-index --skip-worktree ./kept.log", "echo new > ./ignored/new", "git rm --quiet --cached -r ."],
  // A repository in the place of a file.
  ["rm ./b.txt && mkdir ./b.txt && echo inner > ./b.txt/inner", "git init --quiet ./b.txt"],
  ["rm -r ./src && mkdir -p ./src/main.c && echo inner > ./src/main.c/inner && git init --quiet ./src/main.c"],
  ["rm ./b.txt && mkdir ./b.txt", "git init --quiet ./b.txt && git -C ./b.txt commit --quiet --allow-empty -m inner"],
  [
    "rm ./b.txt && mkdir ./b.txt && echo inner > ./b.txt/inner && git init --quiet ./b.txt && git -C ./b.txt add . && git -C ./b.txt commit --quiet -m inner",
  ],
  // Another worktree, in a folder that is ignored.
  ["git worktree add --quiet ./ignored/new HEAD", "git add --force ./ignored/new", "git rm --quiet -r --force ./b.txt"],
];

/** Stages with a copy of the index, and prints how that was done and the tree; nothing if git can't write one. */
const stageProgram = `
stage() (
  rm -rf "$HOME/stage" && mkdir -p "$HOME/stage/objects"
  cp -p .git/index "$HOME/stage/index" 2> /dev/null
  export GIT_ALTERNATE_OBJECT_DIRECTORIES="$PWD/.git/objects" GIT_OBJECT_DIRECTORY="$HOME/stage/objects"
  export GIT_INDEX_FILE="$HOME/stage/index"
  exec 2> /dev/null
  if [ "$1" = changes ]; then
    stage_changes || { echo refused; exit 0; }
  else
    unset OFFSTAGE_CHANGES
    stage_all
  fi
  echo "tree $(git write-tree)"
)
`;

describe.skipIf(missing !== "")("what an overlay changed", () => {
  let source = "";
  let overlay: OverlayWorld;
  let plain: OverlayWorld;

  beforeAll(async () => {
    source = await mkdtemp(join(tmpdir(), "offstage-source-"));
    gitIn(source, "init", "--quiet", "--initial-branch", "main");
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(source, path)), { recursive: true });
      await writeFile(join(source, path), content);
    }
    await symlink("a.txt", join(source, "link"));
    await writeFile(join(source, "run.sh"), "#!/bin/sh\n");
    await chmod(join(source, "run.sh"), 0o755);
    gitIn(source, "add", "--all", "--force");
    gitIn(source, "commit", "--quiet", "-m", "first");
    await writeFile(join(source, "a.txt"), "aaaa, again\n");
    gitIn(source, "commit", "--quiet", "--all", "-m", "second");
    overlay = await createOverlayWorld("overlay");
    plain = await createOverlayWorld("checkout");
  });

  afterAll(async () => {
    await overlay.close();
    await plain.close();
    await rm(source, { recursive: true, force: true });
  });

  /** @returns how each way ended: `tree <name>`, or `refused` if the list of changes does not do */
  async function stage(
    world: OverlayWorld,
    { id, clone, run }: SandboxedSession,
    deeds: readonly string[],
  ): Promise<{ byChanges: string; byAll: string }> {
    // Each as a program of its own, so that whatever one does the others come.
    await run(deeds.map((each) => `(${each}) > /dev/null 2>&1 < /dev/null`).join("\n"), identity);
    const changes = await listChanges(world.services.checkouts, clone.folder);
    const { home } = world.services.folders.pathsOf(id);
    await writeFile(join(home, "changes"), changes?.list ?? "");
    await chmod(home, 0o777);
    const program = [textOf("worker/export/stage-all.sh"), "set -u", stageProgram, "stage changes", "stage all"].join(
      "\n",
    );
    const more = { OFFSTAGE_CHANGES: join(home, "changes"), OFFSTAGE_CHECKOUT: changes?.commit ?? "" };
    const [byChanges = "", byAll = ""] = (await run(program, { ...identity, ...more })).trim().split("\n");
    return { byChanges, byAll };
  }

  async function inSession<T>(world: OverlayWorld, work: (session: SandboxedSession) => Promise<T>): Promise<T> {
    const session = await world.session(source);
    try {
      return await work(session);
    } finally {
      await removeSession(world.services, session.id);
    }
  }

  test.each([
    ["a name that leads into .git elsewhere", "mkdir .GIT && echo 1 > .GIT/x"],
    ["a link in the place of .gitmodules", "ln -s a.txt .gitmodules"],
  ])("leaves %s to what names it as left out", async (_, refused) => {
    const laid = await inSession(overlay, (session) => stage(overlay, session, [refused, "echo b > b.txt"]));
    expect(laid.byChanges).toBe("refused");
    expect(laid.byAll).toMatch(/^tree /u);
  });

  test("stages as the whole folder does, and as a plain clone", async () => {
    let listed = 0;
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(deed, { minLength: 1, maxLength: 8 }), async (deeds) => {
        const laid = await inSession(overlay, (session) => stage(overlay, session, deeds));
        const whole = await inSession(plain, (session) => stage(plain, session, deeds));
        runs += 1;
        if (laid.byChanges !== "refused") listed += 1;
        expect({ deeds, tree: laid.byAll }).toEqual({ deeds, tree: whole.byAll });
        expect({ deeds, tree: laid.byChanges === "refused" ? laid.byAll : laid.byChanges }).toEqual({
          deeds,
          tree: laid.byAll,
        });
        expect(laid.byAll).toMatch(/^tree [0-9a-f]{40}$/u);
      }),
      {
        examples: known.map((deeds): [string[]] => [[...deeds]]),
        numRuns: Number(process.env["OFFSTAGE_STAGE_RUNS"] ?? 30),
        endOnFailure: process.env["OFFSTAGE_STAGE_RUNS"] === undefined,
      },
    );
    expect(listed).toBeGreaterThan(runs / 3);
  });
});
