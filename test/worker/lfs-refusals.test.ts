import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { fetchForFolder } from "../../src/worker/git/lfs/lfs.ts";
import { fetchContents, uploadContents } from "../../src/worker/git/lfs/transfers.ts";
import { lfsPath, lfsStore } from "../../src/worker/git/lfs/store.ts";
import { mustGit } from "../../src/worker/git/git.ts";
import type { Mirror } from "../../src/worker/git/mirrors/mirror.ts";
import { commitFiles } from "./commit-files.ts";

// What servers of LFS refuse, and what only keeps them from answering now, by the words of the git-lfs that is installed.

const isInstalled = spawnSync("git", ["lfs", "version"]).status === 0;
const { signal } = new AbortController();
const oidOf = (content: string): string => createHash("sha256").update(content).digest("hex");
const [good, other] = ["the good content", "the other content"];
const pointer = (content: string): string =>
  `version https://git-lfs.github.com/spec/v1\noid sha256:${oidOf(content)}\nsize ${content.length}\n`;

interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes after which the connection is cut; they are the body. */
  readonly cut?: string;
}

/** What the server does with the other content; what it does not say, it answers well. */
interface Behaviour {
  /** The only password that it takes; omitted: any. */
  readonly password?: string;
  readonly batch?: Answer;
  readonly object?: { readonly code: number; readonly message: string };
  readonly download?: Answer;
}

let folder: string;
let server: Server;
let origin: string;
let behaviour: Behaviour = {};
let sha: string;
let made = 0;

function send(response: ServerResponse, { status, body = "", type, headers = {}, cut }: Answer): void {
  if (cut !== undefined) {
    response.writeHead(status, { "Content-Length": String(cut.length + 10), ...headers });
    response.write(cut, () => response.destroy());
    return;
  }
  response.writeHead(status, { "Content-Type": type ?? "application/vnd.git-lfs+json", ...headers });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-lfs-"));
  server = createServer((request, response) => {
    void text(request).then((body) => {
      const oid = /\/contents\/(\w+)$/u.exec(request.url ?? "")?.[1];
      if (oid !== undefined) {
        if (oid === oidOf(other) && behaviour.download !== undefined) return send(response, behaviour.download);
        return void response.writeHead(200).end(oid === oidOf(good) ? good : other);
      }
      const { password } = behaviour;
      const wanted = `Basic ${Buffer.from(`token:${password}`).toString("base64")}`;
      if (password !== undefined && request.headers.authorization !== wanted)
        return send(response, say(401, "The token has ended"));
      if (behaviour.batch !== undefined) return send(response, behaviour.batch);
      const { objects, operation } = JSON.parse(body) as {
        operation: "download" | "upload";
        objects: { oid: string; size: number }[];
      };
      // It has each content already.
      if (operation === "upload") return send(response, { status: 200, body: { transfer: "basic", objects } });
      const described = objects.map((object) => {
        if (object.oid === oidOf(other) && behaviour.object !== undefined)
          return { ...object, error: behaviour.object };
        return { ...object, actions: { download: { href: `${origin}/contents/${object.oid}` } } };
      });
      return send(response, { status: 200, body: { transfer: "basic", objects: described } });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const repository = join(folder, "repository.git");
  execFileSync("git", ["init", "--quiet", "--bare", repository]);
  const git = (parameters: readonly string[], input = ""): Promise<string> =>
    mustGit(parameters, { cwd: repository, signal, input: Readable.from([input]) });
  const blob = await git(["hash-object", "-w", "--stdin"], "A repository\n");
  const tree = await git(["mktree"], `100644 blob ${blob}\tREADME.md\n`);
  const first = await git(["-c", "user.name=A", "-c", "user.email=a@b.c", "commit-tree", tree, "-m", "First"]);
  sha = await commitFiles(
    repository,
    first,
    {
      ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
      "good.bin": pointer(good),
      "other.bin": pointer(other),
    },
    "Two files",
  );
});

afterEach(() => {
  behaviour = {};
});

afterAll(async () => {
  server?.closeAllConnections();
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

/** A mirror with nothing in its store. */
function mirror(url = `${origin}/acme/large`, passwords = ["t"]): Mirror {
  made += 1;
  const path = join(folder, `mirror-${made}.git`);
  execFileSync("git", ["clone", "--quiet", "--bare", join(folder, "repository.git"), path]);
  // The last one stays.
  const left = [...passwords];
  const credentials = () =>
    Promise.resolve({ username: "token", password: (left.length > 1 ? left.shift() : left[0]) ?? "" });
  const fetchLimits = { bytes: 2 ** 30, memoryBytes: 2 ** 32, ms: 60_000 };
  return { path, url, local: false, named: true, credentials, fetchLimits };
}

const json = { "Content-Type": "application/vnd.git-lfs+json" };
const quota =
  "This repository is over its data quota. Account responsible for LFS bandwidth should purchase more data packs to restore access.";
const say = (status: number, message: string): Answer => ({ status, body: { message } });
const page = (status: number): Answer => ({ status, body: "<html>words</html>", type: "text/html" });

const fetching = (of: Mirror): Promise<void> => fetchContents(of, sha, signal);

describe.skipIf(!isInstalled)("a download of files in LFS", () => {
  test("works with this server", async () => {
    const one = mirror();
    await fetching(one);
    expect([good, other].map((content) => existsSync(lfsPath(lfsStore(one.path), oidOf(content))))).toEqual([
      true,
      true,
    ]);
  });

  test.each<[string, Behaviour, string]>([
    ["a batch without a right", { batch: say(401, "Credentials needed") }, "Credentials needed"],
    ["a quota that is used up", { batch: say(403, quota) }, "over its data quota"],
    ["a repository without LFS", { batch: say(404, "Nothing here") }, "Nothing here"],
    ["a server that has it no more", { batch: say(410, "Gone for good") }, "Gone for good"],
    ["a batch that is too large", { batch: say(413, "too big") }, "too big"],
    ["a batch that it does not like", { batch: say(422, "Validation") }, "Validation"],
    ["LFS that is switched off", { batch: say(501, "LFS is off") }, "LFS is off"],
    ["bandwidth that is used up", { batch: say(509, "no more this month") }, "no more this month"],
    ["an empty answer", { batch: { status: 200 } }, "parse HTTP response"],
    ["a page instead of an answer", { batch: page(200) }, "text/html"],
    ["an object that may not be read", { object: { code: 403, message: "not yours" } }, "[403] not yours"],
    ["an object that is not there", { object: { code: 404, message: "nothing" } }, "[404] nothing"],
    ["an object that was removed", { object: { code: 410, message: "removed" } }, "[410] removed"],
    ["an object that is no object", { object: { code: 422, message: "no hash" } }, "[422] no hash"],
    ["an object without room", { object: { code: 507, message: "no room" } }, "[507] no room"],
    ["a content without a right", { download: say(401, "sign in") }, "sign in"],
    ["a content that may not be read", { download: say(403, "not yours") }, "not yours"],
    ["a content that is not there", { download: say(404, "nothing") }, "nothing"],
    ["a content that was removed", { download: say(410, "removed") }, "removed"],
  ])("is refused for good by %s", async (_, how, words) => {
    behaviour = how;
    const one = mirror();
    await expect(fetching(one)).rejects.toMatchObject({
      code: "repository_unreachable",
      passing: false,
      retryable: true,
      message: expect.stringContaining(words) as string,
    });
    // What the server gives is kept.
    expect(existsSync(lfsPath(lfsStore(one.path), oidOf(good)))).toBe(how.batch === undefined);
  });

  test.each<[string, Behaviour, string]>([
    ["an error of the server", { batch: say(500, "boom") }, "boom"],
    ["a proxy that does not reach it", { batch: page(502) }, "502"],
    ["a server that is busy", { batch: say(503, "busy") }, "busy"],
    ["a rate limit", { batch: say(429, "Rate limit exceeded") }, "Rate limit exceeded"],
    ["a rate limit that names a time", { batch: { ...say(429, "slower"), headers: { "Retry-After": "0" } } }, "429"],
    ["a content's, too", { download: { ...say(429, "slower"), headers: { "Retry-After": "0" } } }, "429"],
    ["an answer that breaks off", { batch: { status: 200, cut: '{"objects":', headers: json } }, "unexpected EOF"],
    ["an object's rate limit", { object: { code: 429, message: "slower" } }, "[429] slower"],
    ["an object's error of the server", { object: { code: 503, message: "busy" } }, "[503] busy"],
    ["a content's rate limit", { download: say(429, "slower") }, ""],
    ["a content's error of the server", { download: say(503, "busy") }, "busy"],
    ["a content that breaks off", { download: { status: 200, cut: "the" } }, "unexpected EOF"],
  ])("waits for %s to pass", async (_, how, words) => {
    behaviour = how;
    await expect(fetching(mirror())).rejects.toMatchObject({
      code: "repository_unreachable",
      passing: true,
      message: expect.stringContaining(words) as string,
    });
  });

  test.each(["http://127.0.0.1:1/acme/large", "http://nowhere.invalid/acme/large"])("waits for %s", async (url) => {
    await expect(fetching(mirror(url))).rejects.toMatchObject({ code: "repository_unreachable", passing: true });
  });

  test("goes on with a new token if the one that it began with has ended, and is refused if there is none", async () => {
    behaviour = { password: "second" };
    const one = mirror(undefined, ["first", "second"]);
    await fetching(one);
    expect(existsSync(lfsPath(lfsStore(one.path), oidOf(other)))).toBe(true);
    await expect(fetching(mirror(undefined, ["first"]))).rejects.toMatchObject({ passing: false });
  });

  test("that is refused leaves pointers, with a notice, and what the server gives", async () => {
    behaviour = { object: { code: 410, message: "removed by its owner" } };
    const one = mirror();
    const notice = await fetchForFolder(one, sha, signal);
    expect(notice).toContain("[410] removed by its owner");
    expect(existsSync(lfsPath(lfsStore(one.path), oidOf(good)))).toBe(true);
  });
});

test.skipIf(!isInstalled)(
  "an upload of files in LFS goes on with a new token if the one that it began with has ended",
  async () => {
    const one = mirror(undefined, ["first", "second"]);
    await fetching(one);
    behaviour = { password: "third" };
    const put = (of: Mirror) => uploadContents(of, [oidOf(good)], signal);
    await expect(put(one)).rejects.toMatchObject({ code: "push_rejected", passing: false });
    const passwords = ["second", "third"];
    await put({ ...one, credentials: () => Promise.resolve({ username: "token", password: passwords.shift() ?? "" }) });
    expect(passwords).toEqual([]);
  },
);
