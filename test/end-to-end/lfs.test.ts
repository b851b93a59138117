import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { lfsPath, lfsStore } from "../../src/worker/git/lfs/store.ts";
import { seedRepository } from "../forge/seed-repository.ts";
import { inOtherClone } from "../other-clone.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { recordedScript } from "./script.ts";

/** Files in Git LFS with the real git-lfs, from the request to the pull request. */
const isInstalled = spawnSync("git", ["lfs", "version"]).status === 0;
if (!isInstalled) console.warn("git-lfs is not installed: what needs it is not tested (apt-get install git-lfs)");

let world: World;
let offstage: Offstage;
let client: Client;
const prompts: string[] = [];

beforeAll(async () => {
  world = await createWorld(recordedScript(prompts));
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

const oidOf = (content: string): string => createHash("sha256").update(content).digest("hex");
const pointerOf = (content: string): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${Buffer.byteLength(content)}\n`;

/** Makes a repository whose file `old.bin` is in LFS, with its content on the forge's LFS server. */
async function repository(name: string, content: string, commands = "true") {
  const { url } = await world.forge.createRepository("acme", name, {});
  const stored = world.forge.lfs.pathOf("acme", name, oidOf(content));
  await mkdir(dirname(stored), { recursive: true });
  await writeFile(stored, content);
  await seedRepository(world.forge.pathOf("acme", name), {
    commands: `printf '*.bin filter=lfs diff=lfs merge=lfs -text\n' > .gitattributes; printf '%s' '${pointerOf(content)}' > old.bin; ${commands}`,
  });
  return { name, url, stored };
}

async function run(url: string, prompt: string) {
  const { id } = await client.session.create({ prompt, repositories: [url] });
  const session = await untilOver(client, id);
  const notices = await noticesOf(client, id);
  return { session, notices: notices.filter((text) => text.includes("LFS")) };
}

describe.runIf(isInstalled)("with git-lfs, a session", () => {
  test("sees contents, and its own are uploaded before the push, as pointers in git", async () => {
    const old = "x".repeat(100_000);
    const { name, url } = await repository("assets", old);
    const made = `${"y".repeat(2_000_000)}\n`;
    const work = `wc -c < old.bin > seen.txt; git status --porcelain >> seen.txt; head -c 2000000 /dev/zero | tr '\\0' y > new.bin; echo >> new.bin; git add . && git -c user.name=A -c user.email=a@example.com commit -qm New; echo more >> old.bin`;
    const { session, notices } = await run(url, `shell ${work}`);
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(notices).toEqual([]);
    expect(session.pullRequests).toHaveLength(1);
    const show = (path: string) => inOtherClone(world, url, `git show origin/${session.branchName}:${path}`);
    expect(await show("seen.txt")).toBe("100000\n?? seen.txt");
    expect(await show("new.bin")).toBe(pointerOf(made).trim());
    expect(await show("old.bin")).toBe(pointerOf(`${old}more\n`).trim());
    for (const content of [made, `${old}more\n`]) {
      expect(await readFile(world.forge.lfs.pathOf("acme", name, oidOf(content)), "utf8")).toBe(content);
    }
    // The diff is of pointers, and no credential is anywhere in the clone.
    expect((await client.session.diff(session.id)).repositories[0]?.patch).toContain(`+oid sha256:${oidOf(made)}`);
    const found = spawnSync("grep", [
      "-rl",
      world.forge.token,
      join(world.data, "sessions"),
      join(world.data, "mirrors"),
    ]);
    expect(found.stdout.toString()).toBe("");
    // A follow-up goes back to the first content, which is there.
    await client.session.message(session.id, {
      message: "shell git checkout -q origin/main -- old.bin && wc -c < old.bin > seen.txt",
    });
    expect(await untilOver(client, session.id)).toMatchObject({ status: "completed", failure: null });
    expect(await show("seen.txt")).toBe("100000");
    expect(await show("old.bin")).toBe(pointerOf(old).trim());
  });

  test("notes which contents it uses, so that they stay, and gets one that was removed again", async () => {
    const { url } = await repository("kept", "kept content");
    await run(url, "shell true");
    const mirrors = join(world.data, "mirrors");
    const stores = (await readdir(mirrors)).map((name) => lfsStore(join(mirrors, name)));
    const store = stores.find((each) => existsSync(lfsPath(each, oidOf("kept content")))) ?? "";
    const content = lfsPath(store, oidOf("kept content"));
    const long = new Date(Date.now() - 90 * 24 * 60 * 60 * 1_000);
    await utimes(content, long, long);
    // Else it counts as noted today.
    await rm(join(store, "used"), { recursive: true });
    await run(url, "shell true");
    expect((await stat(content)).mtimeMs).toBeGreaterThan(long.getTime() + 1_000);
    await rm(content);
    const { session } = await run(url, "shell cat old.bin > seen.txt");
    expect(await inOtherClone(world, url, `git show origin/${session.branchName}:seen.txt`)).toBe("kept content");
  });

  test("pushes nothing whose upload is refused, and says the server's words", async () => {
    const { url, name } = await repository("full", "old");
    world.forge.lfs.refuseUpload = 507;
    try {
      const { session } = await run(url, "shell echo new > new.bin");
      expect(session).toMatchObject({ status: "failed", pullRequests: [] });
      expect(session.failure?.reason).toContain("quota is used up");
      expect(await world.forge.pullRequests("acme", name)).toEqual([]);
      expect(await inOtherClone(world, url, "git ls-remote --heads origin | wc -l")).toBe("1");
    } finally {
      world.forge.lfs.refuseUpload = null;
    }
  });

  test("pushes no large file into git that belongs in LFS, and no pointer without its content", async () => {
    const { url } = await repository("meddling", "old");
    const around = `git config filter.lfs.process ''; git config filter.lfs.required false; head -c 2000000 /dev/zero > new.bin`;
    const { session } = await run(url, `shell ${around}`);
    expect(session).toMatchObject({ status: "failed", failure: { code: "push_rejected" } });
    expect(session.failure?.reason).toContain("belong in LFS, and the commits have them in git itself: new.bin");
    const pointer = pointerOf("nowhere").replaceAll("\n", "\\n");
    const invented = await run(url, `shell printf '${pointer}' > invented.bin`);
    expect(invented.session).toMatchObject({ status: "failed", failure: { code: "push_rejected" } });
    expect(invented.session.failure?.reason).toContain("neither in the clone nor on the server: invented.bin");
  });

  test("whose file in LFS holds what looks like a secret pushes nothing", async () => {
    const { url } = await repository("leaky", "old");
    const token = `ghp_${"aB3dE6gH9jK2".repeat(3)}`;
    const { session } = await run(url, `shell (head -c 5000 /dev/zero | tr '\\0' z; echo; echo ${token}) > leak.bin`);
    expect(session).toMatchObject({ status: "failed", failure: { code: "token_in_work" } });
    expect(session.failure?.reason).toContain("leak.bin");
    expect(existsSync(dirname(world.forge.lfs.pathOf("acme", "leaky", "x")))).toBe(true);
    expect(
      execFileSync("ls", [dirname(world.forge.lfs.pathOf("acme", "leaky", "x"))])
        .toString()
        .trim(),
    ).toBe(oidOf("old"));
  });

  test("follows no setting of .lfsconfig, and sends no credential where it points", async () => {
    const elsewhere = "http://127.0.0.1:9/elsewhere";
    const { url } = await repository(
      "configured",
      "the content",
      `printf '[lfs]\n\turl = ${elsewhere}\n\tpushurl = ${elsewhere}\n\tstandalonetransferagent = evil\n[lfs "customtransfer.evil"]\n\tpath = /bin/false\n' > .lfsconfig`,
    );
    const { session, notices } = await run(url, "shell cat old.bin > seen.txt; echo new > new.bin");
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(notices).toEqual([]);
    const bare = world.forge.pathOf("acme", "configured");
    const seen = execFileSync("git", ["-C", bare, "show", `${session.branchName}:seen.txt`]).toString();
    expect(seen).toBe("the content");
  });

  test("gets nothing by a pointer to a content that another repository has on the same worker", async () => {
    const secret = "content of another repository";
    const other = await repository("private", secret);
    // The control: with the right to read it, this pointer is that content, which is in that repository's store from here on.
    const reader = await run(other.url, "shell cat old.bin > seen.txt");
    const seen = (name: string, branch: string, path: string) =>
      execFileSync("git", ["-C", world.forge.pathOf("acme", name), "show", `${branch}:${path}`]).toString();
    expect(seen("private", reader.session.branchName, "seen.txt")).toBe(secret);
    const { url, name } = await repository("curious", "its own");
    const steal = `printf '${pointerOf(secret).replaceAll("\n", "\\n")}' > stolen.bin; git add stolen.bin; rm stolen.bin; git checkout -q -- stolen.bin; cat old.bin stolen.bin > seen.txt`;
    const { session } = await run(url, `shell ${steal}`);
    expect(session).toMatchObject({ status: "failed", failure: { code: "push_rejected" } });
    expect(session.failure?.reason).toContain("neither in the clone nor on the server: stolen.bin");
    const patch = (await client.session.diff(session.id)).repositories[0]?.patch ?? "";
    expect(patch).toContain("+its own");
    expect(patch).toContain(`oid sha256:${oidOf(secret)}`);
    expect(patch).not.toContain(secret);
    expect(existsSync(world.forge.lfs.pathOf("acme", name, oidOf(secret)))).toBe(false);
  });

  test("sees contents inside a submodule too", async () => {
    await repository("inner", "content inside");
    const sha = execFileSync("git", ["-C", world.forge.pathOf("acme", "inner"), "rev-parse", "main"])
      .toString()
      .trim();
    const { url } = await repository(
      "outer",
      "content outside",
      `git config -f .gitmodules submodule.sub.path sub; git config -f .gitmodules submodule.sub.url ../inner; mkdir sub; git update-index --add --cacheinfo 160000,${sha},sub; git add .gitmodules; git commit -qm 'Add sub'`,
    );
    const { session, notices } = await run(url, "shell cat old.bin sub/old.bin > seen.txt");
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(notices).toEqual([]);
    const show = ["-C", world.forge.pathOf("acme", "outer"), "show", `${session.branchName}:seen.txt`];
    expect(execFileSync("git", show).toString()).toBe("content outsidecontent inside");
  });

  test("gets the names of contents that the server lacks, and goes on", async () => {
    const { url, stored } = await repository("lacking", "gone");
    execFileSync("rm", [stored]);
    const { session, notices } = await run(url, "shell head -1 old.bin > seen.txt");
    expect(session).toMatchObject({ status: "completed", failure: null });
    expect(notices[0]).toContain("the agent sees pointers in their place");
    expect(prompts.at(-1)).toContain("Files in LFS could not be fetched");
  });
});

test("without git-lfs a notice and the prompt say so, and neither pointers nor contents are pushed", async () => {
  const { url } = await repository("without", "old");
  // A PATH with git and the shell's programs, and without git-lfs.
  const bin = join(world.data, "bin");
  await mkdir(bin);
  const real = execFileSync("sh", ["-c", "command -v git"]).toString().trim();
  await writeFile(join(bin, "git"), `#!/bin/sh\nfor word; do [ "$word" != lfs ] || exit 1; done\nexec ${real} "$@"\n`);
  await chmod(join(bin, "git"), 0o755);
  await symlink("/bin/sh", join(bin, "sh"));
  const path = process.env["PATH"];
  process.env["PATH"] = `${bin}:${path}`;
  try {
    const attempt = await run(url, "shell head -1 old.bin > seen.txt");
    expect(attempt.session).toMatchObject({ status: "completed", failure: null });
    expect(attempt.notices[0]).toContain("git-lfs is not installed on the worker");
    expect(prompts.at(-1)).toContain("Files in LFS could not be fetched");
    const { session } = await run(url, "shell head -c 2000000 /dev/zero > new.bin");
    expect(session).toMatchObject({ status: "failed", failure: { retryable: true } });
    expect(session.failure?.reason).toContain("git-lfs is not installed");
    const refs = await inOtherClone(world, url, "git ls-remote --heads origin | wc -l");
    expect(refs).toBe("2");
  } finally {
    process.env["PATH"] = path;
  }
});
