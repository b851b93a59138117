import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { inOneLine, script } from "../end-to-end/script.ts";
import { marked } from "../sandboxes/did-run.ts";
import { testEnvironment } from "../test-environment.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";

/** What an agent, or an author of its input, may try on the service that takes its work out. */
let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

interface Attempt {
  readonly session: SessionDetail;
  readonly name: string;
  readonly patch: string;
}

/** A session whose agent runs the commands in a repository of its own. @throws DidNotRunError if no shell ran them */
async function attempt(commands: readonly string[]): Promise<Attempt> {
  const name = `hostile-${(count += 1)}`;
  const { url } = await world.forge.createRepository("acme", name, { "a.txt": "a\n" });
  const { script: wrapped, read } = marked(commands.join("; "));
  const { id } = await client.session.create({ prompt: `shell ${inOneLine(wrapped)}`, repositories: [url] });
  const session = await untilOver(client, id);
  read(await printed(id));
  const patch = (await client.session.diff(id)).repositories[0]?.patch ?? "";
  return { session, name, patch };
}

/**
 * The control of an attempt: the same commands outside, in a clone like the agent's, and then what a service would do that
 * trusted the clone. If that does no harm there, the attempt shows nothing.
 * @returns what the last commands printed, errors too
 */
async function outside(commands: readonly string[], trusting: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-trusting-"));
  const clone = join(folder, "clone");
  const env = { ...testEnvironment(), HOME: folder, GIT_TERMINAL_PROMPT: "0", GIT_CONFIG_NOSYSTEM: "1" };
  const identity = "git config --global user.name x; git config --global user.email x@example.com";
  const begin = `${identity}; git init -q clone; cd clone; echo a > a.txt; git add .; git commit -qm 'What was there'; cd ..`;
  const run = async (cwd: string, steps: string): Promise<string> => {
    const { stdout, stderr } = await promisify(execFile)("sh", ["-c", `{ ${steps}\n} 2>&1 < /dev/null || true`], {
      cwd,
      env,
      timeout: 60_000,
    });
    return stdout + stderr;
  };
  try {
    await run(folder, begin);
    await run(clone, commands.join("\n"));
    return await run(clone, trusting.join("\n"));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What the session's tools printed. */
async function printed(id: string): Promise<string> {
  const { events } = await client.session.events(id, { limit: 1_000 });
  return events
    .flatMap((event) => (event.type === "agent.tool" && event.data.status !== "in_progress" ? event.data.content : []))
    .map((content) => (content.type === "text" ? content.text : ""))
    .join("\n");
}

test("nothing that the agent's repository configures is run outside the sandbox", async () => {
  // In the sandbox this path is in a /tmp of its own: the trace is outside only if something was run outside.
  const trace = `/tmp/offstage-trace-${crypto.randomUUID()}`;
  const settings = [
    "core.fsmonitor",
    "filter.evil.clean",
    "filter.evil.smudge",
    "diff.evil.textconv",
    "core.sshCommand",
    "gpg.program",
    "credential.helper",
    "core.askPass",
    "core.editor",
    "merge.evil.driver",
  ];
  const hooks = [
    "pre-commit",
    "post-commit",
    "prepare-commit-msg",
    "reference-transaction",
    "post-checkout",
    "pre-push",
  ];
  const traps = [...settings, ...hooks];
  const commands = [
    ...traps.map(
      (name) =>
        `printf '#!/bin/sh\\necho ${name} >> ${trace}\\ncat\\n' > $HOME/trap-${name} && chmod +x $HOME/trap-${name}`,
    ),
    "mkdir -p $HOME/hooks .git/hooks",
    ...hooks.map((hook) => `cp $HOME/trap-${hook} $HOME/hooks/${hook} && cp $HOME/trap-${hook} .git/hooks/${hook}`),
    "printf '* filter=evil diff=evil merge=evil\\n' > .gitattributes",
    "echo b > b.txt",
    ...settings.map((setting) => `git config ${setting} "$HOME/trap-${setting}"`),
    "git config core.hooksPath $HOME/hooks",
    "git config commit.gpgSign true",
  ];
  const { session, patch } = await attempt(commands);
  expect(session).toMatchObject({ status: "completed", pullRequests: [{ number: 1 }] });
  expect(patch).toContain("b.txt");
  expect(existsSync(trace)).toBe(false);

  const { url } = await world.forge.createRepository("acme", "asks-for-a-password", { "a.txt": "a\n" });
  try {
    await outside(commands, [
      "git status; git add -A; git commit -m signed",
      "git config --unset commit.gpgSign; git config --unset core.fsmonitor",
      "git commit -m work; git log -p; git commit --amend --allow-empty",
      "git checkout -q -b other HEAD~1; rm -f a.txt; echo other > a.txt; git commit -qam other; git checkout -q -",
      "echo this > a.txt; git commit -qam this; git merge other",
      "rm a.txt; git checkout -- a.txt",
      `timeout 5 git ls-remote ${url}; git config --unset credential.helper; timeout 5 git ls-remote ${url}; timeout 5 git ls-remote ssh://nobody.invalid/x`,
      "git init -q --bare ../bare; git push -q ../bare HEAD:x",
    ]);
    const ran = new Set((await readFile(trace, "utf8")).split("\n"));
    expect(traps.filter((name) => !ran.has(name))).toEqual([]);
  } finally {
    await rm(trace, { force: true });
  }
});

test("a link that points out of the workspace is kept as a link, not as what it points to", async () => {
  const folder = await mkdtemp(join(tmpdir(), "offstage-linked-"));
  const file = join(folder, "secret");
  await writeFile(file, "what is behind the link");
  try {
    const commands = [`ln -s ${file} outside`, "ln -s ../../../.. up"];
    const { session, patch } = await attempt(commands);
    expect(session.status).toBe("completed");
    expect(patch).toContain("new file mode 120000");
    expect(patch).toContain(`+${file}`);
    expect(patch).not.toContain("what is behind the link");
    expect(await outside(commands, ["cat outside"])).toContain("what is behind the link");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("objects that git itself would not make are refused", async () => {
  const commands = [
    "blob=$(echo evil | git hash-object -w --stdin)",
    "tree=$(printf '100644 blob %s\\tconfig\\n' $blob | git mktree)",
    "root=$(printf '040000 tree %s\\t.git\\n' $tree | git mktree)",
    "git update-ref HEAD $(git -c user.name=x -c user.email=x@example.com commit-tree $root -p HEAD -m evil)",
    "git rm -q --cached a.txt",
  ];
  const { session, name } = await attempt(commands);
  expect(session).toMatchObject({ status: "failed", failure: { code: "workspace_broken" } });
  expect(await world.forge.pullRequests("acme", name)).toEqual([]);
  const taken = ["git init -q --bare ../taken", "git push -q ../taken HEAD:x", "git -C ../taken ls-tree -r x"];
  expect(await outside(commands, taken)).toContain(".git/config");
});

test.each([
  ["removed", "rm -rf .git"],
  ["a link to another repository", "rm -rf .git; git init -q $HOME/other; ln -s $HOME/other/.git .git"],
  ["a file of nonsense", "rm -rf .git; echo gitdir: /nowhere > .git"],
  ["a new one, without the commits it began with", "rm -rf .git; git init -q; git add .; git commit -qm begin"],
  ["full of locks", "touch .git/index.lock .git/HEAD.lock"],
])("work is not lost where .git is %s", async (_, command) => {
  const { session, patch } = await attempt([command, "echo b > b.txt", "echo changed > a.txt"]);
  expect(session).toMatchObject({ status: "completed", pullRequests: [{ number: 1, head: session.branchName }] });
  expect(patch).toMatch(/^\+b$/mu);
  expect(patch).toMatch(/^-a\n\+changed$/mu);
  // The files that the agent did not touch are not deleted.
  expect(patch).not.toContain("deleted file");
  const trusting = [
    "git add -A && git commit -qm work && git merge-base --is-ancestor $(cat ../begin) HEAD && echo kept",
  ];
  const began = "git rev-parse HEAD > ../begin";
  expect(await outside([began, command, "echo b > b.txt"], trusting)).not.toContain("kept");
  expect(await outside([began, "echo b > b.txt"], trusting)).toContain("kept");
});

test("a repository whose folder is gone fails with what to do", async () => {
  const { session, name } = await attempt(["d=$PWD", "cd ..", "rm -rf $d"]);
  expect(session).toMatchObject({
    status: "failed",
    failure: { code: "workspace_broken", remedy: expect.stringContaining("a fresh clone") as string },
  });
  expect(await world.forge.pullRequests("acme", name)).toEqual([]);
});

test("work on another branch and on no branch at all still lands on the session's branch", async () => {
  const elsewhere = await attempt(["git checkout -q -b mine", "echo b > b.txt", "git add .", "git commit -qm mine"]);
  expect(elsewhere.session).toMatchObject({
    status: "completed",
    pullRequests: [{ head: elsewhere.session.branchName }],
  });
  const detached = await attempt(["git checkout -q --detach", "echo b > b.txt"]);
  expect(detached.session).toMatchObject({
    status: "completed",
    pullRequests: [{ head: detached.session.branchName }],
  });
});

test("a commit of the agent's own is kept as it is, with what it left beside it in one of ours", async () => {
  const { session } = await attempt([
    "echo b > b.txt",
    "git add .",
    "git -c user.name=Robin -c user.email=robin@example.com commit -qm 'Add b'",
    "echo c > c.txt",
  ]);
  const commits = (await client.session.events(session.id, { limit: 1_000 })).events.filter(
    (event) => event.type === "workspace.commit",
  );
  expect(commits.map(({ data }) => [data.subject, data.by])).toEqual([
    ["Add b", "agent"],
    [session.title, "offstage"],
  ]);
});

test("file names of any kind come out as they are", async () => {
  const { session, patch } = await attempt([
    "mkdir -p 'ein Ordner'",
    "echo x > 'ein Ordner/größe 表 🎉.txt'",
    "echo y > -- ./-rf",
  ]);
  expect(session.status).toBe("completed");
  expect(patch).toMatch(/^\+x$/mu);
});

test("the forge's token is in no file that Offstage keeps", async () => {
  await attempt(["echo b > b.txt"]);
  const basic = Buffer.from(`x-access-token:${world.forge.token}`).toString("base64");
  // The control: a file that has it is found.
  const planted = join(world.data, "planted");
  await writeFile(planted, `Basic ${basic}`);
  const entries = await readdir(world.data, { recursive: true, withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name);
    const content = await readFile(path, "latin1").catch(() => "");
    if (content.includes(world.forge.token) || content.includes(basic)) found.push(path);
  }
  await rm(planted);
  expect(entries.length).toBeGreaterThan(10);
  expect(found).toEqual([planted]);
});

test("an agent sees neither another session's folder nor the mirrors' names", async () => {
  const other = await attempt(["echo b > b.txt"]);
  const { url } = await world.forge.createRepository("acme", "curious", { "a.txt": "a\n" });
  const look = `ls -la ${world.data} ${world.data}/sessions ${world.data}/mirrors ${world.data}/mirrors/*`;
  const { script: wrapped, read } = marked(`${look}; cat .git/config; env; true`);
  expect(await outside([":"], [look])).toContain(other.session.id);
  const { id } = await client.session.create({ prompt: `shell ${inOneLine(wrapped)}`, repositories: [url] });
  await untilOver(client, id);
  const seen = read(await printed(id));
  expect(seen).toContain(id);
  expect(seen).not.toContain(other.session.id);
  expect(seen).not.toContain(world.forge.token);
});
