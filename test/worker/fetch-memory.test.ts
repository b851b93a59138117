import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGunzip, deflateSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fetchObjects, type FetchLimits } from "../../src/worker/git/mirrors/fetch.ts";
import { looksWithBytes, mustGit } from "../../src/worker/git/git.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";

const megabyte = 1024 * 1024;
let folder: string;
let server: Server;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-fetch-memory-"));
  server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true, force: true });
});

/** The repository's host, with memory of its own: a fetch from a folder would bind both sides. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  const isList = request.method === "GET";
  response.setHeader("Content-Type", `application/x-git-upload-pack-${isList ? "advertisement" : "result"}`);
  if (isList) response.write("001e# service=git-upload-pack\n0000");
  const parameters = [
    "upload-pack",
    "--stateless-rpc",
    ...(isList ? ["--advertise-refs"] : []),
    join(folder, "remote"),
  ];
  const child = spawn("git", parameters, { stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.on("error", () => undefined);
  (request.headers["content-encoding"] === "gzip" ? request.pipe(createGunzip()) : request).pipe(child.stdin);
  child.stdout.pipe(response);
}

function git(cwd: string, parameters: readonly string[], input: string | Buffer = ""): string {
  const identity = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
  return execFileSync("git", [...identity, ...parameters], { cwd, input, encoding: "utf8", stdio: "pipe" }).trim();
}

/** Numbers of gitformat-pack(5), seven bits in each byte, the lowest first. */
function sevenBits(value: number): number[] {
  return value < 128 ? [value] : [128 | (value % 128), ...sevenBits(Math.floor(value / 128))];
}

const blobType = 3;
const offsetDeltaType = 6;

function packEntry(type: number, size: number, before: readonly number[], content: Buffer): Buffer {
  const rest = Math.floor(size / 16);
  const head = rest === 0 ? [(type << 4) | size] : [128 | (type << 4) | (size % 16), ...sevenBits(rest)];
  return Buffer.concat([Buffer.from([...head, ...before]), deflateSync(content)]);
}

/** A file of zeros, and one of which the whole is copies of the first: 7 bytes for each 16 MB. */
function deltaBomb(copies: number): Buffer[] {
  const base = Buffer.alloc(16 * megabyte);
  const first = packEntry(blobType, base.length, [], base);
  const length = base.length - 1;
  const copy = [0b1111_0000, 255, 255, 255];
  const delta = Buffer.from([
    ...sevenBits(base.length),
    ...sevenBits(length * copies),
    ...Array.from({ length: copies }, () => copy).flat(),
  ]);
  // The base lies as far back as it is long: the highest seven bits first, each further byte counted from one less.
  const distance = [first.length % 128];
  for (let left = Math.floor(first.length / 128); left > 0; left = Math.floor(left / 128)) {
    left -= 1;
    distance.unshift(128 | (left % 128));
  }
  return [first, packEntry(offsetDeltaType, delta.length, distance, delta)];
}

const oneFile = (): Buffer[] => {
  const content = Buffer.alloc(400 * megabyte);
  return [packEntry(blobType, content.length, [], content)];
};

function packOf(entries: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(12);
  head.write("PACK");
  head.writeUInt32BE(2, 4);
  head.writeUInt32BE(entries.length, 8);
  const body = Buffer.concat([head, ...entries]);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

/** A branch `main` with every file of the pack. @returns its commit */
async function serveFiles(pack: Buffer): Promise<string> {
  const remote = join(folder, "remote");
  await mkdir(remote);
  git(remote, ["init", "--quiet", "--initial-branch", "main"]);
  git(remote, ["index-pack", "--stdin"], pack);
  const names = git(remote, ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]).split("\n");
  const tree = git(remote, ["mktree"], names.map((name) => `100644 blob ${name}\t${name}`).join("\n"));
  const commit = git(remote, ["commit-tree", tree, "-m", "all of it"]);
  git(remote, ["update-ref", "refs/heads/main", commit]);
  return commit;
}

async function fetchWith(limits: Pick<FetchLimits, "memoryBytes">): Promise<string> {
  const mirror = await mkdtemp(join(folder, "mirror-"));
  git(mirror, ["init", "--quiet", "--bare"]);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/remote.git`;
  const { signal } = new AbortController();
  const remote = { url, credentials: null, pinned: null };
  try {
    await fetchObjects({
      mirror,
      url,
      ref: "refs/heads/main",
      limits: { bytes: 64 * megabyte, ms: hangTimeoutMs, ...limits },
      options: { cwd: mirror, signal, remote },
    });
  } finally {
    expect((await readdir(mirror)).join(" ")).not.toContain("fetch-");
  }
  return mirror;
}

test.each([
  ["that copies one file over and over into another", () => deltaBomb(25)],
  ["of one file of zeros", oneFile],
])(
  "a pack %s, which is small as it is sent, is refused for the memory that git would need",
  { timeout: hangTimeoutMs },
  async (_, entries) => {
    const pack = packOf(entries());
    expect(pack.length).toBeLessThan(megabyte);
    const commit = await serveFiles(pack);
    await expect(fetchWith({ memoryBytes: 320 * megabyte })).rejects.toMatchObject({
      code: "resources_exhausted",
      retryable: false,
      message: expect.stringContaining("320 MB of memory") as string,
      remedy: expect.stringContaining("OFFSTAGE_FETCH_MEMORY_MB") as string,
    });
    // A git that may have as much as it wants takes it, so it was the memory that was missing.
    const mirror = await fetchWith({ memoryBytes: looksWithBytes });
    expect(git(mirror, ["cat-file", "-t", commit])).toBe("commit");
    // Nor does it take more than it may for what is there already.
    const { signal } = new AbortController();
    const look = { cwd: mirror, signal, memoryBytes: 320 * megabyte };
    await expect(mustGit(["diff-tree", "--numstat", "-r", "--root", commit], look)).rejects.toMatchObject({
      code: "resources_exhausted",
      message: expect.stringContaining("320 MB of memory") as string,
    });
  },
);
