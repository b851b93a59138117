import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { git } from "../../src/worker/git/git.ts";
import { remoteError } from "../../src/worker/git/remote-error.ts";
import { lookUpHeads } from "../../src/worker/git/mirrors/ask-remote.ts";
import { pinPublicHost } from "../../src/worker/git/remote-address.ts";
import { script } from "../end-to-end/script.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { testEnvironment } from "../test-environment.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";

/** A person who may create a session names a host, and the server itself would contact it. */
let world: World;
let offstage: Offstage;
let client: Client;
let inside: Server;
let port: number;
const visits: string[] = [];

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
  inside = createServer((request, response) => {
    visits.push(request.url ?? "");
    response.end("something of the network inside");
  });
  await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
  ({ port } = inside.address() as AddressInfo);
});

afterAll(async () => {
  inside?.close();
  await offstage?.stop();
  await world?.close();
});

it.each([
  ["this machine", () => `http://127.0.0.1:${port}/a/b`],
  ["this machine by its name", () => `http://localhost:${port}/a/b`],
  ["this machine in another spelling", () => `http://0x7f.1:${port}/a/b`],
  ["this machine as IPv6 carries IPv4", () => `http://[::ffff:127.0.0.1]:${port}/a/b`],
  ["the metadata of a cloud", () => "http://169.254.169.254/latest/meta-data"],
  ["a private network", () => "https://10.0.0.1/a/b"],
  ["a private network, by ssh", () => "ssh://git@192.168.1.1/a/b"],
  ["a private network, written as scp does", () => "git@172.16.0.1:a/b"],
])("a session on a repository of %s contacts no host, and says what to do", async (_, url) => {
  await withoutRemotes(async (asked) => {
    const { id } = await client.session.create({ prompt: "say x", repositories: [url()] });
    expect(await untilOver(client, id)).toMatchObject({
      status: "failed",
      failure: { code: "repository_unreachable", remedy: expect.stringContaining("OFFSTAGE_FORGES") as string },
    });
    expect(visits).toEqual([]);
    expect(await asked()).not.toContain(url());
    // The control: if the operator had named it, git would be sent there.
    const mirror = { path: "/", url: url(), named: true, local: false, credentials: () => Promise.resolve(null) };
    const wanted = { targetBranch: "main", branch: "work" };
    await expect(lookUpHeads(mirror, wanted, AbortSignal.timeout(hangTimeoutMs))).rejects.toThrow(Error);
    expect(await asked()).toContain(url());
  });
});

/** Does something with a git that goes to no remote, and only notes what it was asked. Nothing of this network is contacted. */
async function withoutRemotes(use: (asked: () => Promise<string>) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-noting-git-"));
  const notes = join(folder, "asked");
  const path = process.env["PATH"];
  const { stdout } = await promisify(execFile)("sh", ["-c", "command -v git"], { env: { ...testEnvironment() } });
  await writeFile(notes, "");
  const noting = `#!/bin/sh\necho "$@" >> ${notes}\ncase " $* " in *" --version "*) exec ${stdout.trim()} "$@" ;; esac\nexit 1\n`;
  await writeFile(join(folder, "git"), noting, { mode: 0o755 });
  process.env["PATH"] = `${folder}:${path}`;
  try {
    await use(() => readFile(notes, "utf8"));
  } finally {
    process.env["PATH"] = path;
    await rm(folder, { recursive: true, force: true });
  }
}

/** Git as it is, without anything that holds it. */
const plainGit = (...parameters: string[]): Promise<unknown> =>
  promisify(execFile)("git", parameters, { env: { ...testEnvironment(), GIT_TERMINAL_PROMPT: "0" } }).catch(
    (error: unknown) => error,
  );

it.each(["127.0.0.1", "localhost", "0x7f.1", "[::ffff:127.0.0.1]"])(
  "%s leads to the forbidden server",
  async (host) => {
    await plainGit("ls-remote", `http://${host}:${port}/a/b`);
    expect(visits.splice(0)[0]).toBe("/a/b/info/refs?service=git-upload-pack");
  },
);

it("a server that the operator named is asked wherever it is", async () => {
  const { url } = await world.forge.createRepository("acme", "named", { "README.md": "x\n" });
  const { id } = await client.session.create({ prompt: "write a.txt: a", repositories: [url] });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed" });
});

it("git asks the address that was looked at, whatever the name leads to by then", async () => {
  // The name does not exist: only the pin can have led here.
  const url = `http://rebound.invalid:${port}/a/b`;
  const pinned = { host: "rebound.invalid", port, address: "127.0.0.1" };
  await git(["ls-remote", url], {
    cwd: "/",
    signal: AbortSignal.timeout(hangTimeoutMs),
    remote: { url, credentials: null, pinned },
  });
  expect(visits.splice(0)[0]).toBe("/a/b/info/refs?service=git-upload-pack");
});

it("a redirect is not followed to another place", async () => {
  const away = createServer((_request, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${port}/secret/info/refs?service=git-upload-pack` }).end();
  });
  await new Promise<void>((resolve) => away.listen(0, "127.0.0.1", resolve));
  const awayPort = (away.address() as AddressInfo).port;
  const url = `http://public.invalid:${awayPort}/a/b`;
  const pinned = { host: "public.invalid", port: awayPort, address: "127.0.0.1" };
  const { code, stderr } = await git(["ls-remote", url], {
    cwd: "/",
    signal: AbortSignal.timeout(hangTimeoutMs),
    remote: { url, credentials: null, pinned },
  });
  expect(visits).toEqual([]);
  // The control: a git that follows redirects gets there.
  await plainGit("-c", "http.followRedirects=true", "ls-remote", `http://127.0.0.1:${awayPort}/a/b`);
  expect(visits.splice(0)[0]).toContain("/secret/");
  away.close();
  expect(code).not.toBe(0);
  expect(remoteError(url, stderr)).toMatchObject({
    code: "repository_not_found",
    remedy: expect.stringContaining("new address") as string,
  });
});

it("a public address is pinned with its port", async () => {
  expect(await pinPublicHost("https://1.1.1.1/a/b")).toEqual({ host: "1.1.1.1", port: 443, address: "1.1.1.1" });
  expect(await pinPublicHost("ssh://git@[2606:4700::1111]:2222/a/b")).toEqual({
    host: "2606:4700::1111",
    port: 2222,
    address: "2606:4700::1111",
  });
  expect(await pinPublicHost("git@1.1.1.1:a/b")).toMatchObject({ port: 22 });
});

it("a git that can't be held to an address is not sent to a host that the operator did not name", async () => {
  const folder = await mkdtemp(join(tmpdir(), "offstage-old-git-"));
  const asked = join(folder, "asked");
  const old = `#!/bin/sh\ncase " $* " in *" --version "*) echo git version 2.34.1; exit ;; esac\necho "$@" >> ${asked}\nexit 1\n`;
  await writeFile(join(folder, "git"), old, { mode: 0o755 });
  const path = process.env["PATH"];
  process.env["PATH"] = `${folder}:${path}`;
  const url = "https://1.1.1.1/a/b";
  const mirror = { path: folder, url, named: false, local: false, credentials: () => Promise.resolve(null) };
  const wanted = { targetBranch: "main", branch: "work" };
  try {
    await expect(lookUpHeads(mirror, wanted, AbortSignal.timeout(hangTimeoutMs))).rejects.toMatchObject({
      code: "repository_unreachable",
      remedy: expect.stringContaining("git 2.37") as string,
    });
    expect(existsSync(asked)).toBe(false);
    await expect(lookUpHeads({ ...mirror, named: true }, wanted, AbortSignal.timeout(hangTimeoutMs))).rejects.toThrow(
      url,
    );
    expect(existsSync(asked)).toBe(true);
  } finally {
    process.env["PATH"] = path;
    await rm(folder, { recursive: true, force: true });
  }
});
