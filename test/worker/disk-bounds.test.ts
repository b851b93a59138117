import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { diskUsage } from "../../src/sandboxes/process/disk-usage.ts";
import { makeClones } from "../../src/worker/clones/clones.ts";
import { isDiskFull } from "../../src/worker/disk/disk-full.ts";
import type { FetchLimits } from "../../src/worker/git/mirrors/fetch.ts";
import { startForge } from "../forge/server.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { cloneServicesIn, cloneSourceAt } from "./clone-source.ts";

const megabyte = 1024 * 1024;
const { signal } = new AbortController();
let data: string;

beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "offstage-bounds-"));
});

afterEach(() => rm(data, { recursive: true, force: true }));

function git(cwd: string, ...parameters: string[]): string {
  const identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...identity, ...parameters], { cwd, encoding: "utf8", stdio: "pipe" }).trim();
}

function withInput(cwd: string, input: string | Buffer, ...parameters: string[]): string {
  return execFileSync("git", parameters, { cwd, input, encoding: "utf8", stdio: "pipe" }).trim();
}

async function emptyRemote(name: string): Promise<string> {
  const path = join(data, "remotes", name);
  await mkdir(path, { recursive: true });
  git(path, "init", "--quiet", "--initial-branch", "main");
  return path;
}

/** A branch `main` whose one commit has these entries, as `git mktree` reads them. */
function commitTree(path: string, entries: readonly string[]): void {
  const tree = withInput(path, entries.join("\n"), "mktree");
  git(path, "update-ref", "refs/heads/main", git(path, "commit-tree", tree, "-m", "all of it"));
}

const blobOf = (path: string, content: Buffer): string => withInput(path, content, "hash-object", "-w", "--stdin");

interface Bounds {
  readonly diskBytes?: number;
  readonly files?: number;
  readonly fetch?: FetchLimits;
}

function prepare(bounds: Bounds, ...urls: readonly string[]): ReturnType<typeof makeClones> {
  const sources = urls.map((url, index) => cloneSourceAt(url, `clone${index}`, "main"));
  const request = { sessionId: crypto.randomUUID(), sources, progress: () => undefined, signal };
  return makeClones(cloneServicesIn(data, bounds), request, null);
}

/** Whether mount(8) succeeds; only root may mount. */
const mount = (...parameters: string[]): boolean => spawnSync("mount", parameters).status === 0;
const canMount = process.platform === "linux" && process.getuid?.() === 0 && mount("--version");

/** What all sessions' folders hold. */
async function held(): Promise<{ bytes: number; files: number }> {
  return (await diskUsage([join(data, "sessions")], null)) ?? { bytes: -1, files: -1 };
}

const refusal = (setting: string): object => ({
  code: "resources_exhausted",
  retryable: false,
  remedy: expect.stringContaining(setting) as string,
});

describe("a checkout", () => {
  test("of few objects that stand for much is refused before it is written", async () => {
    const url = await emptyRemote("names");
    const blob = blobOf(url, randomBytes(2 * megabyte));
    commitTree(
      url,
      Array.from({ length: 60 }, (_, index) => `100644 blob ${blob}\tname${index}`),
    );
    await expect(prepare({ diskBytes: 30 * megabyte }, url)).rejects.toMatchObject(refusal("OFFSTAGE_SANDBOX_DISK_MB"));
    expect((await held()).bytes).toBeLessThan(megabyte);
    // The same is written where there is room for it, so it would have been.
    await prepare({ diskBytes: 200 * megabyte }, url);
    expect((await held()).bytes).toBeGreaterThan(100 * megabyte);
  });

  test("of a tree without an end is refused, without waiting for its end", async () => {
    const url = await emptyRemote("endless");
    let entry = `100644 blob ${blobOf(url, Buffer.from("x"))}`;
    for (let level = 0; level < 12; level += 1) {
      const lines = Array.from({ length: 10 }, (_, index) => `${entry}\t${index}`);
      entry = `040000 tree ${withInput(url, lines.join("\n"), "mktree")}`;
    }
    commitTree(url, [`${entry}\tall`]);
    await expect(prepare({ files: 20_000 }, url)).rejects.toMatchObject(refusal("OFFSTAGE_SANDBOX_FILES"));
    expect((await held()).files).toBeLessThan(100);
  });

  test("of many files without content is refused by their number, folders among them", async () => {
    const url = await emptyRemote("many");
    const blob = blobOf(url, Buffer.alloc(0));
    const folder = withInput(url, `100644 blob ${blob}\tone`, "mktree");
    commitTree(
      url,
      Array.from({ length: 600 }, (_, index) => `040000 tree ${folder}\tfolder${index}`),
    );
    await expect(prepare({ files: 1_000 }, url)).rejects.toMatchObject(refusal("OFFSTAGE_SANDBOX_FILES"));
    expect((await held()).files).toBeLessThan(100);
    await prepare({ files: 2_000 }, url);
    expect((await held()).files).toBeGreaterThan(1_200);
  });

  test("that several repositories are only together too large for is refused, and none of them is left", async () => {
    const urls = await Promise.all(["one", "two", "three"].map(emptyRemote));
    for (const url of urls) commitTree(url, [`100644 blob ${blobOf(url, Buffer.alloc(10 * megabyte))}\tfile`]);
    await expect(prepare({ diskBytes: 25 * megabyte }, ...urls)).rejects.toMatchObject(refusal("_DISK_MB"));
    expect((await held()).bytes).toBeLessThan(megabyte);
    await prepare({ diskBytes: 40 * megabyte }, ...urls);
  });

  test.each([
    ["another encoding", "* text working-tree-encoding=UTF-32LE", "x"],
    ["other line ends", "* text eol=crlf", "\n"],
  ])(
    "that attributes make larger than its objects, by %s, is stopped, and not left",
    async (_, attributes, content) => {
      const url = await emptyRemote("attributes");
      const blob = blobOf(url, Buffer.from(content.repeat(12 * megabyte)));
      commitTree(url, [
        `100644 blob ${blobOf(url, Buffer.from(`${attributes}\n`))}\t.gitattributes`,
        `100644 blob ${blob}\tfile.txt`,
      ]);
      await expect(prepare({ diskBytes: 20 * megabyte }, url)).rejects.toMatchObject(
        refusal("OFFSTAGE_SANDBOX_DISK_MB"),
      );
      expect((await held()).bytes).toBeLessThan(megabyte);
      await prepare({ diskBytes: 80 * megabyte }, url);
      expect((await held()).bytes).toBeGreaterThan(23 * megabyte);
    },
  );

  test("with links, submodules and folders in it is counted, and made", async () => {
    const url = await emptyRemote("kinds");
    const blob = blobOf(url, Buffer.from("target"));
    const folder = withInput(url, `100755 blob ${blob}\tprogram`, "mktree");
    commitTree(url, [
      `120000 blob ${blob}\tlink`,
      `160000 commit ${"1".repeat(40)}\tsubmodule`,
      `040000 tree ${folder}\tfolder`,
      `100644 blob ${blob}\tname\\with "marks"`,
    ]);
    await expect(prepare({}, url)).resolves.toMatchObject({ clones: [{ targetBranch: "main" }] });
  });
});

describe("a fetch", () => {
  const ms = 60_000;
  const memoryBytes = 4_096 * megabyte;

  test("that brings more than it may is stopped, and leaves nothing in the mirror", async () => {
    const url = await emptyRemote("large");
    commitTree(url, [`100644 blob ${blobOf(url, randomBytes(12 * megabyte))}\trandom`]);
    await expect(prepare({ fetch: { bytes: 4 * megabyte, memoryBytes, ms } }, url)).rejects.toMatchObject(
      refusal("OFFSTAGE_FETCH_MB"),
    );
    const mirrors = await diskUsage([join(data, "mirrors")], null);
    expect(mirrors?.bytes).toBeLessThan(megabyte);
    await prepare({ fetch: { bytes: 20 * megabyte, memoryBytes, ms } }, url);
    // What was stopped can be fetched again, and what is there goes on from there.
    expect((await diskUsage([join(data, "mirrors")], null))?.bytes).toBeGreaterThan(12 * megabyte);
    const [mirror = ""] = await readdir(join(data, "mirrors"));
    expect((await readdir(join(data, "mirrors", mirror))).join(" ")).not.toContain("fetch-");
    expect(git(join(data, "mirrors", mirror), "fsck", "--full")).not.toMatch(/missing|broken|error/u);
  });

  test("of few objects that unpack to much is kept as it came", async () => {
    const url = await emptyRemote("deltas");
    const base = randomBytes(4 * megabyte);
    const blobs = [base, ...Array.from({ length: 8 }, (_, index) => Buffer.concat([base, Buffer.from(String(index))]))];
    commitTree(
      url,
      blobs.map((content, index) => `100644 blob ${blobOf(url, content)}\tfile${index}`),
    );
    git(url, "repack", "-a", "-d", "--quiet");
    await prepare({ fetch: { bytes: 8 * megabyte, memoryBytes, ms } }, url);
    expect((await diskUsage([join(data, "mirrors")], null))?.bytes).toBeLessThan(8 * megabyte);
  });

  test.skipIf(!canMount)("that fills the worker's disk is stopped for that, not for what it may bring", async () => {
    const mirrors = join(data, "mirrors");
    await mkdir(mirrors);
    // Less than a worker wants free, and more than the repository takes.
    expect(mount("-t", "tmpfs", "-o", "size=400m", "tmpfs", mirrors)).toBe(true);
    const forge = await startForge();
    try {
      const { url } = await forge.createRepository("acme", "large", {});
      const remote = forge.pathOf("acme", "large");
      git(remote, "config", "core.compression", "0");
      commitTree(remote, [`100644 blob ${blobOf(remote, randomBytes(160 * megabyte))}\trandom`]);
      // It takes longer than two looks at the disk.
      forge.slowGit(3);
      const { remote: plain, ...source } = cloneSourceAt(url, "clone", "main");
      const credentials = () => Promise.resolve({ username: "token", password: forge.token });
      const sources = [{ ...source, remote: { ...plain, credentials } }];
      const request = { sessionId: crypto.randomUUID(), sources, progress: () => undefined, signal };
      const error = await makeClones(cloneServicesIn(data), request, null).catch((thrown: unknown) => thrown);
      expect([isDiskFull(error), error]).toEqual([true, expect.not.objectContaining({ retryable: false })]);
    } finally {
      await forge.close();
      execFileSync("umount", ["--lazy", mirrors]);
    }
  });

  describe("from a host that sends without an end", () => {
    let server: Server;
    let sent = 0;
    /** When the first request came, as `performance.now()`. */
    let askedAt: number | null = null;

    beforeEach(async () => {
      const remote = await emptyRemote("slow");
      await writeFile(join(remote, "file"), "x");
      git(remote, "add", "--all");
      git(remote, "commit", "--quiet", "--message", "first");
      sent = 0;
      askedAt = null;
      server = createServer((request, response) => {
        askedAt ??= performance.now();
        if (request.method === "GET") {
          response.setHeader("Content-Type", "application/x-git-upload-pack-advertisement");
          response.write("001e# service=git-upload-pack\n0000");
          const parameters = ["upload-pack", "--stateless-rpc", "--advertise-refs", remote];
          spawn("git", parameters, { stdio: ["ignore", "pipe", "ignore"] }).stdout.pipe(response);
          return;
        }
        request.resume();
        response.setHeader("Content-Type", "application/x-git-upload-pack-result");
        response.write("0008NAK\n");
        // A line of progress (side band 2): quick enough for git's own bound of slow connections.
        const sending = setInterval(() => {
          sent += 1;
          response.write("000f\u0002working...");
        }, 50);
        response.once("close", () => clearInterval(sending));
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    });

    afterEach(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });

    test("ends when its time is over", { timeout: hangTimeoutMs }, async () => {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/slow.git`;
      const began = performance.now();
      // For the fetch, and not for the question before it: longer than git took to come with that.
      const fetch = {
        bytes: 20 * megabyte,
        memoryBytes,
        get ms() {
          return askedAt === null ? hangTimeoutMs : 1_500 + 2 * Math.ceil(askedAt - began);
        },
      };
      await expect(prepare({ fetch }, url)).rejects.toMatchObject({
        // Of this code a session is tried again three times.
        code: "resources_exhausted",
        passing: true,
        remedy: expect.stringContaining("OFFSTAGE_FETCH_MINUTES") as string,
      });
      expect(sent).toBeGreaterThan(1);
    });
  });
});
