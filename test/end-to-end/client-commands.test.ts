import { execFileSync, spawn, spawnSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, startInProcess, type World } from "../world.ts";
import { script } from "./script.ts";

const main = join(import.meta.dirname, "../../src/main.ts");
let world: World;
let offstage: Offstage;
let client: Client;
let url: string;
/** A person's home and clone. */
let home: string;
let clone: string;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
  ({ url } = await world.forge.createRepository("acme", "client", { "README.md": "# Before\n", "old.txt": "old\n" }));
});
afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "offstage-home-"));
  clone = join(home, "clone");
  await git(home, "clone", "--quiet", withToken(url), clone);
  return () => rm(home, { recursive: true, force: true });
});

/** As people who have no credential helper clone. */
function withToken(address: string): string {
  const parsed = new URL(address);
  parsed.username = "ada";
  parsed.password = world.forge.token;
  return parsed.toString();
}

/** Whether a program can be given a pseudo-terminal here, by util-linux. */
const hasTerminals = spawnSync("script", ["--version"]).status === 0;

const identity = { GIT_AUTHOR_NAME: "Ada", GIT_AUTHOR_EMAIL: "ada@example.com" };
const committer = { GIT_COMMITTER_NAME: "Ada", GIT_COMMITTER_EMAIL: "ada@example.com" };

/** Not in step: the forge answers in this process. */
async function git(cwd: string, ...parameters: string[]): Promise<string> {
  const { code, out, err } = await ended("git", parameters, "", cwd, {});
  if (code !== 0) throw new Error(err);
  return out.trim();
}

function environment(more: Record<string, string>): Record<string, string> {
  const path = process.env["PATH"] ?? "";
  return { PATH: path, HOME: home, OFFSTAGE_SERVER: offstage.url, ...identity, ...committer, ...more };
}

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a command as a shell does, in the person's clone and with a key. */
function run(argv: string[], given: { input?: string; cwd?: string; env?: Record<string, string> } = {}) {
  const { input = "", cwd = clone, env = { OFFSTAGE_API_KEY: adminKey } } = given;
  return ended(process.execPath, [main, ...argv], input, cwd, env);
}

function ended(file: string, argv: string[], input: string, cwd: string, env: Record<string, string>): Promise<Ended> {
  const child = spawn(file, argv, { cwd, env: environment(env) });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  // A command that reads nothing may be over before its input is written.
  child.stdin.on("error", () => {}).end(input);
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, out, err })));
}

/** A session that wrote a file. @returns its id */
async function written(file: string, content: string): Promise<string> {
  const { id } = await client.session.create({ prompt: `write ${file}: ${content}`, repositories: [url] });
  await over(id);
  return id;
}

async function over(id: string): Promise<void> {
  const isOver = async () => ["completed", "failed"].includes((await client.session.get(id)).status);
  await waitFor(isOver, "the session is over");
  expect((await client.session.get(id)).status).toBe("completed");
}

const sessionIdIn = (out: string): string => /[0-9a-f]{8}-[0-9a-f-]{27}/u.exec(out)?.[0] ?? "";

describe("login", () => {
  const file = () => join(home, ".config/offstage/credentials.json");

  test("keeps a key that the server takes, for its owner's eyes alone, until logout", async () => {
    const signedIn = await run(["login", offstage.url], { input: `${adminKey}\n`, env: {} });
    expect(signedIn).toMatchObject({ code: 0, out: expect.stringContaining(`signed in to ${offstage.url}`) as string });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    for (const said of [signedIn.out, signedIn.err]) expect(said).not.toContain(adminKey);

    const elsewhere = { env: { OFFSTAGE_SERVER: "" }, cwd: home };
    expect(await run(["list"], elsewhere)).toMatchObject({ code: 0, err: "" });
    expect((await run(["logout"], elsewhere)).code).toBe(0);
    expect(readFileSync(file(), "utf8")).not.toContain(adminKey);
    const without = await run(["list", "--server", offstage.url], elsewhere);
    expect(without).toMatchObject({ code: 2, err: expect.stringContaining("offstage login") as string });
  });

  test("keeps nothing that the server refuses", async () => {
    const refused = await run(["login"], { input: "ofs_wrong\n", env: {} });
    expect(refused.code).toBe(1);
    expect(refused.err).not.toContain("    at ");
    await expect(readdir(join(home, ".config"))).rejects.toThrow("ENOENT");
  });

  test.skipIf(!hasTerminals)("asks on a terminal, and shows nothing of what is typed", async () => {
    const command = `${process.execPath} ${main} login`;
    const { code, out } = await ended("script", ["-qec", command, "/dev/null"], `${adminKey}\n`, home, {});
    expect(out).toContain(`API key for ${offstage.url}`);
    expect(out).toContain("signed in to");
    // The terminal itself echoes what comes before it is asked not to.
    expect(out.slice(out.indexOf("API key for"))).not.toContain(adminKey);
    expect(code).toBe(0);
  });
});

describe("run in a git checkout", () => {
  test("takes its remote and branch, and says what it leaves out", async () => {
    await git(clone, "switch", "--quiet", "--create", "feature");
    await git(clone, "push", "--quiet", "--set-upstream", "origin", "feature");
    writeFileSync(join(clone, "README.md"), "# Changed\n");
    const { code, out, err } = await run(["run", "write here.txt: here"], {});
    expect(code).toBe(0);
    expect(err).toContain(`repository ${url} (origin of this checkout), pull request into feature`);
    expect(err).toContain("--with-changes");
    const session = await client.session.get(sessionIdIn(out));
    expect(session.targetBranch).toBe("feature");
    expect(session.repositories.map((repository) => repository.url)).toEqual([url.replace(/\.git$/u, "")]);
    expect(JSON.stringify(session)).not.toContain(world.forge.token);
    await over(session.id);
  });

  test("works on no repository by its option, and outside of a checkout", async () => {
    for (const [argv, cwd] of [
      [["run", "say a", "--no-repository", "--json"], clone],
      [["run", "say b", "--json"], home],
    ] as const) {
      const { out } = await run([...argv], { cwd });
      const { id } = JSON.parse(out) as { id: string };
      expect((await client.session.get(id)).repositories).toEqual([]);
    }
  });

  test("sends commits and uncommitted changes along, and leaves the checkout as it is", async () => {
    writeFileSync(join(clone, "README.md"), "# Committed\n");
    await git(clone, "commit", "--quiet", "--all", "--message", "Not pushed");
    writeFileSync(join(clone, "old.txt"), "changed\n");
    writeFileSync(join(clone, "new.txt"), "new\n");
    writeFileSync(join(clone, ".git/info/exclude"), "secret.env\n");
    writeFileSync(join(clone, "secret.env"), "TOKEN=1\n");
    const before = [
      await git(clone, "status", "--porcelain"),
      await git(clone, "branch"),
      await git(clone, "rev-parse", "HEAD"),
    ];
    const { out, err, code } = await run(["run", "write more.txt: more", "--with-changes"]);
    expect([code, err]).toEqual([0, expect.stringContaining("2 commits are sent as offstage/changes-")]);
    const after = [
      await git(clone, "status", "--porcelain"),
      await git(clone, "branch"),
      await git(clone, "rev-parse", "HEAD"),
    ];
    expect(after).toEqual(before);
    const id = sessionIdIn(out);
    await over(id);
    const { branchName, pullRequests } = await client.session.get(id);
    expect(pullRequests).toMatchObject([{ head: branchName, target: "main" }]);
    await git(clone, "fetch", "--quiet", "origin", branchName);
    const files = (await git(clone, "diff", "--name-only", "origin/main...FETCH_HEAD")).split("\n");
    expect(files).toEqual(["README.md", "more.txt", "new.txt", "old.txt"]);
  });

  test("refuses to guess where there is no remote that is meant, or git refuses", async () => {
    const refused = async (argv: string[], env: Record<string, string> = {}) => {
      const { code, out, err } = await run(argv, { env: { OFFSTAGE_API_KEY: adminKey, ...env } });
      expect(out).toBe("");
      return [code, err] as const;
    };
    expect(await refused(["run", "say a"], { GIT_TEST_ASSUME_DIFFERENT_OWNER: "1" })).toEqual([
      1,
      expect.stringContaining("dubious ownership"),
    ]);
    await git(clone, "remote", "set-url", "--push", "origin", `${url}-of-mine`);
    writeFileSync(join(clone, "new.txt"), "new\n");
    expect(await refused(["run", "say a", "--with-changes"])).toEqual([2, expect.stringContaining("-of-mine, and")]);
    await git(clone, "config", "--unset", "remote.origin.pushurl");
    await git(clone, "remote", "rename", "origin", "one");
    await git(clone, "remote", "add", "two", url);
    await git(clone, "switch", "--quiet", "--detach");
    expect(await refused(["run", "say a"])).toEqual([
      2,
      expect.stringMatching(/has the remotes one, two, .* --no-repository what to work on\n$/u),
    ]);
    await git(clone, "remote", "remove", "two");
    await git(clone, "remote", "remove", "one");
    expect(await refused(["run", "say a"])).toEqual([2, expect.stringContaining("no remote: add one with")]);
    expect((await run(["run", "say a", "--no-repository"])).code).toBe(0);
    await git(clone, "remote", "add", "origin", withToken(url));
    await git(clone, "switch", "--quiet", "--orphan", "unborn");
    expect(await refused(["run", "say a", "--with-changes"])).toEqual([2, expect.stringContaining("no commit yet")]);
  });

  test("says so if there is nothing to send", async () => {
    const { code, err } = await run(["run", "say a", "--with-changes"]);
    expect([code, err]).toEqual([2, expect.stringContaining("nothing to send")]);
  });
});

describe("list and show", () => {
  test.skipIf(!hasTerminals)("--watch shows a session that begins, until Ctrl-C", async () => {
    const child = spawn("script", ["-qec", `${process.execPath} ${main} list --watch`, "/dev/null"], {
      cwd: home,
      env: environment({ OFFSTAGE_API_KEY: adminKey }),
    });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    const end = new Promise<number | null>((resolve) => child.once("close", resolve));
    await waitFor(() => Promise.resolve(out.includes("\u001b[H\u001b[J")), "the screen is shown");
    const { id } = await client.session.create({ prompt: "say watched", queueRightAway: false });
    await waitFor(() => Promise.resolve(out.includes(id.slice(-8))), "the session is shown");
    child.stdin.write("\u0003");
    expect(await end).toBe(130);
  });

  test("print the last digits of sessions' ids, for people and for programs", async () => {
    const id = await written("shown.txt", "shown");
    const list = await run(["list", "--status", "completed"]);
    expect(list.out).toMatch(/^ID +STATUS +AGE +TITLE +REPOSITORY +PULL REQUEST\n/u);
    expect(list.out).toMatch(new RegExp(`^${id.slice(-8)}  completed .*write shown.txt.*acme/client +#\\d+$`, "mu"));
    const listed = JSON.parse((await run(["list", "--json", "--limit", "1"])).out) as { sessions: { id: string }[] };
    expect(listed.sessions.map((session) => session.id)).toEqual([id]);
    const shown = await run(["show", id.slice(-8)]);
    expect(shown.out).toMatch(new RegExp(`session +${id}\n`, "u"));
    expect(shown.out).toMatch(/pull request +http\S+ \(open\)\n/u);
    expect(JSON.parse((await run(["show", `${offstage.url}/sessions/${id}`, "--json"])).out)).toMatchObject({ id });
  });

  test("let nothing of a title control a terminal, or look like another session", async () => {
    const title = "\u001b[2J\u001b]52;c;aGk=\u0007evil\u009b \u202e漢字 👩‍💻";
    const { id } = await client.session.create({ prompt: `say ${title}`, queueRightAway: false });
    for (const argv of [["list"], ["show", id], ["list", "--json"], ["show", id, "--json"]]) {
      const { out } = await run(argv);
      // oxlint-disable-next-line no-control-regex
      expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/u);
      expect(out).toContain("evil");
    }
  });

  test("say what they don't find", async () => {
    expect(await run(["show", "zz"])).toMatchObject({
      code: 2,
      err: expect.stringContaining('"zz" is no session') as string,
    });
    const gone = await run(["show", "00000000"]);
    expect(gone).toMatchObject({ code: 2, err: expect.stringContaining("no session among") as string });
    const unknown = await run(["show", "00000000-0000-4000-8000-000000000000"]);
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("not found") as string });
    expect(await run(["list", "--limit", "0"])).toMatchObject({ code: 2 });
    expect(await run(["list", "--watch"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("terminal") as string,
    });
  });
});

describe("taking a session's work", () => {
  test("diff prints a patch that git applies, and files what is in its workspace", async () => {
    const id = await written("patched.txt", "patched");
    const { out } = await run(["diff", id]);
    expect(out).toBe((await client.session.diff(id)).repositories[0]?.patch);
    execFileSync("git", ["apply", "-"], { cwd: clone, input: out });
    expect(readFileSync(join(clone, "patched.txt"), "utf8")).toContain("patched");
    // And files of its workspace, changed or not.
    const { entries } = JSON.parse((await run(["files", id, "--json"])).out) as { entries: { path: string }[] };
    const folder = entries[0]?.path ?? "";
    expect((await run(["files", id, `${folder}/`])).out.split("\n")).toEqual(
      expect.arrayContaining(["patched.txt", "README.md"]),
    );
    expect((await run(["files", id, `${folder}/patched.txt`])).out).toContain("patched");
    expect(await run(["files", id, `${folder}/none`])).toMatchObject({
      code: 1,
      err: expect.stringContaining(`workspace has no ${folder}/none`) as string,
    });
  });

  test("apply changes this checkout's files, all or none", async () => {
    const id = await written("README.md", "# After");
    const applied = await run(["apply", id.slice(-8)]);
    expect(applied).toMatchObject({ code: 0, out: expect.stringContaining("README.md") as string });
    expect(await git(clone, "status", "--porcelain")).toBe("M README.md");
    await git(clone, "checkout", "--quiet", ".");
    writeFileSync(join(clone, "README.md"), "# Something else\n");
    const refused = await run(["apply", id]);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("patch does not apply")]);
    expect(readFileSync(join(clone, "README.md"), "utf8")).toBe("# Something else\n");
    const outside = await run(["apply", id], { cwd: home });
    expect([outside.code, outside.err]).toEqual([2, expect.stringContaining("no git checkout")]);
  });

  test("apply refuses what could not be kept as it is", async () => {
    const { id } = await client.session.create({ prompt: "say x", repositories: [url], queueRightAway: false });
    const file = "diff --git a/latin.txt b/latin.txt\nnew file mode 100644\n--- /dev/null\n+++ b/latin.txt\n";
    // As a file that is not UTF-8 is kept.
    const patch = `${file}@@ -0,0 +1 @@\n+caf\ufffd\n`;
    await offstage.database.pool.query("update session_repository set patch = $2 where session_id = $1", [id, patch]);
    const { code, err } = await run(["apply", id]);
    expect([code, err]).toEqual([2, expect.stringContaining(`offstage checkout ${id}`)]);
    expect(await git(clone, "status", "--porcelain")).toBe("");
  });

  test("checkout switches to the session's branch, and follows it", async () => {
    const id = await written("branch.txt", "one");
    const { branchName } = await client.session.get(id);
    expect(await run(["checkout", id])).toMatchObject({ code: 0, err: "" });
    expect(await git(clone, "branch", "--show-current")).toBe(branchName);
    const sent = await run(["send", id, "write branch.txt: two", "--follow"]);
    expect(sent).toMatchObject({
      code: 0,
      out: expect.stringMatching(/▸ agent[\s\S]*pull request {2}http/u) as string,
    });
    // What was before the message is not shown again.
    expect(sent.out.match(/▸ push\n/gu)).toHaveLength(1);
    expect((await run(["checkout", id])).code).toBe(0);
    expect(readFileSync(join(clone, "branch.txt"), "utf8")).toContain("two");
  });
});

test("run takes a budget, and says what is none", async () => {
  const made = (await run(["run", "Work", "--no-repository", "--budget", "1.25", "--json"])).out;
  expect(await client.session.get(sessionIdIn(made))).toMatchObject({ budgetUsd: 1.25 });
  expect(await run(["run", "Work", "--budget", "much"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("must be an amount such as 2.50"),
  });
});

test("cancel, retry, budget and delete do what they say", async () => {
  const { id } = await client.session.create({ prompt: "shell sleep 4714" });
  await waitFor(async () => (await client.session.get(id)).status === "running", "it runs");
  expect(JSON.parse((await run(["budget", id, "2.50", "--json"])).out)).toMatchObject({ budgetUsd: 2.5 });
  expect(JSON.parse((await run(["budget", id, "none", "--json"])).out)).toMatchObject({ budgetUsd: null });
  expect((await run(["budget", id, "much"])).code).toBe(2);
  expect((await run(["cancel", id])).code).toBe(0);
  await waitFor(async () => (await client.session.get(id)).status === "cancelled", "it is cancelled");
  expect((await run(["retry", id])).out).toMatch(/^(?:queued|running) {2}http/u);
  expect((await run(["cancel", id])).code).toBe(0);
  await waitFor(async () => (await client.session.get(id)).status === "cancelled", "it is cancelled again");
  expect((await run(["delete", id])).out).toBe(`deleted ${id}\n`);
  expect((await run(["show", id])).code).toBe(1);
});

test("automations are made, triggered, paused and deleted, and the ledger shows it", async () => {
  const body = { name: "Say it", macro: "say-it", instructions: "say {{ event.title }} {{ event.n }}" };
  expect((await run(["automations", "create"], { input: JSON.stringify(body) })).out).toMatch(/^created say-it {2}/u);
  expect(await run(["automations", "create"], { input: "[]" })).toMatchObject({ code: 2 });
  const job = await run(["trigger", "say-it", "--title", "Hello", "--event", "-", "--json"], { input: '{"n": 7}' });
  const { id } = JSON.parse(job.out) as { id: string };
  const sessionOf = async () => (await client.job.get(id)).sessionId;
  await waitFor(async () => (await sessionOf()) !== null, "it started a session");
  expect((await client.session.get((await sessionOf()) ?? "")).prompt).toBe("say Hello 7");
  expect((await run(["automations", "runs", "say-it"])).out).toContain(id);
  expect((await run(["ledger"])).out).toMatch(new RegExp(`^${id} +fired `, "mu"));
  expect((await run(["ledger", "replay", id])).out).toMatch(/^pending {2}run /u);
  expect((await run(["automations", "update", "say-it"], { input: '{"name": "Said"}' })).code).toBe(0);
  expect((await run(["automations", "pause", "say-it"])).code).toBe(0);
  expect((await run(["automations", "list"])).out).toMatch(/^say-it +paused .*Said/mu);
  expect((await run(["automations", "resume", "say-it"])).code).toBe(0);
  const shown = (await run(["automations", "show", "say-it"])).out;
  expect(shown).toMatch(/state +active/u);
  expect(shown).toMatch(/\n\nsay \{\{ event\.title \}\} \{\{ event\.n \}\}\n$/u);
  expect((await run(["automations", "delete", "say-it"])).code).toBe(0);
  expect(await run(["automations", "show", "say-it/../x"])).toMatchObject({ code: 1 });
});

test("an event that is replayed is decided again", async () => {
  const { rows } = await offstage.database.pool.query<{ id: string }>(
    `insert into arrival (id, organization_id, name, outcome, reason, payload)
     select gen_random_uuid(), id, 'issue.opened', 'filtered', 'nothing listens to it', '{}' from organization returning id`,
  );
  const { code, out, err } = await run(["ledger", "replay", rows[0]?.id ?? ""]);
  expect([code, out, err]).toEqual([0, expect.stringMatching(/^filtered {2}event [0-9a-f-]{36}\n$/u), ""]);
});

test("insight tells what came of sessions: to people, as JSON and as CSV", async () => {
  await client.session.create({ prompt: "say a", repositories: [url], queueRightAway: false });
  const ofClient = async () =>
    (await client.insight.figures({ groupBy: "repository" })).groups.find(({ name }) => name === "acme/client");
  await waitFor(async () => ((await ofClient())?.sessions ?? 0) > 0, "the session is counted");
  const shown = await run(["insight", "--group-by", "repository"]);
  expect(shown.out).toMatch(/^sessions +\d+: \d+ completed, \d+ failed, \d+ cancelled$/mu);
  expect(shown.out).toMatch(/^REPOSITORY +SESSIONS +PRS +MERGED /mu);
  expect(shown.out).toMatch(/^acme\/client +[1-9]/mu);
  expect((await run(["insight", "--repository", "acme/client"])).out).toMatch(/^\d{4}-\d\d-\d\d +\d/mu);
  const asked = ["--by", "day", "--group-by", "agent"];
  const insight = JSON.parse((await run(["insight", "--json", ...asked])).out) as { by: string; periods: unknown[] };
  expect([insight.by, insight.periods.length]).toEqual(["day", 30]);
  expect((await run(["insight", "--csv", ...asked])).out).toMatch(/^"from","key","name","sessions",.*\r\n"\d{4}-/u);
  expect(await run(["insight", "--csv", "--json"])).toMatchObject({ code: 2 });
  expect(await run(["insight", "--only", "x"])).toMatchObject({
    code: 1,
    err: "offstage: key: is of no group without groupBy: name both, or neither\n",
  });
});

test("secrets are kept without being shown, and repositories are found by their names", async () => {
  await client.session.create({ prompt: "say a", repositories: [url], queueRightAway: false });
  expect((await run(["repositories"])).out).toMatch(/acme\/client/u);
  const made = await run(
    ["secrets", "create", "NPM_TOKEN", "--repository", "acme/client", "--phase", "setup", "agent"],
    {
      input: "s3cret-value\n",
    },
  );
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^kept NPM_TOKEN {2}/u) as string });
  const listed = await run(["secrets", "list"]);
  expect(listed.out).toMatch(/^NPM_TOKEN +setup, agent /mu);
  for (const said of [made.out, made.err, listed.out]) expect(said).not.toContain("s3cret-value");
  expect((await run(["secrets", "delete", sessionIdIn(made.out)])).out).toBe("deleted NPM_TOKEN\n");
  expect(await run(["secrets", "create", "X", "--repository", "nobody/nothing"], { input: "v" })).toMatchObject({
    code: 2,
  });
});

test("secrets are listed all, however many there are", async () => {
  const names = Array.from({ length: 101 }, (_, index) => `MANY_${index}`);
  const made = await Promise.all(names.map((name) => client.secret.create({ name, value: "v" })));
  const { secrets } = JSON.parse((await run(["secrets", "list", "--json"])).out) as { secrets: { name: string }[] };
  expect(new Set(secrets.map(({ name }) => name))).toEqual(new Set(names));
  await Promise.all(made.map(({ id }) => client.secret.delete(id)));
});

test("sessions are labelled, found by words, archived and brought back, and a message is taken back", async () => {
  const prompt = "say narwhals are counted";
  const { id } = await client.session.create({ prompt, repositories: [], queueRightAway: false });
  expect((await run(["labels", id.slice(-8), "later", "sea"])).out).toBe("later, sea\n");
  expect((await run(["labels", id, "--remove", "later", "--add", "soon"])).out).toBe("sea, soon\n");
  expect((await run(["list", "--search", "narwhals"])).out).toContain(id.slice(-8));
  expect((await run(["archive", id])).out).toBe(`archived ${id}\n`);
  expect((await run(["list"])).out).not.toContain(id.slice(-8));
  expect((await run(["unarchive", id])).out).toBe(`unarchived ${id}\n`);
  expect((await run(["list", "--limit", "100"])).out).toContain(id.slice(-8));

  const { id: running } = await client.session.create({ prompt: "shell sleep 4715" });
  await waitFor(async () => (await client.session.get(running)).status === "running", "it runs");
  expect((await run(["send", running, "say later"])).code).toBe(0);
  expect((await run(["withdraw", running])).code).toBe(0);
  const { messages } = await client.session.messages(running);
  expect(messages.filter(({ status }) => status === "pending")).toEqual([]);
  await client.session.cancel(running);
});

test("a repository is found on the forge, gets a host, and its setup is tried with what it prints", async () => {
  const { url: tried } = await world.forge.createRepository("acme", "tried", { "README.md": "# Before\n" });
  expect((await run(["repositories", "search", "tried"])).out).toContain("acme/tried");
  const { id } = await client.call("repositorySchema", "/repository/create", { url: tried });
  const allowed = await run(["repositories", "allow", "acme/tried", "mirror.acme.example:443"]);
  expect([allowed.code, allowed.out]).toEqual([0, expect.stringContaining("mirror.acme.example")]);
  await client.call("environmentSchema", `/repository/${id}/environment`, { setupScript: "echo set up; exit 3" });
  const failed = await run(["repositories", "try-setup", "acme/tried"]);
  expect([failed.code, failed.out + failed.err]).toEqual([1, expect.stringContaining("set up")]);
});

test.skipIf(!hasTerminals)("colours are on a terminal alone, and not if they are switched off", async () => {
  const { id } = await client.session.create({ prompt: "say a", repositories: [], queueRightAway: false });
  const shown = (env: Record<string, string>) =>
    ended("script", ["-qec", `${process.execPath} ${main} show ${id}`, "/dev/null"], "", home, {
      OFFSTAGE_API_KEY: adminKey,
      TERM: "xterm",
      ...env,
    });
  expect((await shown({})).out).toContain("\u001b[");
  expect((await shown({ NO_COLOR: "1" })).out).not.toContain("\u001b[");
  expect((await run(["show", id])).out).not.toContain("\u001b[");
});

test("open fails where there is no pull request to open", async () => {
  const { id } = await client.session.create({ prompt: "say a", repositories: [], queueRightAway: false });
  expect(await run(["open", id, "--pull-request"])).toMatchObject({
    code: 1,
    err: "the session has no pull request yet\n",
  });
});

test("completion offers commands and flags in bash", async () => {
  const { out } = await run(["completion", "bash"]);
  const offered = (line: string): string[] => {
    const words = line.split(" ");
    const ask = `${out}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _offstage; echo "\${COMPREPLY[@]}"`;
    return execFileSync("bash", ["-c", ask], { encoding: "utf8" }).trim().split(" ");
  };
  expect(offered("offstage aut")).toEqual(["automations"]);
  expect(offered("offstage automations ru")).toEqual(["runs"]);
  expect(offered("offstage show 1234 --j")).toEqual(["--json"]);
  expect(offered("offstage run do --with")).toEqual(["--with-changes"]);
});
