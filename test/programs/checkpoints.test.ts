import { execFileSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeEach, describe, expect, test } from "vitest";
import { awkwardNames, createRepository, filesIn, receive, type Repository } from "./repository.ts";
import { runProgram, shells, useFolder } from "./run.ts";

const folder = useFolder();

describe.each(shells)("pack-work.sh and restore-work.sh in %s", (shell) => {
  let repository: Repository;
  let kept: string;

  beforeEach(async () => {
    repository = await createRepository(folder.path);
    kept = join(folder.path, "kept.git");
    await repository.run(`git init -q --bare '${kept}'`);
    await writeFile(join(kept, "objects/info/alternates"), `${join(repository.mirror, "objects")}\n`);
  });

  async function pack(options: { last?: { head: string; tree: string; state: string } } = {}) {
    const { base, mirror, path, environment } = repository;
    const end = await runProgram(
      ["worker/export/stage-all.sh", "worker/export/merge-state.sh", "worker/checkpoints/pack-work.sh"],
      {
        shell,
        cwd: path,
        environment: {
          ...environment,
          OFFSTAGE_BASE: base,
          OFFSTAGE_LFS_FILTER: "false",
          OFFSTAGE_BEFORE: base,
          OFFSTAGE_KNOWN: base,
          OFFSTAGE_MIRROR: join(mirror, "objects"),
          OFFSTAGE_CHECKPOINTS: join(kept, "objects"),
          OFFSTAGE_LAST:
            options.last === undefined ? "" : `${options.last.head} ${options.last.tree} ${options.last.state}`,
          OFFSTAGE_OURS: "",
        },
      },
    );
    if (end.stdout.length > 0) await receive(kept, end.stdout);
    const report = /^offstage-checkpoint (\S+) (\S+) (\S+) (\S+)$/mu.exec(end.stderr);
    const [, head = "", commit = "", tree = "", state = ""] = report ?? [];
    return { ...end, head, commit, tree, state };
  }

  test("packs all files on top of the agent's HEAD, and changes nothing of the agent's", async () => {
    await repository.run("echo b > b && git add b && git commit -qm B && echo c > c && git add c && echo d > d");
    const state = "git status --porcelain; git rev-parse HEAD; find .git -type f | sort | xargs ls -l --time-style=+";
    const before = await repository.run(state);
    const { head, commit } = await pack();
    expect(await filesIn(kept, commit)).toEqual(["a", "b", "c", "d"]);
    expect(head).toBe(await repository.git("rev-parse", "HEAD"));
    expect(await repository.run(state)).toBe(before);
    expect(await repository.run('ls "$HOME"')).toBe("");
  });

  test("packs nothing if neither HEAD nor the files have changed", async () => {
    await repository.run("echo b > b");
    const last = await pack();
    const { code, stdout, stderr } = await pack({ last });
    expect([code, stdout.length, stderr]).toEqual([0, 0, ""]);
    await repository.run("git commit -q --allow-empty -m empty");
    expect((await pack({ last })).head).not.toBe(last.head);
  });

  test("takes files whatever their names are", async () => {
    for (const name of awkwardNames) await writeFile(repository.pathOf(name), "x");
    const { commit } = await pack();
    const expected = ["a", ...awkwardNames.map((name) => name.toString("latin1"))];
    expect((await filesIn(kept, commit)).toSorted()).toEqual(expected.toSorted());
  });

  test.each([
    ["lost its objects", "rm -rf .git/objects/*"],
    ["is gone", "rm -rf .git"],
    ["has another history", "rm -rf .git && git init -q && git add a && git commit -qm other"],
  ])("takes the files of a repository that %s, on top of the last known commit", async (_, spoil) => {
    await repository.run(`echo b > b; ${spoil}`);
    const { head, commit } = await pack();
    expect([head, await filesIn(kept, commit)]).toEqual([repository.base, ["a", "b"]]);
  });

  test("takes a file that was changed within the second in which the index was written, to the same size", async () => {
    const then = "touch -d '2020-01-01 00:00:00'";
    // What tells the two apart otherwise would be the time of the test.
    await repository.run("git config core.trustctime false");
    await repository.run(`echo one > b; ${then} b; git add b; ${then} .git/index; echo two > b; ${then} b`);
    const { commit } = await pack();
    expect(await filesIn(kept, commit)).toEqual(["a", "b"]);
    expect(execFileSync("git", ["show", `${commit}:b`], { cwd: kept, encoding: "utf8" })).toBe("two\n");
  });

  test("packs while the agent's git holds the index locked", async () => {
    await repository.run("echo b > b && touch .git/index.lock");
    const { commit } = await pack();
    expect(await filesIn(kept, commit)).toEqual(["a", "b"]);
    expect(await repository.run("ls .git/index.lock")).toBe(".git/index.lock");
  });

  test("brings the work back as it was: committed and uncommitted", async () => {
    await repository.run("echo b > b && git add b && git commit -qm B && echo changed > a && echo c > c");
    const { head, commit } = await pack();
    const other = await createRepository(join(folder.path, "other"));
    await other.run("echo of the setup > settings && echo /settings >> .git/info/exclude");
    const environment = {
      OFFSTAGE_CHECKPOINTS: kept,
      OFFSTAGE_COMMIT: commit,
      OFFSTAGE_HEAD: head,
      OFFSTAGE_STATE: "",
      OFFSTAGE_MESSAGE: "",
    };
    await other.git("fetch", "-q", repository.mirror, repository.base);
    expect(
      await runProgram(["worker/clones/each-gitlink.sh", "worker/checkpoints/restore-work.sh"], {
        shell,
        cwd: other.path,
        environment: { ...other.environment, ...environment },
      }),
    ).toMatchObject({ code: 0, stderr: "" });
    expect(await other.git("rev-parse", "HEAD")).toBe(head);
    expect(await other.run("cat a b c settings && git status --porcelain")).toBe(
      "changed\nb\nc\nof the setup\n M a\n?? c",
    );
  });

  test("brings no submodule back that the agent took out", async () => {
    const other = await createRepository(join(folder.path, "other"));
    for (const one of [repository, other]) {
      await one.run(
        "for path in committed left kept; do git init -q $path; GIT_COMMITTER_DATE=2020-01-01T00:00:00Z git -C $path commit -q --allow-empty -m inner --date=2020-01-01T00:00:00Z; git add $path; git config -f .gitmodules submodule.$path.path $path; done; git add .gitmodules; git commit -qm Submodules",
      );
    }
    await repository.run("git push -q ../clone.git work");
    await repository.run(
      "git rm -q --cached committed; rm -rf committed; git commit -qm Removed; git rm -q --cached left; rm -rf left",
    );
    const { head, commit } = await pack();
    await other.git("fetch", "-q", repository.mirror, "work");
    const restored = await runProgram(["worker/clones/each-gitlink.sh", "worker/checkpoints/restore-work.sh"], {
      shell,
      cwd: other.path,
      environment: {
        ...other.environment,
        OFFSTAGE_CHECKPOINTS: kept,
        OFFSTAGE_COMMIT: commit,
        OFFSTAGE_HEAD: head,
        OFFSTAGE_STATE: "",
        OFFSTAGE_MESSAGE: "",
      },
    });
    expect(restored.code).toBe(0);
    expect(await other.run("git add --all; git ls-files --stage | grep ^160000 | cut -f2")).toBe("kept");
  });
});

/** Names in a tar, each byte as one character. */
function namesIn(archive: Buffer): string[] {
  const listed = execFileSync("tar", ["--list", "--quoting-style=literal", "--null", "--file=-"], { input: archive });
  return listed.toString("latin1").split("\n");
}

describe.each(shells)("archive-files.sh in %s", (shell) => {
  const archive = () => runProgram("worker/checkpoints/archive-files.sh", { shell, cwd: folder.path });

  test("writes the same bytes for the same files, whenever they were written", async () => {
    await writeFile(join(folder.path, "b"), "1");
    await writeFile(join(folder.path, "a"), "1");
    const { stdout: first } = await archive();
    await rm(join(folder.path, "b"));
    await writeFile(join(folder.path, "b"), "1");
    const { stdout: second } = await archive();
    expect(second.equals(first)).toBe(true);
  });

  test("takes files whatever their names are", async () => {
    for (const name of awkwardNames) await writeFile(Buffer.concat([Buffer.from(`${folder.path}/`), name]), "x");
    const { code, stdout } = await archive();
    const names = namesIn(stdout).join("\n");
    expect(code).toBe(0);
    for (const name of awkwardNames) expect(names).toContain(`./${name.toString("latin1")}`);
  });

  test("does not fail if a file changes while it is read", async () => {
    // tar sees a file that is larger than it was at first: its own code for that is 1.
    const bin = join(folder.path, "bin");
    await mkdir(bin);
    await writeFile(join(bin, "tar"), "#!/bin/sh\nexit $TAR_CODE\n", { mode: 0o755 });
    const end = async (TAR_CODE: string) => {
      const environment = { PATH: `${bin}:${process.env["PATH"]}`, TAR_CODE };
      return (await runProgram("worker/checkpoints/archive-files.sh", { shell, cwd: folder.path, environment })).code;
    };
    expect([await end("0"), await end("1"), await end("2")]).toEqual([0, 0, 1]);
  });
});

describe("archive-memory.cjs", () => {
  let home: string;

  beforeEach(async () => {
    home = join(folder.path, "home");
    await mkdir(home);
  });

  async function archive(...patterns: string[]) {
    const { code, stdout, stderr } = await runProgram("worker/checkpoints/archive-memory.cjs", {
      cwd: home,
      arguments: patterns,
      environment: { HOME: home },
    });
    const names = stdout.length === 0 ? [] : namesIn(stdout).filter((name) => name !== "" && !name.endsWith("/"));
    return { code, stdout, stderr, names: names.toSorted() };
  }

  async function write(path: string, content = "x"): Promise<void> {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), content);
  }

  test("takes what the patterns name, folders with all that is in them, and leaves no copy behind", async () => {
    for (const path of [".h/history.jsonl", ".h/history.txt", ".h/sessions/1/a", ".h/sessions/2", ".h/auth.json"])
      await write(path);
    const { code, names } = await archive(".h/*.jsonl", ".h/sessions", ".none/*");
    expect([code, names]).toEqual([0, ["./.h/history.jsonl", "./.h/sessions/1/a", "./.h/sessions/2"]]);
    expect(execFileSync("ls", ["-A", join(home, ".offstage")]).toString()).toBe("");
  });

  test("takes a pattern's characters as they are", async () => {
    for (const path of [".h/a+b (1).json", ".h/a+b [1]$.json", ".h/aab (1)xjson", ".h/-v"]) await write(path);
    expect((await archive(".h/a+b*.json", ".h/-v")).names).toEqual([
      "./.h/-v",
      "./.h/a+b (1).json",
      "./.h/a+b [1]$.json",
    ]);
  });

  test("writes the same bytes for the same files", async () => {
    await write(".h/b");
    await write(".h/a");
    const { stdout: first } = await archive(".h/*");
    await rm(join(home, ".h/b"));
    await write(".h/b");
    expect((await archive(".h/*")).stdout.equals(first)).toBe(true);
  });

  test("takes a database that is in use whole, with what only its log has", async () => {
    await mkdir(join(home, ".h"));
    const database = new DatabaseSync(join(home, ".h/state.db"));
    database.exec("pragma journal_mode = wal; create table t (n integer); insert into t values (1)");
    database.exec("begin; insert into t values (2)");
    const { code, stdout, names } = await archive(".h/*");
    database.close();
    expect([code, names]).toEqual([0, ["./.h/state.db"]]);
    execFileSync("tar", ["--extract", "--file=-", `--directory=${folder.path}`], { input: stdout });
    const copy = new DatabaseSync(join(folder.path, ".h/state.db"));
    expect(copy.prepare("select n from t").all()).toEqual([{ n: 1 }]);
    copy.close();
  });

  test("fails rather than store half a memory", async () => {
    await write(".h/broken.db", "SQLite format 3\0 but no database");
    const { code, stdout } = await archive(".h/*");
    expect([code, stdout.length]).toEqual([1, 0]);
  });
});
