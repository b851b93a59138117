import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { unresolvedIn } from "../../src/worker/export/merge-state.ts";
import { awkwardNames, createRepository, filesIn, receive, type Repository } from "./repository.ts";
import { runProgram, shells, useFolder } from "./run.ts";

const folder = useFolder();

/** Exports a repository's work as the worker does. @returns the reported commits, and the files of the one that counts */
async function exportWork(
  repository: Repository,
  shell: string,
  merge: { ended?: boolean; ours?: string; changes?: readonly (string | Buffer)[] } = {},
) {
  const { changes } = merge;
  const programs = ["worker/export/stage-all.sh", "worker/export/merge-state.sh", "worker/export/export-work.sh"];
  const end = await runProgram(programs, {
    shell,
    cwd: repository.path,
    environment: {
      ...repository.environment,
      OFFSTAGE_BASE: repository.base,
      OFFSTAGE_LFS_FILTER: "false",
      OFFSTAGE_BEFORE: repository.base,
      OFFSTAGE_KNOWN: repository.base,
      OFFSTAGE_BRANCH: "work",
      OFFSTAGE_OBJECTS: join(repository.mirror, "objects"),
      OFFSTAGE_MESSAGE: "What was left\n\nwith 'quotes' and $(nothing)",
      OFFSTAGE_ENDED: merge.ended === false ? "" : "yes",
      OFFSTAGE_OURS: merge.ours ?? "",
      ...(changes !== undefined && { OFFSTAGE_CHECKOUT: repository.base }),
    },
    ...(changes !== undefined && {
      input: Buffer.concat(changes.flatMap((entry) => [Buffer.from(entry), Buffer.from("\0")])),
    }),
  });
  const reported = (mark: string) => new RegExp(`^${mark} ([0-9a-f]{40})$`, "mu").exec(end.stderr)?.[1] ?? null;
  const head = reported("offstage-head");
  if (end.stdout.length > 0) await receive(repository.mirror, end.stdout);
  return { ...end, head, committed: reported("offstage-committed") };
}

describe.each(shells)("export-work.sh in %s", (shell) => {
  test("commits what is uncommitted, and packs it with the agent's commits", async () => {
    const repository = await createRepository(folder.path);
    await repository.run("echo b > b && git add b && git commit -qm B && echo c > c && echo more >> a");
    const { head, committed } = await exportWork(repository, shell);
    expect(committed).toBe(head);
    expect(await filesIn(repository.mirror, head)).toEqual(["a", "b", "c"]);
    expect(await repository.git("log", "-1", "--format=%B", head ?? "")).toBe(
      "What was left\n\nwith 'quotes' and $(nothing)",
    );
    expect(await repository.git("rev-parse", "HEAD~2")).toBe(repository.base);
  });

  test("commits what a list of an overlay's changes names, and what the index has otherwise, and looks at no other file", async () => {
    const repository = await createRepository(folder.path);
    for (const name of awkwardNames) await writeFile(repository.pathOf(name), "x");
    await repository.run(
      "echo unlisted >> a; mkdir -p new/deep; echo n > new/deep/n; echo log > new/x.log; echo i > i.log",
    );
    await repository.run("echo staged > staged && git add staged && echo '*.log' > .gitignore");
    const named = awkwardNames.map((name) => Buffer.concat([Buffer.from("f"), name]));
    const { head } = await exportWork(repository, shell, {
      changes: [...named, "dnew", "f.gitignore", "fi.log", "wgone"],
    });
    const names = awkwardNames.map((name) => name.toString("latin1"));
    const expected = ["a", ".gitignore", "new/deep/n", "staged", ...names];
    expect((await filesIn(repository.mirror, head)).toSorted()).toEqual(expected.toSorted());
    expect(await repository.gitInMirror("show", `${head}:a`)).toBe("a");
  });

  test.each([
    ["a repository in it", "git init -q inner && echo x > inner/x", ["ninner/.git"]],
    ["a repository in a new folder", "mkdir new && git init -q new/inner && echo x > new/inner/x", ["dnew"]],
    [
      "a file that git is set not to look at",
      "git update-index --assume-unchanged a && touch b && git rm -q --cached b",
      ["wb"],
    ],
  ])("looks at all files if the list does not do, because of %s", async (_, commands, changes) => {
    const repository = await createRepository(folder.path);
    await repository.run("echo b > b && git add b && git commit -qm b");
    await repository.run(`${commands}; echo unlisted > c`);
    const { head } = await exportWork(repository, shell, { changes });
    expect(await filesIn(repository.mirror, head)).toEqual(expect.arrayContaining(["c"]));
  });

  test("packs nothing if nothing is new", async () => {
    const repository = await createRepository(folder.path);
    const { stdout, head, committed } = await exportWork(repository, shell);
    expect([stdout.length, head, committed]).toEqual([0, repository.base, null]);
  });

  test("takes files whatever their names are", async () => {
    const repository = await createRepository(folder.path);
    for (const name of awkwardNames) await writeFile(repository.pathOf(name), "x");
    const { head } = await exportWork(repository, shell);
    const expected = ["a", ...awkwardNames.map((name) => name.toString("latin1"))];
    expect((await filesIn(repository.mirror, head)).toSorted()).toEqual(expected.toSorted());
  });

  test("takes the session's branch if the agent only looked elsewhere", async () => {
    const repository = await createRepository(folder.path);
    await repository.run("git branch old && echo b > b && git add b && git commit -qm B && git checkout -q old");
    const { head, committed } = await exportWork(repository, shell);
    expect([head, committed]).toEqual([await repository.git("rev-parse", "work"), null]);
  });

  test("is stopped by no lock of a git that was killed", async () => {
    const repository = await createRepository(folder.path);
    await repository.run("touch .git/index.lock .git/HEAD.lock .git/refs/heads/work.lock && echo b > b");
    const { code, head } = await exportWork(repository, shell);
    expect([code, await filesIn(repository.mirror, head)]).toEqual([0, ["a", "b"]]);
  });

  test.each([
    ["a repository that lost its objects", "rm -rf .git/objects/*"],
    ["another repository", "rm -rf .git && git init -q && git add a && git commit -qm other"],
    ["no repository", "rm -rf .git"],
  ])("takes the files of %s, on top of the last known commit", async (_, spoil) => {
    const repository = await createRepository(folder.path);
    await repository.run(`echo b > b; ${spoil}`);
    const { head } = await exportWork(repository, shell);
    expect(await filesIn(repository.mirror, head)).toEqual(["a", "b"]);
    expect(await repository.gitInMirror("rev-parse", `${head}^`)).toBe(repository.base);
  });

  test("runs none of the agent's hooks", async () => {
    const repository = await createRepository(folder.path);
    await repository.run("echo 'exit 1' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && echo b > b");
    const { code, head } = await exportWork(repository, shell);
    expect([code, await filesIn(repository.mirror, head)]).toEqual([0, ["a", "b"]]);
  });

  test("fails with git's message if the files can't be taken", async () => {
    const repository = await createRepository(folder.path);
    // What another filter refuses is left out, but no content in LFS is.
    await repository.run("git config filter.lfs.process false && git config filter.lfs.required true");
    await repository.run("echo 'b filter=lfs' > .gitattributes && echo b > b");
    const { code, head, stderr } = await exportWork(repository, shell);
    expect([code !== 0, head]).toEqual([true, null]);
    // The filter ends before or after git asks it.
    expect(stderr).toMatch(/clean filter 'lfs' failed|the remote end hung up unexpectedly/u);
  });

  test.each([
    ["without a commit", "git init -q inner && echo b > inner/b", ["a", "inner/b"]],
    ["with commits", "git init -q inner && cd inner && echo b > b && git add b && git commit -qm B", ["a", "inner/b"]],
    ["in the place of a file", "rm a && git init -q a && echo b > a/b", ["a/b"]],
    [
      "in the place of a file, with commits",
      "rm a && git init -q a && cd a && echo b > b && git add b && git commit -qm B",
      ["a/b"],
    ],
    [
      "in one that the agent made too",
      "git init -q inner && git init -q inner/most && echo b > inner/most/b",
      ["a", "inner/most/b"],
    ],
    ["whose name has spaces at its ends", "git init -q ' in ' && echo b > ' in /b'", [" in /b", "a"]],
  ])("takes the files of a repository %s inside", async (_, commands, files) => {
    const repository = await createRepository(folder.path);
    await repository.run(commands);
    const { head } = await exportWork(repository, shell);
    expect(await filesIn(repository.mirror, head)).toEqual(files);
  });

  test("takes the files of repositories inside whatever their names are", async () => {
    const repository = await createRepository(folder.path);
    for (const name of awkwardNames) {
      await mkdir(repository.pathOf(name));
      await writeFile(repository.pathOf(Buffer.concat([name, Buffer.from("/b")])), "x");
    }
    await repository.run("find . -mindepth 1 -maxdepth 1 ! -name .git -type d -exec git init --quiet {} ';'");
    const { head, stderr } = await exportWork(repository, shell);
    expect(stderr).toBe(`offstage-committed ${head}\noffstage-head ${head}\n`);
    const expected = ["a", ...awkwardNames.map((name) => `${name.toString("latin1")}/b`)];
    expect((await filesIn(repository.mirror, head)).toSorted()).toEqual(expected.toSorted());
  });

  test("keeps a repository that was cloned from elsewhere as one, and leaves another worktree out", async () => {
    const repository = await createRepository(folder.path);
    await repository.run("git clone -q . clone && git worktree add -q tree");
    const { head } = await exportWork(repository, shell);
    expect(await filesIn(repository.mirror, head)).toEqual(["a", "clone"]);
    expect(await repository.gitInMirror("ls-tree", head ?? "", "clone")).toMatch(/^160000 commit /u);
  });

  test("takes a file that its owner may not read", async () => {
    const repository = await createRepository(folder.path);
    await mkdir(join(repository.path, "folder"));
    await repository.run("echo b > folder/b && chmod 000 folder/b");
    const { head } = await exportWork(repository, shell);
    expect(await filesIn(repository.mirror, head)).toEqual(["a", "folder/b"]);
  });
});

/** A merge that collides in files without markers: `git` leaves one side of each. */
async function collide(repository: Repository, names: readonly Buffer[]): Promise<string> {
  const commit = async (content: string): Promise<void> => {
    for (const name of names) await writeFile(repository.pathOf(name), `${content}\0`);
    await repository.run(`git add -A && git commit -qm ${content}`);
  };
  await repository.run("git checkout -q -b other");
  await commit("theirs");
  const theirs = await repository.git("rev-parse", "HEAD");
  await repository.run("git checkout -q work");
  await commit("mine");
  await repository.run("git merge -q other || true");
  return theirs;
}

describe.each(shells)("with a merge under way, export-work.sh in %s", (shell) => {
  test("names unresolved files of any name, and commits nothing", async () => {
    const repository = await createRepository(folder.path);
    await collide(repository, awkwardNames);
    const head = await repository.git("rev-parse", "HEAD");
    const state = "git ls-files --stage; git rev-parse HEAD MERGE_HEAD";
    const before = await repository.run(state);
    const end = await exportWork(repository, shell);
    expect([end.code, end.head, end.committed]).toEqual([0, head, null]);
    const names = awkwardNames.map((name) => name.toString("utf8"));
    expect(unresolvedIn(end.stderr).toSorted()).toEqual(names.toSorted());
    expect(end.stderr).toMatch(/^offstage-unfinished$/mu);
    expect(await repository.run(state)).toBe(before);
  });

  test("commits it when each file was changed or staged, unless the turn was interrupted", async () => {
    const repository = await createRepository(folder.path);
    const theirs = await collide(repository, [Buffer.from("one"), Buffer.from("two"), Buffer.from("three")]);
    await repository.run("echo both > one && git checkout -q --theirs two && git add three");
    const head = await repository.git("rev-parse", "HEAD");
    const interrupted = await exportWork(repository, shell, { ended: false });
    expect([interrupted.head, interrupted.committed]).toEqual([head, null]);
    const ended = await exportWork(repository, shell);
    expect(await repository.git("rev-parse", `${ended.committed}^2`)).toBe(theirs);
    expect(await repository.git("show", `${ended.head}:one`)).toBe("both");
  });

  test("takes a link and a submodule for unresolved while they are as git left them", async () => {
    const repository = await createRepository(folder.path);
    await repository.run("git checkout -q -b other && ln -s theirs link && git add link");
    await repository.run(`git update-index --add --cacheinfo 160000,${repository.base},sub && git commit -qm theirs`);
    await repository.run("git checkout -q work && ln -s mine link && git add link && git commit -qm between");
    await repository.run("git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub && git commit -qm mine");
    await repository.run("git merge -q other || true");
    expect(unresolvedIn((await exportWork(repository, shell)).stderr).toSorted()).toEqual(["link", "sub"]);
    await repository.run("ln -sf both link");
    expect(unresolvedIn((await exportWork(repository, shell)).stderr)).toEqual(["sub"]);
  });

  test("takes the session's commit for the one that counts while its work is put on top of another", async () => {
    const repository = await createRepository(folder.path);
    await collide(repository, [Buffer.from("one")]);
    const ours = await repository.git("rev-parse", "HEAD");
    await repository.run("git merge --abort && git checkout -q other && git cherry-pick work || true");
    const { head } = await exportWork(repository, shell, { ended: false, ours });
    expect(head).toBe(ours);
  });
});

describe.each(shells)("move-to-signed.sh in %s", (shell) => {
  const move = (repository: Repository, unsigned: string, signed: string) =>
    runProgram(["worker/export/move-to-signed.sh"], {
      shell,
      cwd: repository.path,
      environment: {
        ...repository.environment,
        OFFSTAGE_BRANCH: "work",
        OFFSTAGE_UNSIGNED: unsigned,
        OFFSTAGE_SIGNED: signed,
      },
    });

  test("puts what is at the unsigned commit on the signed one, and leaves files and other branches", async () => {
    const repository = await createRepository(folder.path);
    await repository.run("git checkout -q -B work && echo b > b && git add b && git commit -qm B && git branch other");
    const unsigned = await repository.git("rev-parse", "HEAD");
    const signed = await repository.git("commit-tree", `${unsigned}^{tree}`, "-p", repository.base, "-m", "B, signed");
    await writeFile(repository.pathOf(Buffer.from("left")), "not committed");
    expect(await move(repository, unsigned, signed)).toMatchObject({ code: 0 });
    expect(await repository.git("rev-parse", "HEAD")).toBe(signed);
    expect(await repository.git("symbolic-ref", "HEAD")).toBe("refs/heads/work");
    expect(await repository.git("rev-parse", "other")).toBe(unsigned);
    expect(await repository.git("status", "--porcelain")).toBe("?? left");
    // Again it finds nothing to do, as in a clone that is elsewhere.
    expect(await move(repository, unsigned, repository.base)).toMatchObject({ code: 0 });
    expect(await repository.git("rev-parse", "HEAD")).toBe(signed);
  });

  test("leaves a clone that the agent broke", async () => {
    const repository = await createRepository(folder.path);
    const head = await repository.git("rev-parse", "HEAD");
    await repository.run("rm -rf .git && mkdir .git");
    expect(await move(repository, head, head)).toMatchObject({ code: 0 });
  });
});

/** Takes a commit into the clone, or begins to join it, and reads what became of that. */
const joining = (repository: Repository, shell: string, theirs: string, onto: string) => {
  const run = (programs: readonly string[], more: Record<string, string> = {}) =>
    runProgram(programs, {
      shell,
      cwd: repository.path,
      environment: { ...repository.environment, OFFSTAGE_THEIRS: theirs, OFFSTAGE_ONTO: onto, ...more },
    });
  return {
    takeIn: async (to: string) => {
      const head = await repository.git("rev-parse", "HEAD");
      return run(["worker/clones/each-gitlink.sh", "worker/clones/take-in.sh"], {
        OFFSTAGE_FROM: head,
        OFFSTAGE_AT: head,
        OFFSTAGE_BRANCH: "work",
        OFFSTAGE_TO: to,
        OFFSTAGE_MESSAGE: "Join 'both'\n\n$(nothing)",
      });
    },
    async state() {
      const programs = ["worker/export/merge-state.sh", "worker/export/join-state.sh"];
      const { stderr } = await run(programs, { OFFSTAGE_LFS_FILTER: "" });
      return { state: /^offstage-join (\S+)$/mu.exec(stderr)?.[1], unresolved: unresolvedIn(stderr) };
    },
  };
};

/**
 * Commands that record a submodule at its first commit and check it out there, as the worker does.
 * @returns its two commits; only the first is in the folder
 */
async function addSubmodules(repository: Repository, ...paths: readonly string[]): Promise<[string, string]> {
  const commits = await repository.run(
    "git init -q ../library; cd ../library; echo 1 > l; git add l; git commit -qm 1; echo 2 > l; git commit -qam 2; git rev-parse HEAD~1 HEAD",
  );
  const [first = "", second = ""] = commits.split("\n");
  for (const path of paths) {
    const inner = `git -C '${path}'`;
    await repository.run(
      `git init -q '${path}'; ${inner} fetch -q --depth=1 file://"$PWD"/../library ${first}; ${inner} checkout -q ${first}; ${inner} update-ref refs/remotes/origin/recorded ${first}; git update-index --add --cacheinfo '160000,${first},${path}'; git config -f .gitmodules 'submodule.${path}.path' '${path}'`,
    );
  }
  await repository.run("git add .gitmodules; git commit -qm Submodules; git push -q ../clone.git HEAD:work");
  return [first, second];
}

describe.each(shells)("submodules in %s", (shell) => {
  const recorded = async ({ git }: Repository, ...paths: readonly string[]): Promise<string[]> => {
    const entries = await Promise.all(paths.map((path) => git("ls-files", "--stage", "--", `:(literal)${path}`)));
    return entries.map((entry) => entry.split(" ")[1] ?? "");
  };

  test("keep the commit that an earlier turn recorded, if the folder is as it was made", async () => {
    const repository = await createRepository(folder.path);
    const [, second] = await addSubmodules(repository, "lib");
    const before = await repository.run(
      `git update-index --cacheinfo 160000,${second},lib; git commit -qm Newer; git push -q ../clone.git HEAD:work; git rev-parse HEAD`,
    );
    await repository.run("echo b > b");
    const { head } = await exportWork({ ...repository, base: before }, shell);
    expect(await repository.gitInMirror("rev-parse", `${head}:lib`)).toBe(second);
    expect(await repository.gitInMirror("diff", "--name-only", before, head ?? "")).toBe("b");
  });

  test("are as others left them when their commit is taken in, and `git add --all` takes nothing back", async () => {
    const repository = await createRepository(folder.path);
    const awkward = "new [1]*";
    const [first, second] = await addSubmodules(repository, "lib", "gone", awkward, "dirty", "to-files");
    const others = `git clone -q --no-checkout -b work ../clone.git ../others && cd ../others && git reset -q`;
    const change = `git update-index --cacheinfo 160000,${second},lib && git update-index --force-remove gone dirty to-files '${awkward}' && git update-index --add --cacheinfo 160000,${first},moved && mkdir to-files && echo f > to-files/f && git add to-files/f && git commit -qm others && git rev-parse HEAD`;
    const theirs = await repository.run(`${others} && ${change}`);
    await repository.run("git fetch -q --no-recurse-submodules ../others; echo changed > dirty/l");
    const { takeIn } = joining(repository, shell, theirs, "");
    expect((await takeIn(theirs)).stderr).toMatch(/^offstage-taken-in$/mu);
    expect(await repository.run("git add --all; git status --porcelain; ls; cat dirty/l to-files/f")).toBe(
      ["a", "dirty", "lib", "moved", "to-files", "changed", "f"].join("\n"),
    );
    expect(await recorded(repository, "lib", "moved", "gone", "dirty", awkward)).toEqual([second, first, "", "", ""]);
    const { head } = await exportWork({ ...repository, base: theirs }, shell);
    expect(head).toBe(theirs);
    // What is recorded at the folder's own commit again is looked at again.
    const back = await repository.run(
      `cd ../others; git update-index --cacheinfo 160000,${first},lib; git commit -qm back; git rev-parse HEAD`,
    );
    await repository.run("git fetch -q --no-recurse-submodules ../others");
    await takeIn(back);
    expect(await repository.git("ls-files", "-t", "lib")).toBe("H lib");
  });

  test("are brought to the commits that others recorded, but for those in which something was done, and nothing is lost", async () => {
    const repository = await createRepository(folder.path);
    const awkward = "cut [off]* here";
    const paths = ["lib", "dirty", "ahead", awkward, "dangling", "file/within", "new", "-rf"];
    const [first, second] = await addSubmodules(repository, ...paths.slice(0, 4));
    // As the worker makes them, each beside the file that says what it is.
    const from = join(folder.path, "renewed");
    await mkdir(from);
    for (const [number, path] of [...paths, "gone", "lib/inner"].entries()) {
      const place = join(from, String(number));
      await mkdir(place);
      await writeFile(`${place}-path`, path);
      await writeFile(`${place}-sha`, second);
      await writeFile(`${place}-within`, path === "lib/inner" ? "0" : "");
      if (path === "gone") continue;
      await repository.run(
        `git init -q '${place}'; cd '${place}'; git fetch -q --depth=1 file://"$OLDPWD"/../library ${second}; git update-ref --no-deref HEAD ${second}; git reset -q --hard; git update-ref refs/remotes/origin/recorded ${second}; git config remote.origin.url https://new.example/library`,
      );
    }
    for (const path of paths) await repository.git("update-index", "--add", "--cacheinfo", `160000,${second},${path}`);
    await repository.git("update-index", "--skip-worktree", "--", "lib");
    await repository.run("ln -s nowhere dangling; echo one > file");
    await repository.run(
      `cd lib; git checkout -q -b own; echo own > own; git add own; git commit -qm own; git checkout -q --detach ${first}; printf 'ignored\\ninner\\n' > .git/info/exclude; echo kept > ignored; touch .git/index.lock`,
    );
    await repository.run("echo changed > dirty/l; cd ahead; echo 1 > more; git add more; git commit -qm more");
    await repository.run(`cd '${awkward}'; rm l; touch .git/offstage-renewing`);
    const renew = () =>
      runProgram(["worker/clones/each-gitlink.sh", "worker/clones/renew-submodules.sh"], {
        shell,
        cwd: repository.path,
        environment: { ...repository.environment, OFFSTAGE_RENEWED: from },
      });
    for (let times = 0; times < 2; times += 1) {
      const end = await renew();
      expect([end.code, end.stdout.toString()]).toEqual([0, "0\n3\n6\n7\n9\n"]);
      expect(
        await repository.run(`cat lib/l lib/inner/l '${awkward}/l' new/l ./-rf/l lib/ignored dirty/l ahead/l`),
      ).toBe(["2", "2", "2", "2", "2", "kept", "changed", "1"].join("\n"));
      expect(await repository.run("cd lib; git rev-parse HEAD; git show own:own; git config remote.origin.url")).toBe(
        [second, "own", "https://new.example/library"].join("\n"),
      );
      for (const path of ["lib/inner", awkward, "new", "-rf"])
        expect(await repository.git("-C", path, "status", "--porcelain")).toBe("");
    }
    expect(await repository.git("ls-files", "-t", "lib")).toBe("H lib");
    // What is recorded by then is another commit: nothing is done.
    await repository.git("update-index", "--cacheinfo", `160000,${first},new`);
    expect((await renew()).stdout.toString()).toBe("0\n3\n7\n9\n");
  });
});

describe.each(shells)("take-in.sh and join-state.sh in %s", (shell) => {
  /** Two commits on top of the base that collide in `a`. @returns those of others */
  async function diverge(repository: Repository): Promise<string> {
    await repository.run("git checkout -q -b other && echo theirs > a && git commit -qam theirs");
    const theirs = await repository.git("rev-parse", "HEAD");
    await repository.run("git checkout -q work && echo mine > a && git commit -qam mine");
    return theirs;
  }

  test("bring a clone to a commit, and leave ignored files", async () => {
    const repository = await createRepository(folder.path);
    const theirs = await diverge(repository);
    await repository.run("echo kept > ignored && echo ignored > .git/info/exclude && touch .git/index.lock");
    const { takeIn, state } = joining(repository, shell, theirs, "");
    expect((await takeIn(theirs)).stderr).toMatch(/^offstage-taken-in$/mu);
    expect(await repository.run("git rev-parse work; cat a ignored; git status --porcelain")).toBe(
      [theirs, "theirs", "kept"].join("\n"),
    );
    expect(await state()).toEqual({ state: "done", unresolved: [] });
  });

  test("leave the clone in the middle of a merge, and say when it is done or thrown away", async () => {
    const repository = await createRepository(folder.path);
    const theirs = await diverge(repository);
    const { takeIn, state } = joining(repository, shell, theirs, "");
    expect((await takeIn("")).stderr).toMatch(/^offstage-taken-in$/mu);
    expect(await repository.git("rev-parse", "MERGE_HEAD")).toBe(theirs);
    expect(await state()).toEqual({ state: "under-way", unresolved: ["a"] });
    await repository.run("echo both > a");
    expect(await state()).toEqual({ state: "under-way", unresolved: [] });
    await repository.run("git merge --abort");
    expect(await state()).toEqual({ state: "undone", unresolved: [] });
    expect((await takeIn("")).code).toBe(0);
    await repository.run("echo both > a && git add a && git commit -q --no-edit");
    expect(await state()).toEqual({ state: "done", unresolved: [] });
    expect(await repository.git("log", "-1", "--format=%s")).toBe("Join 'both'");
  });

  test("put work on top of a rewritten branch, and say if the agent threw it away", async () => {
    const repository = await createRepository(folder.path);
    const theirs = await diverge(repository);
    const { takeIn, state } = joining(repository, shell, theirs, repository.base);
    expect((await takeIn("")).stderr).toMatch(/^offstage-taken-in$/mu);
    expect(await repository.run("git rev-parse HEAD; git rev-parse --verify -q CHERRY_PICK_HEAD | wc -l")).toMatch(
      new RegExp(`^${theirs}\\n\\s*1$`, "u"),
    );
    expect(await state()).toEqual({ state: "under-way", unresolved: ["a"] });
    await repository.run("git cherry-pick --abort");
    expect(await state()).toEqual({ state: "emptied", unresolved: [] });
  });

  test("do nothing in a clone that is at another commit", async () => {
    const repository = await createRepository(folder.path);
    const theirs = await diverge(repository);
    const { takeIn } = joining(repository, shell, theirs, "");
    await repository.run("git checkout -q --detach");
    const head = await repository.git("rev-parse", "HEAD");
    const end = await runProgram(["worker/clones/each-gitlink.sh", "worker/clones/take-in.sh"], {
      shell,
      cwd: repository.path,
      environment: { ...repository.environment, OFFSTAGE_AT: theirs, OFFSTAGE_TO: theirs, OFFSTAGE_ONTO: "" },
    });
    expect([end.code === 0, end.stderr.includes("offstage-taken-in")]).toEqual([false, false]);
    expect(await repository.git("rev-parse", "HEAD")).toBe(head);
    // The same clone is taken there if it is where it is said to be.
    expect((await takeIn(theirs)).code).toBe(0);
  });
});
