import { execFile } from "node:child_process";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

// Which code sees a setup's secrets, and which can leave something for a later session. Each attack shows by its own
// mark that its code really ran; each secret is printed backwards, which no mask knows.

const value = "setup_only_secret_value_4711";
const backwards = value.split("").toReversed().join("");
/** Code of an attacker's: leaves a mark, the secret backwards, and what a later session would run or read. */
const evil = [
  "echo evil > $HOME/ran",
  'printf %s "$NPM_TOKEN" | rev > $HOME/stolen',
  "cat $HOME/.npmrc 2> /dev/null | rev >> $HOME/stolen",
  "mkdir -p $HOME/bin && echo 'echo poisoned' > $HOME/bin/tool",
  "for file in .bashrc .profile .npmrc; do echo poisoned >> $HOME/$file; done",
  "git config --global user.name poisoned",
  "echo evil > tool",
].join("\n");
const good = [
  "echo good > $HOME/ran",
  "echo good > tool",
  'test -n "$NPM_TOKEN" && echo has the token || echo has no token',
].join("\n");
/** What an attack left in the session's own folders, as its agent sees it. */
const look = "cat ~/ran tool; cat ~/stolen ~/.npmrc ~/.bashrc ~/.gitconfig ~/bin/tool 2> /dev/null; true";

let world: World;
let offstage: Offstage;
let client: Client;
let store: pg.Pool;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  // An attempt that takes over after a lost lease is set up without secrets: no busy machine may cause one here.
  ({ offstage, client } = await startInProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_LEASE_SECONDS: "30",
  }));
  store = new pg.Pool({ connectionString: world.variables["DATABASE_URL"] });
});

afterAll(async () => {
  await store?.end();
  await offstage?.stop();
  await world?.close();
});

interface TestRepository {
  readonly id: string;
  readonly name: string;
  readonly url: string;
}

/** A repository whose setup runs `install.sh` of its own, with a secret for it. */
async function repository(
  files: Record<string, string> = {},
  environment: unknown = { setupScript: "sh ./install.sh" },
  phases = ["setup"],
): Promise<TestRepository> {
  const name = `trust-${(count += 1)}`;
  const all = { "README.md": "# Before\n", "package-lock.json": "{}\n", "install.sh": good, ...files };
  const { url } = await world.forge.createRepository("acme", name, all);
  const { id } = await callApi(offstage.url, "/repository/create", { url });
  await callApi(offstage.url, `/repository/${id}/environment`, environment);
  await callApi(offstage.url, "/secret/create", { name: "NPM_TOKEN", value, phases, repositoryId: id });
  return { id, name, url };
}

interface Done {
  readonly session: SessionDetail;
  readonly setup: string;
  readonly output: string;
  readonly notices: string;
}

/** Notices that are not about setups: the second is one of a slow machine. */
const aside = /^The (?:agent changed nothing|work so far could not be stored outside this worker)/u;

async function seen(session: SessionDetail): Promise<Done> {
  const { events } = await client.session.events(session.id, { limit: 1_000 });
  const textOf = (pick: (event: SessionEvent) => string[]): string => events.flatMap(pick).join("");
  return {
    session,
    setup: textOf((event) => (event.type === "setup.output" ? [event.data.text] : [])),
    notices: textOf((event) =>
      event.type === "notice" && !aside.test(event.data.text) ? [`${event.data.text}\n`] : [],
    ),
    output: textOf((event) =>
      event.type === "agent.tool" && event.data.status !== "in_progress"
        ? event.data.content.map((content) => (content.type === "text" ? `${content.text}\n` : ""))
        : [],
    ),
  };
}

async function run(prompt: string, repositories: TestRepository[], more: object = {}): Promise<Done> {
  const urls = repositories.map(({ url }) => url);
  const { id } = await client.session.create({ prompt, repositories: urls, ...more });
  return seen(await untilOver(client, id));
}

async function followUp(id: string, message: string): Promise<Done> {
  await client.session.message(id, { message });
  return seen(await untilOver(client, id));
}

const withheld = /runs? without (?:its|the) setup secrets/u;
const git = (name: string, ...parameters: string[]) =>
  promisify(execFile)("git", ["-C", world.forge.pathOf("acme", name), ...parameters]);

describe("a setup-phase secret", () => {
  test("reaches the repository's own branch, in its setup alone", async () => {
    const made = await repository();
    const { setup, output, notices } = await run(`shell ${look}; env | grep -c NPM_TOKEN`, [made]);
    expect(setup).toContain("has the token");
    expect(output).toContain("good\ngood\n");
    expect(notices).toBe("");
  });

  test("does not meet a branch that the request names as its target", async () => {
    const made = await repository();
    await world.forge.commit("acme", made.name, "evil", { "install.sh": evil });
    const done = await run(`shell ${look}`, [made], { targetBranch: "evil" });
    expect(done.output).toContain("evil\nevil\n");
    expect(done.output).not.toContain(backwards);
    expect(done.notices).toMatch(withheld);
    expect(done.setup).toMatch(withheld);
  });

  test("does not meet a target branch that is an older commit of the repository's own branch", async () => {
    const made = await repository({ "install.sh": evil });
    await git(made.name, "branch", "older", "main");
    await world.forge.commit("acme", made.name, "main", { "install.sh": good });
    const done = await run(`shell ${look}`, [made], { targetBranch: "older" });
    expect(done.output).toContain("evil\nevil\n");
    expect(done.output).not.toContain(backwards);
    expect(done.setup).toMatch(withheld);
  });

  test("meets the same commit by another name, since it is the same code", async () => {
    const made = await repository();
    await git(made.name, "branch", "release", "main");
    const done = await run(`shell ${look}`, [made], { targetBranch: "release" });
    expect(done.setup).toContain("has the token");
    expect(done.notices).toBe("");
  });

  test("does not meet the script that a target branch's devcontainer.json has", async () => {
    const file = (command: string) => JSON.stringify({ postCreateCommand: ["sh", "-c", command] });
    const made = await repository({ ".devcontainer.json": file(good) }, {});
    await world.forge.commit("acme", made.name, "evil", { ".devcontainer.json": file(evil) });
    const done = await run(`shell ${look}`, [made], { targetBranch: "evil" });
    expect(done.output).toContain("evil\nevil\n");
    expect(done.output).not.toContain(backwards);
    expect((await run(`shell ${look}`, [made])).setup).toContain("has the token");
  });

  test("does not meet what an agent pushed, in a session that goes on with that branch", async () => {
    const made = await repository();
    const branchName = "offstage/harmless-looking";
    const first = await run(
      `shell echo '${evil.replaceAll("'", `'\\''`).replaceAll("\n", "; ")}' > install.sh`,
      [made],
      {
        branchName,
      },
    );
    expect(first.session).toMatchObject({ status: "completed", failure: null });
    const second = await run(`shell ${look}`, [made], { branchName });
    expect(second.output).toContain("evil\nevil\n");
    expect(second.output).not.toContain(backwards);
    expect(second.setup).toMatch(/^Reused/u);
    expect(second.setup).toMatch(withheld);
    expect(second.notices).toMatch(withheld);
  });

  test.each([
    ["the folders and the checkpoint were removed", "delete from checkpoint where session_id = $1", "evil\nevil\n"],
    ["another worker has to go on from the checkpoint", "select $1::uuid", "continues from what another had done"],
  ])("does not meet the session's own work once %s", async (_, statement, mark) => {
    const made = await repository();
    const first = await run(`shell echo '${evil.replaceAll("'", `'\\''`).replaceAll("\n", "; ")}' > install.sh`, [
      made,
    ]);
    expect(first.session.status).toBe("completed");
    await rm(join(world.data, "sessions", first.session.id), { recursive: true, force: true });
    await store.query(statement, [first.session.id]);
    const second = await followUp(first.session.id, `shell ${look}; cat install.sh`);
    expect(second.session).toMatchObject({ status: "completed", failure: null });
    expect(second.output).toContain("rev > $HOME/stolen");
    expect(second.output).not.toContain(backwards);
    expect(`${second.output}${second.notices}`).toContain(mark);
  });

  test("does not meet what an agent left at home, if a script is set after it worked", async () => {
    const made = await repository({}, {});
    const plant =
      "echo poisoned > ~/planted; echo 'printf %s $NPM_TOKEN | rev > ~/stolen' | tee ~/.bashrc ~/.profile > ~/.bash_env; mkdir -p ~/bin .git/hooks; printf '#!/bin/sh\\nprintf %%s $NPM_TOKEN | rev > ~/stolen\\n' | tee ~/bin/npm .git/hooks/post-checkout > helper.sh; chmod +x ~/bin/npm .git/hooks/post-checkout; git config --global core.fsmonitor ~/bin/npm";
    const first = await run(`shell ${plant}`, [made]);
    expect(first.session.status).toBe("completed");
    const setupScript =
      "ls -A ~; test -e helper.sh && echo sees the work; sh ./install.sh; git status; git checkout -q -b x";
    await callApi(offstage.url, `/repository/${made.id}/environment`, { setupScript });
    const second = await followUp(first.session.id, "shell cat ~/planted ~/stolen ~/ran tool; true");
    expect(second.setup).toContain("has the token");
    expect(second.setup).not.toMatch(/planted|sees the work/u);
    expect(second.output).toContain("poisoned");
    expect(second.output).toContain("good\ngood\n");
    expect(second.output).not.toContain(backwards);
  });

  test.each([
    ["before", 0],
    ["after", 1],
  ])("of one repository does not meet the code of another that is set up %s it", async (_, position) => {
    const trusted = await repository();
    await world.forge.commit("acme", trusted.name, "evil", {
      "install.sh": `${good}\necho "//registry/:_authToken=$NPM_TOKEN" > ~/.npmrc; echo neighbours: ../*; ls -A ~; true`,
    });
    await callApi(offstage.url, `/repository/${trusted.id}/update`, { branch: "evil" });
    const other = await repository();
    const hostile = `${evil}\necho planted > ~/planted; echo planted > planted; for place in ../*; do echo 'printf %s "$NPM_TOKEN" | rev > ~/stolen' >> $place/install.sh; done; cat ../*/.npmrc ~/.npmrc | rev >> ~/stolen`;
    await world.forge.commit("acme", other.name, "evil", { "install.sh": hostile });
    const both = position === 0 ? [other, trusted] : [trusted, other];
    const done = await run("shell cat ~/ran ~/planted ~/stolen ~/.npmrc */tool; true", both, { targetBranch: "evil" });
    expect(done.session.failure).toBeNull();
    expect(done.setup).toContain("has the token");
    expect(done.setup).toContain(`neighbours: ../${trusted.name}\n`);
    expect(done.setup).not.toContain("planted");
    expect(done.output).toContain("planted");
    expect(done.output).toContain("evil");
    expect(done.output).toContain("good");
    expect(done.output).not.toContain(backwards);
    expect(done.output).not.toContain("_authToken");
  });

  test("that a setup wrote into a file is not there for the agent, unless it is a secret of the agent's too", async () => {
    const setupScript = `echo "//registry/:_authToken=$NPM_TOKEN" > ~/.npmrc; echo "_auth=$(printf 'me:%s' "$NPM_TOKEN" | base64 -w 0)" > ~/.other
      mkdir -p tools/.git && echo "url = https://x:$NPM_TOKEN@host" > tools/config; echo kept > tools/kept; mkfifo pipe; echo done`;
    const order = "shell rev ~/.npmrc ~/.other tools/config; cat tools/kept; true";
    const made = await repository({}, { setupScript });
    for (const _ of ["made", "reused"]) {
      const done = await run(order, [made]);
      expect(done.session.failure).toBeNull();
      expect(done.output).toContain("kept");
      expect(done.output).not.toContain(backwards);
      expect(done.notices).toContain(".npmrc");
    }
    const control = await repository({}, { setupScript }, ["setup", "agent"]);
    const open = await run(order, [control]);
    expect(open.output).toContain(backwards);
    expect(open.notices).toBe("");
  });

  test("of several lines that a setup wrote into a file is not there either, and other keys stay", async () => {
    const body = (letter: string) => Array.from({ length: 3 }, (_, row) => `${letter}${row}`.repeat(32)).join("\n");
    const pem = (letter: string) => `-----BEGIN PRIVATE KEY-----\n${body(letter)}\n-----END PRIVATE KEY-----\n`;
    const setupScript = `printf '%s' "$DEPLOY_KEY" > ~/deploy.pem; printf '%s' '${pem("B")}' > ~/fixture.pem`;
    const made = await repository({}, { setupScript });
    const secret = { name: "DEPLOY_KEY", value: pem("A"), repositoryId: made.id };
    await callApi(offstage.url, "/secret/create", secret);
    const done = await run("shell rev ~/deploy.pem; rev ~/fixture.pem", [made]);
    expect(done.output).toContain(body("B").split("").toReversed().join("").slice(0, 64));
    expect(done.output).not.toContain(body("A").split("").toReversed().join("").slice(0, 64));
    expect(done.notices).toContain("deploy.pem");
  });

  test("goes to the branch that an admin configures, from when it is configured, and only an admin can", async () => {
    const made = await repository();
    await world.forge.commit("acme", made.name, "trunk", { "install.sh": `${good}\necho on trunk` });
    const { key } = await callApi(offstage.url, "/key/create", { name: "a member", role: "member" });
    const asMember = (path: string, body: object): Promise<Response> =>
      fetch(`${offstage.url}${path}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
    expect((await asMember(`/repository/${made.id}/update`, { branch: "trunk" })).status).toBe(403);
    expect((await asMember(`/repository/${made.id}/update`, { branch: null })).status).toBe(403);
    expect((await asMember(`/repository/${made.id}/update`, { description: "theirs" })).status).toBe(200);
    const elsewhere = { url: `${world.forge.url}/acme/not-known`, branch: "trunk" };
    expect((await asMember("/repository/create", elsewhere)).status).toBe(403);
    await callApi(offstage.url, `/repository/${made.id}/update`, { branch: "trunk" });
    const now = await run(`shell ${look}`, [made]);
    expect(now.setup).toContain("has the token\non trunk");
    const before = await run(`shell ${look}`, [made], { targetBranch: "main" });
    expect(before.setup).toContain("has no token");
    expect(before.notices).toMatch(withheld);
  });

  test("is not needed to go on with a branch whose setup fails without it", async () => {
    const made = await repository({ "install.sh": `${good}\ntest -n "$NPM_TOKEN"` });
    const branchName = "offstage/going-on";
    await world.forge.commit("acme", made.name, branchName, { "more.txt": "more" });
    const done = await run(`shell ${look}; cat more.txt`, [made], { branchName });
    expect(done.session).toMatchObject({ status: "completed", failure: null });
    expect(done.output).toContain("good\ngood\n");
    expect(done.output).toContain("more");
    expect(done.setup).toContain("has no token");
    expect(done.notices).toMatch(/failed there/u);
  });

  test("lies in files that no other user of the machine may read, while the setup runs", async () => {
    const setupScript = 'echo "$NPM_TOKEN" > ~/.npmrc; mkdir -p ~/made; stat -c %a ~/.npmrc ~/made';
    const made = await repository({}, { setupScript });
    expect((await run("say x", [made])).setup).toContain("600\n700\n");
  });
});

describe("the kept result of a setup", () => {
  test.each([
    ["a session whose target is another branch with the same lock files", { targetBranch: "evil" }],
    ["a session on another work branch", { branchName: "evil" }],
  ])("is not written by %s", async (_, branches) => {
    const made = await repository();
    await world.forge.commit("acme", made.name, "evil", { "install.sh": evil });
    const attack = await run(`shell ${look}`, [made], branches);
    for (const mark of ["evil\nevil\n", "poisoned"]) expect(attack.output).toContain(mark);
    const later = await run(`shell ${look}`, [made]);
    expect(later.output).toContain("good\ngood\n");
    expect(later.output).not.toMatch(/poisoned|evil/u);
    const reused = await run(`shell ${look}`, [made]);
    expect(reused.setup).toMatch(/^Reused/u);
    expect(reused.output).toBe(later.output);
  });

  test("is not written by an agent that pushed its own branch", async () => {
    const made = await repository();
    const branchName = "offstage/its-own";
    const push = await run(
      `shell echo '${evil.replaceAll("'", `'\\''`).replaceAll("\n", "; ")}' > install.sh`,
      [made],
      { branchName },
    );
    expect(push.session.failure).toBeNull();
    expect((await run(`shell ${look}`, [made], { branchName })).output).toContain("poisoned");
    const later = await run(`shell ${look}`, [made]);
    expect(later.output).not.toMatch(/poisoned|evil/u);
    expect(later.output).toContain("good\ngood\n");
  });

  test("is not changed by a session that uses it, nor seen or readable outside of the server", async () => {
    const made = await repository();
    const first = await run(`shell ${look}`, [made]);
    const change = `echo poisoned | tee ~/.bashrc ~/ran > tool; ls ${world.data}/environments || echo not to be seen`;
    const user = await run(`shell ${change}; ${look}`, [made]);
    expect(user.setup).toMatch(/^Reused/u);
    expect(user.output).toContain("poisoned");
    expect(user.output).toContain("not to be seen");
    const later = await run(`shell ${look}`, [made]);
    expect(later.setup).toMatch(/^Reused/u);
    expect(later.output).toBe(first.output);
    const kept = join(world.data, "environments");
    expect((await stat(kept)).mode & 0o777).toBe(0o700);
    const files = await readdir(kept, { recursive: true, withFileTypes: true });
    for (const entry of files) {
      const { mode, uid } = await stat(join(entry.parentPath, entry.name));
      expect([entry.name, mode & 0o777, uid]).toEqual([
        entry.name,
        entry.isDirectory() ? 0o700 : 0o400,
        process.getuid?.(),
      ]);
    }
    expect(files.filter((entry) => entry.isFile()).length).toBeGreaterThan(2);
  });

  test("is made anew for another commit of the branch, whatever its lock files", async () => {
    const made = await repository();
    await run("say x", [made]);
    await world.forge.commit("acme", made.name, "main", { "install.sh": `${good}\necho anew` });
    expect((await run("say x", [made])).setup).toContain("anew");
  });

  test("is made anew for another value of a setup secret", async () => {
    const made = await repository({ "install.sh": 'printf %s "$NPM_TOKEN" | cut -c 1-3 > tool; echo ran' });
    await run("say x", [made]);
    const { secrets } = await callApi(offstage.url, `/secret/list?repositoryId=${made.id}`);
    await callApi(offstage.url, `/secret/${secrets[0].id}/update`, { value: "another-value-of-it" });
    const done = await run("shell cat tool", [made]);
    expect(done.setup).toContain("ran");
    expect(done.output).toContain("ano");
  });

  test("comes without another repository's, if a session has both", async () => {
    // As package managers do: files and folders that even their owner may not change, the same in both.
    const modules = "mkdir -p ~/modules/one && echo module > ~/modules/one/file && chmod -R a-w ~/modules";
    const plant = "mkdir -p ~/bin; echo poisoned > ~/bin/tool; echo poisoned > ~/.profile";
    const poisoner = await repository({ "install.sh": `${good}\n${plant}\n${modules}` });
    const victim = await repository({ "install.sh": `${good}\n${modules}` });
    const both = await run("shell cat ~/bin/tool ~/.profile */tool ~/modules/one/file", [poisoner, victim]);
    expect(both.output).toContain("poisoned\npoisoned\ngood\ngood\nmodule\n");
    const alone = await run(`shell ${look}; cat ~/.profile`, [victim]);
    expect(alone.setup).toMatch(/^Reused/u);
    expect(alone.output).not.toContain("poisoned");
  });

  test("does not follow links that a work branch has in its place", async () => {
    const made = await repository({
      ".gitignore": "made\n",
      "install.sh": `${good}\nmkdir -p made; echo good > made/file`,
    });
    await run("say x", [made]);
    await world.forge.commit("acme", made.name, "offstage/links", { "more.txt": "more" });
    const link = `ln -s ${world.data}/environments made; git add -f made; git -c user.name=a -c user.email=a@b commit -qm link`;
    const linked = await run(`shell rm -rf made; ${link}`, [made], { branchName: "offstage/links" });
    expect(linked.session.failure).toBeNull();
    const kept = join(world.data, "environments");
    const before = await readdir(kept, { recursive: true });
    const done = await run("shell ls -l made; true", [made], { branchName: "offstage/links" });
    expect(done.output).toContain(`made -> ${kept}`);
    expect(done.notices).toContain("Not all files that the setup of");
    expect(await readdir(kept, { recursive: true })).toEqual(before);
  });

  test("brings what a submodule's folder holds", async () => {
    const made = await repository({}, {});
    const commit = [
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@b",
      "commit",
      "--quiet",
      "--allow-empty",
      "--message",
      "x",
    ];
    const inner = join(world.data, `inner-${made.name}`);
    const at = (folder: string, ...parameters: string[]) => promisify(execFile)("git", ["-C", folder, ...parameters]);
    await promisify(execFile)("git", ["clone", "--quiet", world.forge.pathOf("acme", made.name), inner]);
    const { stdout: sha } = await at(inner, "rev-parse", "HEAD");
    await at(inner, "update-index", "--add", "--cacheinfo", `160000,${sha.trim()},vendor/inner`);
    await at(inner, ...commit);
    await at(inner, "push", "--quiet", "origin", "HEAD:main");
    // The same repository at its first commit, since nothing need be fetched for that.
    const setupScript = `git worktree prune; git clone -q --no-local "$PWD" vendor/inner; git -C vendor/inner checkout -q ${sha.trim()}; echo set up`;
    await callApi(offstage.url, `/repository/${made.id}/environment`, { setupScript });
    for (const how of ["set up", "Reused"]) {
      const done = await run("shell cat vendor/inner/README.md; git status --short; echo end", [made]);
      expect(done.setup).toContain(how);
      expect(done.output).toContain("# Before\nend");
    }
  });
});

describe("without a sandbox", () => {
  test("secrets reach the setup of the repository's own branch alone, and not after an agent was there", async () => {
    const bare = await createWorld(script);
    const outer = { offstage, client, world };
    try {
      world = bare;
      ({ offstage, client } = await startInProcess(bare, {
        OFFSTAGE_SANDBOX: "none",
        OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
        OFFSTAGE_LEASE_SECONDS: "30",
      }));
      const made = await repository();
      await world.forge.commit("acme", made.name, "evil", { "install.sh": evil });
      expect((await run("say x", [made])).setup).toContain("has the token");
      const attack = await run(`shell ${look}`, [made], { targetBranch: "evil" });
      expect(attack.output).toContain("evil\nevil\n");
      expect(attack.output).not.toContain(backwards);
      expect(attack.setup).toMatch(withheld);
      const late = await repository({}, {});
      const first = await run("shell echo planted > ~/planted", [late]);
      await callApi(offstage.url, `/repository/${late.id}/environment`, {
        setupScript: "cat ~/planted; sh ./install.sh",
      });
      const second = await followUp(first.session.id, "say x");
      expect(second.setup).toContain("planted\nhas no token");
    } finally {
      await offstage.stop();
      ({ offstage, client, world } = outer);
      await bare.close();
    }
  });
});
