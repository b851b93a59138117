import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { mirrorPath } from "../../src/worker/git/mirrors/mirror.ts";
import { seedRepository, type Seed } from "../forge/seed-repository.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** Repositories as teams really have them, each from the API's request to the pull request on the forge. */
let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_ALLOW_LOCAL_REPOSITORIES: "true",
  }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function seeded(seed: Seed, name = `awkward-${(count += 1)}`) {
  const { url } = await world.forge.createRepository("acme", name, {});
  const path = world.forge.pathOf("acme", name);
  await seedRepository(path, seed);
  return { name, url, path };
}

interface Case extends Seed {
  readonly called: string;
  /** The agent's command, in one line. */
  readonly agent: string;
  /** Commands for bash in a clone of the pushed branch, with `$base` the commit that it began at; each must succeed. */
  readonly check: string;
  readonly wish?: { readonly targetBranch?: string; readonly branchName?: string };
}

/** Runs commands in a fresh clone of a branch, made without checking anything out. */
async function inClone(path: string, branch: string, commands: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-look-"));
  try {
    const prepared = `git clone -q --no-checkout --branch "$0" "$1" . && base="$(git rev-parse HEAD~1)"`;
    await promisify(execFile)("bash", ["-ec", `${prepared}\n${commands}`, branch, path], { cwd: folder });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Fails unless exactly these paths differ from the base; one a line, as git quotes them. */
const changed = (...paths: string[]): string =>
  `diff <(git diff --name-only "$base" HEAD | sort) <(printf '%s\\n' ${paths.map((path) => `'${path}'`).join(" ")} | sort)`;

const cases: readonly Case[] = [
  {
    called: "SHA-256 object names",
    objectFormat: "sha256",
    commands: "echo a > a.txt",
    agent: "git log --format=%H && echo b > b.txt",
    check: `${changed("b.txt")}; test "$(git rev-parse HEAD | wc -c)" = 65`,
  },
  {
    called: "names with spaces, quotes, newlines, tabs and leading dashes",
    commands: `mkdir -- '-x' ' a b'; for f in 'a b' "it's" '"quoted"' $'new\\nline' $'tab\\t' '-dash' '--help' '-x/-f' ' a b/ c ' '#hash' '!bang' '*' 'back\\slash' '$HOME' ':(top)x' '~'; do echo 1 > "./$f"; done`,
    agent: `for f in *; do if [ -f "./$f" ]; then echo 2 >> "./$f"; fi; done; echo 3 > "./ a b/ new "; git rm -qf -- --help`,
    check: `test "$(git diff --name-only -z "$base" HEAD | tr -dc '\\0' | wc -c)" = 15; git cat-file -e "HEAD: a b/ new "; ! git cat-file -e "HEAD:--help" 2> /dev/null`,
  },
  {
    called: "names and contents that are not UTF-8",
    commands: `printf 'caf\\xe9\\n' > $'caf\\xe9.txt'; mkdir $'\\xff'; printf '\\x00\\xff' > $'\\xff/\\xfe'`,
    agent: `printf 'th\\351\\n' >> "$(printf 'caf\\351.txt')" && printf x > "$(printf 'new\\377')"`,
    check: `test "$(git show $'HEAD:caf\\xe9.txt' | od -An -c | tr -d ' \\n')" = 'caf351\\nth351\\n'; git cat-file -e $'HEAD:new\\xff'`,
  },
  {
    called: "names in every script, composed and decomposed",
    commands: `echo 1 > 'ÜBER.txt'; echo 2 > $'U\\u0308BER.txt'; echo 3 > '日本語 ✓.txt'; echo 4 > $'rtl\\u202e.txt'`,
    agent: "echo 5 >> 'ÜBER.txt'",
    check: `test "$(git diff --name-only -z "$base" HEAD)" = 'ÜBER.txt'`,
  },
  {
    called: "names that differ in case alone",
    commands: "echo 1 > README; echo 2 > readme; mkdir Src src; echo 3 > Src/a; echo 4 > src/a",
    agent: "echo 5 >> readme",
    check: `${changed("readme")}; test "$(git show HEAD:README)" = 1`,
  },
  {
    called: "line ends by attributes",
    commands: `printf '*.bat eol=crlf\\n*.sh text eol=lf\\n*.bin -text\\n' > .gitattributes; printf 'a\\nb\\n' > a.bat; printf 'a\\nb\\n' > a.sh; printf 'a\\r\\n' > a.bin`,
    agent: `test "$(head -c 3 a.bat | od -An -c | tr -d ' ')" = 'a\\r\\n' && printf 'c\\r\\n' >> a.bat`,
    check: `${changed("a.bat")}; test "$(git show HEAD:a.bat | od -An -c | tr -d ' \\n')" = 'a\\nb\\nc\\n'`,
  },
  {
    called: "files that were committed against the attributes",
    commands: `printf 'a\\r\\nb\\r\\n' > old.txt; git add . && git commit -qm Old; printf '*.txt text eol=lf\\n' > .gitattributes; git add .gitattributes && git commit -qm Attributes`,
    agent: "echo b > b.txt",
    check: changed("b.txt"),
  },
  {
    called: "symbolic links to nothing, to absolute paths, to folders, upwards and to themselves",
    commands: `mkdir d; echo 1 > d/f; ln -s nowhere dangling; ln -s /etc/passwd absolute; ln -s d folder; ln -s ../../../.. up; ln -s self self; ln -s .git/config config`,
    agent: "echo 2 >> folder/f && ln -s d/f new && rm dangling && ln -s elsewhere dangling",
    check: `${changed("d/f", "new", "dangling")}; test "$(git ls-tree HEAD new | cut -c1-6)" = 120000; test "$(git show HEAD:absolute)" = /etc/passwd`,
  },
  {
    called: "executable bits",
    commands: "echo 1 > run.sh; chmod +x run.sh; echo 2 > plain.sh",
    agent: "test -x run.sh && ! test -x plain.sh && chmod +x plain.sh && chmod -x run.sh",
    check: `git ls-tree HEAD run.sh | grep -q ^100644; git ls-tree HEAD plain.sh | grep -q ^100755`,
  },
  {
    called: "attributes for archives, idents, encodings and missing filters",
    commands: `printf '*.txt export-ignore\\n*.c ident\\n*.u16 working-tree-encoding=UTF-16LE eol=crlf\\n*.enc filter=crypt diff=crypt merge=crypt\\n' > .gitattributes; printf '$Id$\\n' > a.c; echo 1 > a.txt; printf 'a\\0\\r\\0\\n\\0' > a.u16; echo 1 > a.enc`,
    agent: `grep -q 'Id: ' a.c && echo 2 >> a.c && echo 2 >> a.txt && echo 2 >> a.enc && printf 'b\\0\\r\\0\\n\\0' >> a.u16`,
    check: `${changed("a.c", "a.txt", "a.enc", "a.u16")}; test "$(git show HEAD:a.c | head -1)" = '$Id$'; test "$(git show HEAD:a.u16)" = $'a\\nb'`,
  },
  {
    called: "text with a zero byte far from its beginning",
    commands: `{ yes line | head -c 20000; printf '\\0'; echo end; } > a.txt`,
    agent: "echo more >> a.txt",
    check: changed("a.txt"),
  },
  {
    called: "names with control characters",
    commands: `echo 1 > $'one\\001'; echo 1 > $'\\033[2J'`,
    agent: `echo 2 >> "$(printf 'one\\001')" && echo 3 > "$(printf 'two\\001three')"`,
    check: `test "$(git diff --name-only -z "$base" HEAD | tr '\\0\\001' '/%')" = 'one%/two%three/'`,
  },
  {
    called: "a line of attributes that is too long for git, which ignores it",
    commands: `{ head -c 3000 /dev/zero | tr '\\0' a; echo ' text'; echo '*.bat text eol=crlf'; } > .gitattributes; printf 'a\\n' > a.bat`,
    agent: "printf 'b\\r\\n' > b.bat",
    check: `${changed("b.bat")}; test "$(git show HEAD:b.bat | wc -c)" = 2`,
  },
  {
    called: "tags, of which versions are made",
    commands:
      "echo 1 > a.txt; git add . && git commit -qm One; git tag -a v1.0 -m One; git tag light; git tag of-a-blob main:a.txt; echo 2 > a.txt; git add . && git commit -qm Two; git checkout -q -b other && git commit -q --allow-empty -m Other && git tag elsewhere && git checkout -q main",
    agent:
      "git fsck --connectivity-only > fsck.txt 2>&1 && rm fsck.txt && { git describe --long; git tag; } > seen.txt",
    check: `${changed("seen.txt")}; git show HEAD:seen.txt | head -1 | grep -q '^v1.0-1-g'; test "$(git show HEAD:seen.txt | tail -n +2 | tr '\\n' ' ')" = 'light v1.0 '`,
  },
  {
    called: "a tag with the name of the default branch, and one of the work branch",
    commands: "echo 1 > a.txt; git add . && git commit -qm One; git tag main; git tag same; echo 2 > a.txt",
    agent: "cat a.txt > seen.txt",
    wish: { branchName: "same" },
    check: `test "$(git show HEAD:seen.txt)" = 2`,
  },
  {
    called: "branches with slashes, unicode and white space that git allows",
    commands: "echo 1 > a.txt; git add . && git commit -qm One; git branch 'füße/日本/x'",
    bare: "git symbolic-ref HEAD $'refs/heads/weite\\u3000straße'; git update-ref HEAD refs/heads/main",
    agent: "echo 2 > b.txt",
    wish: { branchName: "feature/ü/✓" },
    check: changed("b.txt"),
  },
  {
    called: "a target branch with slashes and unicode",
    commands: "echo 1 > a.txt; git add . && git commit -qm One; git branch 'füße/日本/x'",
    agent: "echo 2 > b.txt",
    wish: { targetBranch: "füße/日本/x" },
    check: changed("b.txt"),
  },
  {
    called: "a default branch of another name",
    commands: "echo 1 > a.txt",
    bare: "git branch -m main trunk",
    agent: "echo 2 > b.txt",
    check: changed("b.txt"),
  },
  {
    called: "50,000 branches",
    commands: "echo 1 > a.txt",
    bare: `sha="$(git rev-parse main)"; { echo '# pack-refs with: peeled fully-peeled sorted '; seq -f "$sha refs/heads/b/%06g" 1 50000; echo "$sha refs/heads/main"; } > packed-refs; rm refs/heads/main`,
    agent: "echo 2 > b.txt",
    check: changed("b.txt"),
  },
  {
    called: "folders 3,000 characters deep",
    commands: `p="$(printf 'a-folder-name/%.0s' $(seq 214))"; mkdir -p "$p"; echo 1 > "$p/f"`,
    agent: `echo 2 >> "$(printf 'a-folder-name/%.0s' $(seq 214))f"`,
    check: `test "$(git diff --name-only "$base" HEAD | wc -c)" -gt 2900`,
  },
  {
    called: "a file of 90 MB",
    commands: "head -c 90000000 /dev/zero | tr '\\0' 'a' | fold -w 100 > large.txt",
    agent: "test $(wc -c < large.txt) -gt 90000000 && echo 2 > b.txt",
    check: changed("b.txt"),
  },
  {
    called: "history without a common beginning, and merges",
    commands:
      "echo 1 > a.txt; git add . && git commit -qm One; git checkout -q --orphan other && echo 2 > c.txt && git add . && git commit -qm Other; git checkout -q main; git merge -q --allow-unrelated-histories -m Merge other",
    agent: "echo 2 > b.txt",
    check: changed("b.txt"),
  },
  {
    called: "a message and an author in another encoding",
    commands: `echo 1 > a.txt; git add .; printf 'caf\\xe9\\n' | git -c i18n.commitEncoding=ISO-8859-1 -c user.name=$'Ren\\xe9' commit -qF -`,
    agent: `echo 2 > b.txt && git add . && printf 'caf\\351' > /tmp/m && git -c i18n.commitEncoding=ISO-8859-1 commit -qF /tmp/m`,
    check: changed("b.txt"),
  },
];

describe("a session makes its pull request in a repository with", () => {
  test.each(cases)("$called", async ({ agent, check, wish = {}, ...seed }) => {
    const { name, url, path } = await seeded(seed);
    const { id } = await client.session.create({ prompt: `shell ${agent}`, repositories: [url], ...wish });
    const session = await untilOver(client, id);
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(await world.forge.pullRequests("acme", name)).toMatchObject([{ head: session.branchName }]);
    await inClone(path, session.branchName, check);
    const { repositories } = await client.session.diff(id);
    expect(repositories[0]?.patch).toContain("diff --git");
  });
});

describe("a session makes its branch in a repository whose address has", () => {
  test.each([
    ["a space, encoded", "my repo", (path: string) => `file://${encodeURI(path)}`],
    ["a space", "my repo 2", (path: string) => path],
    ["a percent sign", "100%25", (path: string) => path],
    ["a plus", "a+b", (path: string) => `file://${path}`],
    ["unicode", "größe-日本", (path: string) => path],
    ["unicode, encoded", "größe-日本-2", (path: string) => `file://${encodeURI(path)}`],
    ["a colon, a hash and a question mark", "a:b#c?d", (path: string) => path],
    ["quotes", `it's "quoted"`, (path: string) => path],
  ])("%s, on this machine", async (_, name, addressOf) => {
    const { path } = await seeded({ commands: "echo a > a.txt" }, name);
    const { id } = await client.session.create({
      prompt: "write b.txt: b",
      repositories: [addressOf(path)],
      branchName: "work",
    });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
    await inClone(path, "work", changed("b.txt"));
  });

  test.each([
    ["a space", "your repo", "your%20repo"],
    ["an unencoded space", "your repo 2", "your repo 2"],
    ["a percent sign", "50%", "50%25"],
    ["a plus", "c+d", "c+d"],
    ["unicode", "größe-日本-3", "größe-日本-3"],
  ])("%s, on a forge", async (_, name, written) => {
    const { path } = await seeded({ commands: "echo a > a.txt" }, name);
    const { id } = await client.session.create({
      prompt: "write b.txt: b",
      repositories: [`${world.forge.url}/acme/${written}`],
      branchName: "work",
    });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
    await inClone(path, "work", changed("b.txt"));
    expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  });
});

describe("before the agent works, the session says what is missing if", () => {
  test.each<{ called: string; wish?: Case["wish"]; words: RegExp; remedy: RegExp } & Seed>([
    {
      called: "there is a tag, and no branch",
      commands: "echo 1 > a.txt; git add . && git commit -qm One; git tag v1",
      bare: "git update-ref -d refs/heads/main",
      words: /has no branch with a commit yet/u,
      remedy: /Push a first commit to a branch/u,
    },
    {
      called: "its history is cut off",
      commands: "echo 1 > a.txt; git add . && git commit -qm One; echo 2 > a.txt",
      bare: `git clone -q --bare --depth 1 "file://$PWD" ../cut-off && rm -rf ./* && mv ../cut-off/* . && rmdir ../cut-off`,
      words: /only the newest part of its history/u,
      remedy: /--unshallow/u,
    },
    {
      called: "HEAD points to a branch that is not there",
      commands: "echo 1 > a.txt",
      bare: "git branch -m main develop; git symbolic-ref HEAD refs/heads/gone",
      words: /default branch .* does not exist.*develop/u,
      remedy: /targetBranch/u,
    },
    {
      called: "HEAD points to no branch",
      commands: "echo 1 > a.txt",
      bare: 'git update-ref --no-deref HEAD "$(git rev-parse main)"',
      words: /default branch.*main/u,
      remedy: /targetBranch/u,
    },
    {
      called: "the target was renamed",
      commands: "echo 1 > a.txt",
      bare: "git branch -m main trunk",
      wish: { targetBranch: "main" },
      words: /has no branch main.*default branch is trunk/u,
      remedy: /targetBranch/u,
    },
    {
      called: "a branch has the name of the work branch's folder",
      commands: "echo 1 > a.txt; git add . && git commit -qm One; git branch offstage",
      wish: { branchName: "offstage/x" },
      words: /branch offstage, beside which .* offstage\/x can't exist/u,
      remedy: /branchName/u,
    },
    {
      called: "there are branches below the work branch's name",
      commands: "echo 1 > a.txt; git add . && git commit -qm One; git branch fix/deep",
      wish: { branchName: "fix" },
      words: /branch fix\/deep, beside which .* fix can't exist/u,
      remedy: /branchName/u,
    },
  ])("$called", async ({ wish = {}, words, remedy, ...seed }) => {
    const { url } = await seeded(seed);
    const { id } = await client.session.create({ prompt: "write b.txt: b", repositories: [url], ...wish });
    const session = await untilOver(client, id);
    expect(session).toMatchObject({ status: "failed", failure: { retryable: false } });
    expect(session.failure?.reason).toMatch(words);
    expect(session.failure?.remedy).toMatch(remedy);
    const { events } = await client.session.events(id, { limit: 1_000 });
    expect(events.filter(({ type }) => type === "agent.started")).toEqual([]);
  });
});

test("a session goes on, without being asked, on a worker whose copy of the repository can't be read any more", async () => {
  const { name, url, path } = await seeded({ commands: "echo a > a.txt" });
  const { id } = await client.session.create({ prompt: "write b.txt: b", repositories: [url] });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed" });
  const mirror = mirrorPath(join(world.data, "mirrors"), url);
  await writeFile(join(mirror, "HEAD"), "");
  await client.session.message(id, { message: "write c.txt: c" });
  const session = await untilOver(client, id);
  expect(session).toMatchObject({ status: "completed", failure: null });
  await inClone(path, session.branchName, changed("c.txt"));
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("a repository that was empty at first is worked on once it has a commit, whatever names its objects have", async () => {
  const { name, url, path } = await seeded({ commands: "true", objectFormat: "sha256" });
  const request = { prompt: "write b.txt: b", repositories: [url] };
  const first = await client.session.create(request);
  expect(await untilOver(client, first.id)).toMatchObject({ status: "failed", failure: { retryable: false } });
  await seedRepository(path, { commands: "echo a > a.txt", objectFormat: "sha256" });
  const second = await client.session.create(request);
  const session = await untilOver(client, second.id);
  expect(session).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", name)).toMatchObject([{ head: session.branchName }]);
  await inClone(path, session.branchName, changed("b.txt"));
});
