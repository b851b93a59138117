import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { awkwardNames, createRepository, type Repository } from "./repository.ts";
import { runProgram, shells, useFolder } from "./run.ts";

const folder = useFolder();
let repository: Repository;

beforeEach(async () => {
  repository = await createRepository(folder.path);
});

/** Runs a program of the setup in a repository's clone. */
async function run(
  program: string,
  options: { in?: Repository; shell?: string; input?: string | Buffer; madeOf?: string } = {},
) {
  const { path, environment, git } = options.in ?? repository;
  const { madeOf = await git("rev-parse", "HEAD"), ...more } = options;
  const variables = { ...environment, OFFSTAGE_MADE_OF: madeOf };
  return runProgram(`worker/setup/${program}`, { cwd: path, environment: variables, ...more });
}

async function namesIn(path: string): Promise<string[]> {
  return (await readdir(path, { encoding: "buffer" })).map((name) => name.toString("latin1")).toSorted();
}

describe.each(shells)("run-script.sh in %s", (shell) => {
  async function runScript(script: string) {
    await mkdir(join(repository.home, ".offstage"), { recursive: true });
    await writeFile(join(repository.home, ".offstage/setup"), script);
    const { path, environment } = repository;
    const parameters = [".offstage/setup"];
    const end = await runProgram("worker/setup/run-script.sh", {
      cwd: path,
      environment,
      shell,
      input: "not for it",
      arguments: parameters,
    });
    return { ...end, stdout: end.stdout.toString() };
  }

  test("runs a script with bash, which stops at the first command that fails, in a pipe too", async () => {
    const { code, stdout } = await runScript('echo "$BASH_VERSION" | cut -c1\nfalse | true\necho after\n');
    expect([code, stdout]).toEqual([1, expect.stringMatching(/^\d\n$/u)]);
  });

  test("obeys the script's own first line", async () => {
    const { code, stdout } = await runScript('#!/usr/bin/env node\nconsole.log(typeof process + " `a` $HOME");\n');
    expect([code, stdout]).toEqual([0, "object `a` $HOME\n"]);
  });

  test("gives the script no input, and its messages with its output", async () => {
    expect(await runScript("echo one >&2; cat; echo two")).toMatchObject({ code: 0, stdout: "one\ntwo\n", stderr: "" });
  });

  test("hides what the script writes from others", async () => {
    await runScript('echo token > "$HOME/token"');
    expect((await stat(join(repository.home, "token"))).mode & 0o077).toBe(0);
  });
});

describe.each(shells)("settle.sh in %s", (shell) => {
  test("resets tracked files, and keeps what the setup created out of git", async () => {
    await repository.run(
      "echo changed > a; mkdir -p node_modules/x .cache; echo 1 > node_modules/x/y; echo 2 > .cache/z",
    );
    await mkdir(join(repository.home, ".offstage"));
    expect(await run("settle.sh", { shell })).toMatchObject({ code: 0, stderr: "" });
    expect(await repository.git("status", "--porcelain")).toBe("");
    expect([await readFile(join(repository.path, "a"), "utf8"), existsSync(join(repository.path, ".cache/z"))]).toEqual(
      ["a\n", true],
    );
    expect(existsSync(join(repository.home, ".offstage"))).toBe(false);
    // Only what was there: a file that the agent makes later belongs to its work.
    await repository.run("mkdir -p src && echo 3 > src/z");
    expect(await repository.git("status", "--porcelain")).toBe("?? src/");
  });
});

describe.each(shells)("settle.sh in %s, of awkward names,", (shell) => {
  test.each(awkwardNames.map((name) => [JSON.stringify(name.toString("latin1")), name] as const))(
    "keeps %s out of git, as a file and as a folder",
    async (_, name) => {
      await writeFile(repository.pathOf(name), "x");
      await mkdir(repository.pathOf(Buffer.concat([Buffer.from("in "), name])));
      await writeFile(repository.pathOf(Buffer.concat([Buffer.from("in "), name, Buffer.from("/y")])), "x");
      expect(await run("settle.sh", { shell })).toMatchObject({ code: 0, stderr: "" });
      expect(await repository.git("status", "--porcelain")).toBe("");
    },
  );
});

describe.each(shells)("archive-work.sh and unpack-work.sh in %s", (shell) => {
  let other: Repository;

  beforeEach(async () => {
    other = await createRepository(join(folder.path, "other"));
  });

  async function carryOver(): Promise<string> {
    const archive = await run("archive-work.sh", { shell });
    expect(archive).toMatchObject({ code: 0, stderr: "" });
    const { code, stderr } = await run("unpack-work.sh", { shell, in: other, input: archive.stdout });
    expect(code).toBe(0);
    return stderr;
  }

  test("carry files of any name into another clone, and the list that keeps them out of git", async () => {
    for (const name of awkwardNames) await writeFile(repository.pathOf(name), "x");
    await repository.run(
      "mkdir -- '-made' && echo 1 > ./-made/b && echo /made-too >> .git/info/exclude && echo 2 > made-too",
    );
    await writeFile(join(other.path, ".git/info/exclude"), "/mine\n");
    await carryOver();
    expect(await namesIn(other.path)).toEqual(await namesIn(repository.path));
    expect(await readFile(join(other.path, ".git/info/exclude"), "utf8")).toMatch(/^\/mine\n(?:.*\n)*\/made-too\n$/u);
    expect(existsSync(join(other.path, ".git/offstage-exclude"))).toBe(false);
  });

  test("leave what is there as it is, and name what had no place", async () => {
    await repository.run("echo new > kept && mkdir folder && echo 1 > folder/b");
    await other.run("echo old > kept && echo file > folder");
    const said = await carryOver();
    expect([await other.run("cat kept folder"), said]).toEqual(["old\nfile", expect.stringContaining("folder/b")]);
  });

  test("let what differs from the commit that the result was made of be newer than what was built of that", async () => {
    await other.run("echo b > b && git add b && git commit -qm b && echo a, again > a && git commit -qam newer");
    await other.run("touch -d '2 hours ago' a b");
    await repository.run("echo built > built && touch -d '1 hour ago' built");
    const archive = await run("archive-work.sh", { shell });
    const madeOf = await other.git("rev-parse", "HEAD~1");
    await run("unpack-work.sh", { shell, in: other, input: archive.stdout, madeOf });
    expect(await other.run("find a b -newer built")).toBe("a");
  });

  test("carry a checked-out submodule, which git has as a commit alone", async () => {
    await repository.run("git init -q ../sub && cd ../sub && echo s > s && git add s && git commit -qm s");
    const add = "git -c protocol.file.allow=always submodule --quiet add ../sub sub && git commit -qm sub";
    await repository.run(add);
    await other.run(`git fetch -q ${repository.path} work && git reset -q --hard FETCH_HEAD`);
    await carryOver();
    expect(await other.run("cat sub/s && git status --porcelain")).toBe("s");
  });

  test("leave a submodule empty if its commit is not to be had, since another one would show as a change", async () => {
    await repository.run("git init -q ../sub && cd ../sub && echo s > s && git add s && git commit -qm s");
    await repository.run("git -c protocol.file.allow=always submodule --quiet add ../sub sub && git commit -qm sub");
    await other.run(`git fetch -q ${repository.path} work && git reset -q --hard FETCH_HEAD`);
    await other.run(`git update-index --cacheinfo 160000,${"1".repeat(40)},sub && git commit -qm newer`);
    await carryOver();
    expect(await other.run("ls -A sub; git status --porcelain")).toBe("");
  });

  test("fail if the archive was cut off", async () => {
    await repository.run("head -c 100000 /dev/urandom > big");
    const { stdout } = await run("archive-work.sh", { shell });
    const { stderr } = await run("unpack-work.sh", { shell, in: other, input: stdout.subarray(0, 50_000) });
    // tar's code is the same as for files that have no place: the caller reads its message.
    expect(stderr).toMatch(/Unexpected EOF/u);
  });
});

describe.each(shells)("unpack-home.sh in %s", (shell) => {
  test("puts files beneath those that are there", async () => {
    await repository.run("mkdir made && echo new > made/kept && echo new > made/added && tar -C made -cf made.tar .");
    await writeFile(join(repository.home, "kept"), "old\n");
    const input = await readFile(join(repository.path, "made.tar"));
    expect(await run("unpack-home.sh", { shell, input })).toMatchObject({ code: 0 });
    expect(await repository.run('cat "$HOME/kept" "$HOME/added"')).toBe("old\nnew");
  });

  test("skips what would go through a link of an agent's", async () => {
    await repository.run("mkdir -p made/.cache && echo x > made/.cache/x && tar -C made -cf made.tar ./.cache/x");
    const outside = join(folder.path, "outside");
    await writeFile(outside, "y");
    await symlink(outside, join(repository.home, ".cache"));
    const input = await readFile(join(repository.path, "made.tar"));
    const { code, stderr } = await run("unpack-home.sh", { shell, input });
    expect([code, stderr, await readFile(outside, "utf8")]).toEqual([0, expect.stringContaining(".cache/x"), "y"]);
  });
});

describe("remove-secrets.cjs", () => {
  const secret = "correct-horse-battery";

  async function removed(): Promise<string[]> {
    const { code, stdout, stderr } = await run("remove-secrets.cjs", { input: `${secret}\n` });
    expect([code, stderr]).toEqual([0, ""]);
    return JSON.parse(stdout.toString()) as string[];
  }

  test("deletes files of clone and home that have a line of a secret, and names them", async () => {
    await repository.run(`echo 'token=${secret}' > .npmrc && echo other > b && mkdir c && echo '${secret}' > c/d`);
    await writeFile(join(repository.home, ".netrc"), secret);
    expect((await removed()).toSorted()).toEqual(["./.npmrc", "./c/d", "~/.netrc"]);
    expect(await repository.run("find . -path ./.git -prune -o -type f -print | sort; ls -A ~")).toBe("./a\n./b");
  });

  test("deletes files whatever their names are", async () => {
    for (const name of awkwardNames) await writeFile(repository.pathOf(name), secret);
    await mkdir(repository.pathOf("in"));
    for (const name of awkwardNames)
      await writeFile(repository.pathOf(Buffer.concat([Buffer.from("in/"), name])), secret);
    expect(await removed()).toHaveLength(2 * awkwardNames.length);
    expect([await namesIn(repository.path), await namesIn(join(repository.path, "in"))]).toEqual([
      [".git", "a", "in"],
      [],
    ]);
  });

  test("deletes nothing if there is nothing", async () => {
    expect(await removed()).toEqual([]);
  });

  test("searches of .git only the submodules, which alone are archived", async () => {
    await repository.run(`mkdir -p .git/modules/x && echo '${secret}' | tee .git/modules/x/config > .git/description`);
    expect(await removed()).toEqual([".git/modules/x/config"]);
    expect(existsSync(join(repository.path, ".git/description"))).toBe(true);
  });

  test("searches binary files too, follows no link, and waits for no pipe", async () => {
    const outside = join(folder.path, "outside");
    await writeFile(outside, secret);
    await writeFile(join(repository.path, "binary"), Buffer.concat([Buffer.from([0, 1, 255]), Buffer.from(secret)]));
    await repository.run("mkdir folder && mkfifo folder/pipe");
    await symlink(outside, join(repository.path, "folder/link"));
    expect(await removed()).toEqual(["./binary"]);
    expect(existsSync(outside)).toBe(true);
  });

  test("fails if not all could be searched", async () => {
    const { path, environment } = repository;
    const PATH = join(folder.path, "bin");
    await mkdir(PATH);
    await writeFile(join(PATH, "grep"), "#!/bin/sh\necho 'no memory' >&2\nexit 2\n");
    await chmod(join(PATH, "grep"), 0o755);
    const { code, stderr, stdout } = await runProgram("worker/setup/remove-secrets.cjs", {
      cwd: path,
      environment: { ...environment, PATH: `${PATH}:${process.env["PATH"]}` },
      input: `${secret}\n`,
    });
    expect([code, stdout.toString()]).toEqual([1, ""]);
    expect(stderr).toContain("the search ended with 1: no memory");
  });
});
