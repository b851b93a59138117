import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, realpath, rm, rmdir, stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, type Client } from "../../src/client.ts";
import { chooseDataFolder } from "../../src/config/data-folder.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import { signInUser } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, startInProcess, type World } from "../world.ts";
import { script } from "./script.ts";

const main = join(import.meta.dirname, "../../src/main.ts");
let world: World;
let offstage: Offstage;
let client: Client;
let url: string;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
  ({ url } = await world.forge.createRepository("acme", "command-line", { "README.md": "# Before\n" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the program as a shell does. `onOutput` sees what it printed so far, and may stop it. */
function shell(
  argv: string[],
  variables: Record<string, string> = {},
  onOutput?: (out: string) => void,
  // Outside any git checkout, whose repository it would take.
  cwd = world.data,
  // There is no more input.
  inputEnds = true,
) {
  const child = spawn(process.execPath, [main, ...argv], {
    cwd,
    env: {
      PATH: process.env["PATH"],
      HOME: world.data,
      OFFSTAGE_SERVER: offstage.url,
      OFFSTAGE_API_KEY: adminKey,
      ...variables,
    },
  });
  if (inputEnds) child.stdin.end();
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
    onOutput?.(out);
  });
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const ended = new Promise<Ended>((resolve) => child.once("close", (code) => resolve({ code, out, err })));
  return { ended, interrupt: () => child.kill("SIGINT"), stopReading: () => child.stdout.destroy() };
}

function sessionIdIn(out: string): string | undefined {
  return /\/sessions\/([0-9a-f-]{36})\n/u.exec(out)?.[1];
}

test("run --follow prints the steps and the pull request, and ends with 0", async () => {
  const { code, out } = await shell(["run", "write shell.txt: hello", "--repository", url, "--follow"]).ended;
  for (const step of ["prepare", "agent", "commit", "push", "pullRequest"]) {
    expect(out).toMatch(new RegExp(`▸ ${step}\n[\\s\\S]*✓ ${step}  \\d`, "u"));
  }
  expect(out).toMatch(/pull request {2}http\S+\n$/u);
  expect(out).not.toContain("\u001b");
  expect(code).toBe(0);
});

test("run --follow ends without a word of our own code when its output is read no further, and the session goes on", async () => {
  const followed = shell(["run", "shell sleep 1", "--repository", url, "--follow"], {}, (out) => {
    if (out.includes("agent")) followed.stopReading();
  });
  const { code, out, err } = await followed.ended;
  expect(err).toMatch(/^\nstopped following; session \S+ continues\n$/u);
  expect(code).toBe(130);
  const id = sessionIdIn(out) ?? "";
  await waitFor(async () => (await client.session.get(id)).status === "completed", "the session is over");
});

test("a server that is no Offstage is reported as such, without a stack", async () => {
  const page = createServer((_request, response) => response.end("<html>"));
  await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
  const server = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
  const { code, err } = await shell(["run", "say x"], { OFFSTAGE_SERVER: server }).ended;
  page.close();
  expect(code).toBe(1);
  expect(err).toBe(
    `offstage: ${server} did not answer like this version of Offstage: check the address and the server's version\n`,
  );
});

test("a page is not taken for a file or a stream that was asked for", async () => {
  const page = createServer((_request, response) => response.setHeader("content-type", "text/html").end("<html>"));
  await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
  const server = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
  const id = "00000000-0000-4000-8000-000000000000";
  for (const argv of [
    ["transcript", id],
    ["follow", id],
    ["insight", "--csv"],
  ]) {
    const { code, out, err } = await shell(argv, { OFFSTAGE_SERVER: server }).ended;
    expect([code, out, err]).toEqual([1, "", expect.stringContaining(`${server} did not answer like`)]);
  }
  const login = await shell(["login", server, "--browser"]).ended;
  page.close();
  expect([login.code, login.err]).toEqual([
    1,
    `offstage: ${server} did not answer like an Offstage: check the address, or try again\n`,
  ]);
});

test("Ctrl-C gives up a request that is not answered, and input that does not end", async () => {
  const asked: string[] = [];
  let interrupt = (): void => undefined;
  const silent = createServer(({ url: path = "" }, response) => {
    asked.push(path);
    if (path.includes("/events")) response.end(JSON.stringify({ events: [], nextCursor: null }));
    interrupt();
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const variables = { OFFSTAGE_SERVER: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` };
  for (const argv of [["list"], ["send", "00000000-0000-4000-8000-000000000000", "-", "--follow"]]) {
    const command = shell(argv, variables, undefined, undefined, false);
    ({ interrupt } = command);
    expect(await command.ended).toEqual({ code: 130, out: "", err: "" });
  }
  silent.closeAllConnections();
  silent.close();
  expect(asked).toHaveLength(2);
});

test("run without --follow prints the session's page and nothing else", async () => {
  const { code, out } = await shell(["run", "say nothing to do"]).ended;
  expect(code).toBe(0);
  const session = await client.session.get(sessionIdIn(out) ?? "");
  expect(out).toBe(`${session.htmlUrl}\n`);
});

test("run --follow ends with 3 when the session is cancelled", async () => {
  const asked: Promise<unknown>[] = [];
  const { ended } = shell(["run", "shell sleep 4712", "--follow"], {}, (out) => {
    const id = sessionIdIn(out);
    if (id !== undefined && asked.length === 0 && out.includes("▸ agent")) asked.push(client.session.cancel(id));
  });
  const { code, out } = await ended;
  await Promise.all(asked);
  expect(code).toBe(3);
  expect(out).toMatch(/cancelled\n$/u);
});

test("run --follow ends with 1 and the reason when the session fails", async () => {
  const missing = `${world.forge.url}/acme/not-there`;
  const { code, out } = await shell(["run", "write x: y", "--repository", missing, "--follow"]).ended;
  expect(code).toBe(1);
  expect(out).toContain("✗ prepare");
  expect(out).toContain("failed: ");
});

test("Ctrl-C while following ends with 130 and leaves the session running", async () => {
  const { ended, interrupt } = shell(["run", "shell sleep 4713", "--follow"], {}, (out) => {
    if (out.includes("▸ agent")) interrupt();
  });
  const { code, out, err } = await ended;
  expect(code).toBe(130);
  expect(err).toContain("continues");
  const id = sessionIdIn(out) ?? "";
  expect((await client.session.get(id)).status).toBe("running");
  await client.session.cancel(id);
  await waitFor(async () => (await client.session.get(id)).status === "cancelled", "the session is cancelled");
});

test.each([
  [
    "a database that is not there",
    () => ({ DATABASE_URL: "postgres://127.0.0.1:9/x" }),
    /can't be opened .*DATABASE_URL/u,
  ],
  [
    "a database of another name",
    () => ({ DATABASE_URL: databaseUrl().replace(/@\/[^?]*/u, "@/not-there") }),
    /can't be opened .*not exist/u,
  ],
  ["a port that is taken", () => ({ OFFSTAGE_PORT: new URL(offstage.url).port }), /^offstage: OFFSTAGE_PORT: another/u],
  ["a host that is another machine's", () => ({ OFFSTAGE_HOST: "192.0.2.1" }), /^offstage: OFFSTAGE_HOST: 192.0.2.1/u],
])("a start with %s is refused with one clear sentence", async (_case, variables, message) => {
  const data = await mkdtemp(join(tmpdir(), "offstage-start-"));
  try {
    const usual = {
      DATABASE_URL: databaseUrl(),
      OFFSTAGE_DATA: data,
      OFFSTAGE_PORT: "0",
      OFFSTAGE_LOG_LEVEL: "silent",
    };
    const { code, out, err } = await shell(["start"], { ...usual, ...variables() }).ended;
    expect(err).toMatch(message);
    expect(err).not.toContain("    at ");
    expect(code).not.toBe(0);
    expect(out).toBe("");
  } finally {
    await rm(data, { recursive: true });
  }
});

test("a key made for a person makes sessions that are theirs", async () => {
  const { database } = offstage;
  const organizationId = await findDefaultOrganization(database);
  const identity = { issuer: "https://id.example", subject: "ada", name: "Ada", login: null, organizations: [] };
  const ada = await signInUser(database, organizationId, { ...identity, email: "Ada@example.com" }, "member");
  const environment = { DATABASE_URL: databaseUrl(), OFFSTAGE_DATA: world.data };
  const made = await shell(["keys", "create", "--name", "laptop", "--owner", "ada@example.com"], environment).ended;
  expect(made).toMatchObject({ code: 0, err: expect.stringMatching(/^ofs_\S+… \(read, write\) is shown only/u) });
  const hers = createClient({ baseUrl: offstage.url, key: made.out.trim() });
  const { id } = await hers.session.create({ prompt: "say hers", queueRightAway: false });
  expect((await client.session.get(id)).requestedBy).toEqual({ type: "user", id: ada?.id, name: "Ada" });
  const { sessions } = await client.session.list({ requestedBy: ada?.id });
  expect(sessions.map((session) => session.id)).toEqual([id]);
  expect((await shell(["keys", "list"], environment).ended).out).toMatch(/active +Ada +laptop\n/u);

  const tooMuch = await shell(["keys", "create", "--role", "admin", "--owner", "ada@example.com"], environment).ended;
  expect(tooMuch.err).toContain("is member, so that a key of theirs can't have admin");
  const unknown = await shell(["keys", "create", "--owner", "bob@example.com"], environment).ended;
  expect(unknown).toMatchObject({ code: 2, out: "", err: expect.stringContaining("bob@example.com") });
});

test("a command prints which data folder it chose, if none was named", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "offstage-cwd-")));
  try {
    // Root's home, for example, can't be entered by the embedded database's user: then start chooses another folder too.
    const chosen = chooseDataFolder(folder, { isRoot: process.getuid?.() === 0, isEmbedded: true }).path;
    const other = await shell(["keys", "list"], {}, undefined, folder).ended;
    expect(other.err).toMatch(new RegExp(`^The data folder is ${chosen}[;,] .*\n`, "u"));
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining(`there is no database in ${chosen}`) });
    const named = await shell(["keys", "list"], { OFFSTAGE_DATA: "named" }, undefined, folder).ended;
    expect(named.err).toBe(
      `offstage: there is no database in ${join(folder, "named")}: name the folder of the service's data with --data\n`,
    );
    const flagged = await shell(["keys", "list", "--data", join(folder, "flag")], {}, undefined, folder).ended;
    expect(flagged.err).toMatch(/^offstage: there is no database in \S+\/flag:/u);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("an organization is made beside a running server, with a key and links of its own", async () => {
  const environment = { DATABASE_URL: databaseUrl(), OFFSTAGE_DATA: world.data };
  const made = await shell(["organization", "create", "left"], environment).ended;
  expect(made).toMatchObject({ code: 0, err: expect.stringMatching(/^Created left\. Its admin key is shown only/u) });
  const theirs = createClient({ baseUrl: offstage.url, key: made.out.trim() });
  expect(await theirs.organization.get()).toMatchObject({ name: "left", usesServerForges: false });
  const key = await shell(["keys", "create", "--organization", "left"], environment).ended;
  const { orgId } = await createClient({ baseUrl: offstage.url, key: key.out.trim() }).me();
  expect(orgId).toBe((await theirs.me()).orgId);
  const listed = await shell(["organization", "list"], environment).ended;
  expect(listed.out).toMatch(new RegExp(`^NAME .*\nleft +0 +0 +- +${orgId}\ndefault `, "u"));
  const again = await shell(["organization", "create", "Left"], environment).ended;
  expect(again).toMatchObject({ code: 1, out: "", err: "offstage: name: there is an organization Left already\n" });
  const kept = await shell(["organization", "create", "default"], environment).ended;
  expect(kept).toMatchObject({ code: 2, out: "", err: expect.stringMatching(/^offstage: name: is a name that only/u) });
  const none = await shell(["login-link", "--organization", "lfet"], environment).ended;
  expect(none).toMatchObject({ code: 1, out: "", err: "offstage: there is no organization lfet\n" });
});

test.skipIf(process.platform !== "linux" || process.getuid?.() !== 0)(
  "a server starts from a clone below root's home, says where its data is, and works there",
  async () => {
    // As root's home: only root may enter it.
    const home = await realpath(await mkdtemp(join(tmpdir(), "offstage-home-")));
    const clone = join(home, "clone");
    await mkdir(clone);
    // Its mounts are its own, so that this machine's /var/lib is not touched, nor the data that this clone may have.
    const start = `mount --bind "$2" "$3" && mount -t tmpfs -o mode=755 tmpfs /var/lib && cd "$3" &&
      if [ -d .offstage ]; then mount -t tmpfs tmpfs .offstage; fi && exec "$1" src/main.ts start`;
    const root = join(import.meta.dirname, "../..");
    const { OFFSTAGE_DATA: _data, DATABASE_URL: _url, ...variables } = world.variables;
    const child = spawn("unshare", ["--mount", "sh", "-c", start, "sh", process.execPath, root, clone], {
      env: { ...variables, HOME: world.data },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = once(child, "exit");
    try {
      let [out, err] = ["", ""];
      child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
      child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
      const address = (): string | undefined => /answers at (http:\/\/[^\s"]+)/u.exec(out + err)?.[1];
      await waitFor(() => {
        if (child.exitCode !== null) throw new Error(`it ended: ${out}${err}`);
        return address();
      }, "it answers");
      const said = `The data folder is /var/lib/offstage, because the embedded database's user can't enter ${home};`;
      expect(out + err).toContain(said);
      const answer = await fetch(`${address()}/session/list`, { headers: { Authorization: `Bearer ${adminKey}` } });
      expect(await answer.json()).toEqual({ sessions: [], nextCursor: null });
    } finally {
      child.kill("SIGTERM");
      await ended;
      // Both are empty, and nothing else is to be removed.
      await rmdir(clone);
      await rmdir(home);
    }
  },
);

test("an organization is exported beside a running server, and one is erased without its worker's help", async () => {
  const environment = { DATABASE_URL: databaseUrl(), OFFSTAGE_DATA: world.data };
  const folder = await mkdtemp(join(tmpdir(), "offstage-export-"));
  const file = join(folder, "default.tar");
  try {
    const exported = await shell(["organization", "export", "default", file], environment).ended;
    expect(exported).toMatchObject({ code: 0, err: "" });
    const listed = await promisify(execFile)("tar", ["-tf", file]);
    expect(listed.stdout).toMatch(/^manifest\.json\n[\s\S]*\nend\.json\n$/u);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const again = await shell(["organization", "export", "default", file], environment).ended;
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining("already exists") });
  } finally {
    await rm(folder, { recursive: true });
  }
  const { pool } = offstage.database;
  // The one that was made above, or else another.
  await pool.query("insert into organization (id, name) values (gen_random_uuid(), 'left') on conflict do nothing");
  const unknown = await shell(["organization", "erase", "lfet"], environment).ended;
  expect(unknown).toMatchObject({ code: 1, err: "offstage: there is no organization lfet\n" });
  expect((await shell(["organization", "erase", "left"], environment).ended).code).toBe(0);
  const { rows } = await pool.query("select name from organization");
  expect(rows).toEqual([{ name: "default" }]);
});

test("npm start hands SIGTERM on to the server, so that none is left behind", async () => {
  const data = await mkdtemp(join(tmpdir(), "offstage-npm-"));
  const npm = spawn("npm", ["start"], {
    cwd: join(import.meta.dirname, "../.."),
    env: { ...world.variables, HOME: data, OFFSTAGE_DATA: data },
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  try {
    let out = "";
    npm.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    const address = (): string | undefined => /answers at (http:\/\/\S+)/u.exec(out)?.[1];
    await waitFor(() => address(), "it answers");
    npm.kill("SIGTERM");
    const isGone = (): Promise<boolean> =>
      fetch(`${address() ?? ""}/healthz`).then(
        () => false,
        () => true,
      );
    await waitFor(isGone, "the server has ended");
  } finally {
    if (npm.pid !== undefined && isThere(-npm.pid)) process.kill(-npm.pid, "SIGKILL");
    await rm(data, { recursive: true, force: true, maxRetries: 3 });
  }
});

test("one request to stop that comes twice stops the server as one does", async () => {
  const data = await mkdtemp(join(tmpdir(), "offstage-signals-"));
  const usual = { ...world.variables, OFFSTAGE_DATA: data };
  try {
    const server = spawn(process.execPath, [main, "start"], { env: usual, stdio: ["ignore", "pipe", "ignore"] });
    await once(server.stdout, "data");
    // Two of one kind could come as one.
    for (const signal of ["SIGINT", "SIGTERM"] as const) server.kill(signal);
    expect(await once(server, "exit")).toEqual([0, null]);
  } finally {
    await rm(data, { recursive: true, force: true, maxRetries: 3 });
  }
});

/** Whether there is a process, or with a minus a group of processes. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function databaseUrl(): string {
  return world.variables["DATABASE_URL"] ?? "";
}

test.each([
  ["a key that is wrong", { OFFSTAGE_API_KEY: "wrong" }, ["run", "say hi"], 1, /key/iu],
  ["a server that is not there", { OFFSTAGE_SERVER: "http://127.0.0.1:9" }, ["run", "say hi"], 1, /can't be reached/u],
  ["no key", { OFFSTAGE_API_KEY: "" }, ["run", "say hi"], 2, /offstage keys create/u],
  ["an agent that does not exist", {}, ["run", "say hi", "--agent", "nobody:none"], 1, /nobody/u],
  ["a flag that does not exist", {}, ["run", "say hi", "--folow"], 2, /unknown option/u],
  ["a setting that is wrong", { OFFSTAGE_PORT: "many" }, ["start"], 2, /OFFSTAGE_PORT/u],
])("%s is one clear sentence on stderr", async (_case, variables, argv, expected, message) => {
  const { code, out, err } = await shell(argv, variables).ended;
  expect(code).toBe(expected);
  expect(err).toMatch(message);
  expect(err).not.toContain("    at ");
  expect(out).toBe("");
});
