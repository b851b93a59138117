import { execFileSync } from "node:child_process";
import { generateKeyPairSync, randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFileQuestions } from "../../src/api/operations/sessions/file-questions.ts";
import { UnavailableError } from "../../src/domain/errors/errors.ts";
import { createMask } from "../../src/domain/masking/mask.ts";
import { createLogger } from "../../src/observability.ts";
import { tarEnd, tarHeader, tarPadding } from "../../src/store/organization-data/tar.ts";
import { createSecret } from "../../src/store/secrets/secrets.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { fileRequestChannel } from "../../src/store/sessions/file-requests.ts";
import { saveCheckpoint } from "../../src/store/checkpoints/checkpoints.ts";
import { finishSession } from "../../src/store/queue/claims.ts";
import { saveWorkspaceWorker } from "../../src/store/queue/progress.ts";
import { removeWorker, reportWorker } from "../../src/store/queue/worker-nodes.ts";
import { createFileAnswers } from "../../src/worker/files/file-answers.ts";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";
import { createMirrors } from "../../src/worker/git/mirrors/mirrors.ts";
import { requireClaim } from "../store/fixtures.ts";
import { createTestApp, type TestApp } from "./app.ts";

const worker = "the-worker";
const secretValue = "a-secret-that-nobody-may-see-4711";
const serverSecret = "the-server-has-this-secret-0815";
const url = "https://git.example/acme/shop";

let api: TestApp;
let data: string;
let mirrors: ReturnType<typeof createMirrors>;
/** The mirror in which git is run. */
let mirror: string;
let answers: ReturnType<typeof createFileAnswers>;
const vault = createVault(environmentKeyring(randomBytes(32).toString("base64")));

function git(parameters: readonly string[], input?: string | Buffer): string {
  const environment = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  const names = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
  return execFileSync("git", ["-C", mirror, ...names, ...parameters], { env: environment, input })
    .toString()
    .trim();
}

const blob = (content: string | Buffer): string => git(["hash-object", "-w", "--stdin"], content);

/** Makes a tree of entries, each `<mode> <name> <object>`; names may be of any bytes. */
function tree(entries: readonly (readonly [mode: string, name: string | Buffer, object: string])[]): string {
  const types: Readonly<Record<string, string>> = { "040000": "tree", "160000": "commit" };
  const lines = entries.map(([mode, name, object]) =>
    Buffer.concat([Buffer.from(`${mode} ${types[mode] ?? "blob"} ${object}\t`), Buffer.from(name), Buffer.from([0])]),
  );
  return git(["mktree", "-z", "--missing"], Buffer.concat(lines));
}

const commit = (of: string): string => git(["commit-tree", of, "-m", "work"]);

beforeAll(async () => {
  api = await createTestApp({ vault });
  data = mkdtempSync(join(tmpdir(), "offstage-files-"));
  mirrors = createMirrors({ dataDirectory: data, allowLocalRepositories: false });
  mirror = mirrors.pathOf(url);
  mkdirSync(mirror, { recursive: true });
  git(["init", "--quiet", "--bare"]);
  await reportThere();
  answers = createFileAnswers({
    database: api.database,
    vault,
    objects: null,
    logger: createLogger("silent"),
    workerId: worker,
    folders: createSessionFolders(data),
    mirrors,
    mask: createMask([serverSecret]),
    forgesOf: () => Promise.resolve({ secrets: () => [] }),
  });
  await answers.start();
  await createSecret(api.database, vault, api.organizationId, {
    id: randomUUID(),
    name: "TOKEN",
    value: secretValue,
    phases: ["agent"],
    repositoryId: null,
  });
});

afterAll(async () => {
  await answers?.stop();
  await api?.close();
  rmSync(data, { recursive: true, force: true });
});

/** Has the worker count as there however long the test takes. */
async function reportThere(): Promise<void> {
  await reportWorker(api.database, { id: worker, agents: [], defaultAgent: null, concurrency: 1 });
  await api.database.pool.query("update worker_node set seen_at = now() + interval '1 day'");
}

/** A session with these commits, which has ended or is still at work. */
async function sessionOf(
  given: { readonly head?: string; readonly base?: string; readonly pushed?: string },
  isOver = true,
): Promise<string> {
  const { body } = await api.post("/session/create", { prompt: "Work", repositories: [url] });
  const claimed = await requireClaim(api.database, { worker });
  await saveWorkspaceWorker(api.database, claimed, worker);
  await api.database.pool.query(
    "update session_repository set head_sha = $2, base_sha = $3, pushed_sha = $4 where session_id = $1",
    [body.id, given.head ?? null, given.base ?? null, given.pushed ?? null],
  );
  if (isOver) await finishSession(api.database, claimed, { status: "cancelled", summary: null, failure: null });
  return body.id;
}

const list = (id: string, path = "", more = "") =>
  api.get(`/session/${id}/file/list?path=${encodeURIComponent(path)}${more}`);
const read = (id: string, path: string, more = "") =>
  api.get(`/session/${id}/file/read?path=${encodeURIComponent(path)}${more}`);

describe("files of a repository", () => {
  let session: string;
  beforeAll(() => {
    const same = blob("same\n");
    const base = commit(
      tree([
        ["100644", "a.txt", blob("before\n")],
        ["100644", "same.txt", same],
        ["040000", "src", tree([["100644", "old.ts", same]])],
      ]),
    );
    const head = commit(
      tree([
        ["100644", "a.txt", blob("after\n")],
        ["100644", "bytes", blob(Buffer.from([0, 1, 2, 255]))],
        ["120000", "leads", blob("/etc/passwd")],
        ["100644", "new.txt", blob("new\n")],
        ["100644", "same.txt", same],
        [
          "040000",
          "src",
          tree([
            ["100644", "new.ts", same],
            ["100644", "old.ts", same],
          ]),
        ],
        ["160000", "sub", base],
      ]),
    );
    return sessionOf({ base, head }).then((id) => (session = id));
  });

  test("are listed folder by folder, with what changed", async () => {
    const root = await list(session);
    expect([root.status, root.body]).toMatchObject([
      200,
      {
        path: "",
        from: null,
        entries: [{ name: "shop", path: "shop", type: "folder", change: null }],
        nextCursor: null,
      },
    ]);
    const { body } = await list(session, "shop");
    expect(body).toMatchObject({ path: "shop", from: "work", complete: true });
    expect(
      body.entries.map(({ path, type, bytes, change }: Record<string, unknown>) => [path, type, bytes, change]),
    ).toEqual([
      ["shop/src", "folder", null, "changed"],
      ["shop/a.txt", "file", 6, "changed"],
      ["shop/bytes", "file", 4, "added"],
      ["shop/leads", "link", null, "added"],
      ["shop/new.txt", "file", 4, "added"],
      ["shop/same.txt", "file", 5, null],
      ["shop/sub", "submodule", null, "added"],
    ]);
    const inner = await list(session, "shop/src");
    expect(inner.body.entries.map(({ name, change }: Record<string, unknown>) => [name, change])).toEqual([
      ["new.ts", "added"],
      ["old.ts", null],
    ]);
  });

  test("are read as texts; of a link only where it leads, of other bytes nothing", async () => {
    expect((await read(session, "shop/a.txt")).body).toEqual({
      path: "shop/a.txt",
      from: "work",
      type: "file",
      bytes: 6,
      text: "after\n",
      offset: 0,
      nextOffset: null,
      complete: true,
    });
    expect((await read(session, "shop/leads")).body).toMatchObject({ type: "link", text: "/etc/passwd" });
    expect((await read(session, "shop/bytes")).body).toMatchObject({ type: "file", bytes: 4, text: null });
  });

  test.each([
    ["list", "shop/none", 404, "the session's workspace has no shop/none"],
    ["list", "other", 404, "the session's workspace has no other"],
    ["list", "shop/a.txt", 400, "path: shop/a.txt is no folder: read it as a file"],
    ["list", "shop/leads", 400, "path: shop/leads is no folder: read it as a file"],
    ["read", "shop/src", 400, "path: shop/src is no file that can be read: list it as a folder"],
    ["read", "shop", 400, "path: shop is no file that can be read: list it as a folder"],
    ["read", "shop/sub", 400, "path: shop/sub is no file that can be read: list it as a folder"],
    ["read", "shop/leads/x", 404, "the session's workspace has no shop/leads/x"],
    ["read", "shop/../../x", 400, "path must be names of folders and a file, parted by /"],
    ["list", "shop/.git", 400, "path must be names of folders and a file, parted by /"],
    ["list", "/shop", 400, "path must be names of folders and a file, parted by /"],
    ["list", "shop/*", 404, "the session's workspace has no shop/*"],
    ["list", "shop/:(top)src", 404, "the session's workspace has no shop/:(top)src"],
  ])("%s of %s is answered %i", async (kind, path, status, words) => {
    const answer = await (kind === "list" ? list : read)(session, path);
    expect([answer.status, answer.body.error]).toEqual([status, words]);
  });

  test("that nobody asked for are not to be had by a path that git would read as a commit's name", async () => {
    const others = commit(tree([["100644", "private.txt", blob("of others")]]));
    for (const path of [`shop/x-g${others}`, `shop/x-g${others.slice(0, 8)}`, `shop/^{/work}`, `shop/src~0`])
      expect((await list(session, path)).status).toBe(404);
  });

  test("are not shown to another organization, nor by a link that shows the session", async () => {
    const { body } = await api.post(`/session/${session}/share/create`, {});
    const key = String(body.url).split("#")[1] ?? "";
    expect((await api.get(`/session/${session}/diff`, { key })).status).toBe(200);
    expect((await api.get(`/session/${session}/file/list`, { key })).status).toBe(403);
    expect((await list(randomUUID())).status).toBe(404);
  });
});

describe("what submodules have", () => {
  const libraryUrl = "https://git.example/acme/library";
  const innerUrl = "https://git.example/others/inner";

  /** A commit in the mirror of another repository. */
  function commitIn(address: string, entries: () => Parameters<typeof tree>[0]): string {
    const shop = mirror;
    mirror = mirrors.pathOf(address);
    try {
      mkdirSync(mirror, { recursive: true });
      git(["init", "--quiet", "--bare"]);
      return commit(tree(entries()));
    } finally {
      mirror = shop;
    }
  }

  /** A session whose clone has submodules, as its worker recorded when it had fetched them. */
  async function sessionWith(head: string, submodules: readonly object[]): Promise<string> {
    const id = await sessionOf({ head, base: head });
    await api.database.pool.query("update session_repository set submodules = $2 where session_id = $1", [
      id,
      JSON.stringify(submodules),
    ]);
    return id;
  }

  test("is shown at the commits that were fetched for the session, and theirs in turn", async () => {
    const inner = commitIn(innerUrl, () => [["100644", "deep.txt", blob(`deep ${secretValue}`)]]);
    const library = commitIn(libraryUrl, () => [
      ["100644", "lib.ts", blob("library")],
      ["160000", "inner", inner],
      ["160000", "gone", inner],
    ]);
    const parts = tree([["160000", "library", library]]);
    const id = await sessionWith(commit(tree([["040000", "parts", parts]])), [
      { path: "parts/library", sha: library, url: libraryUrl },
      { path: "parts/library/inner", sha: inner, url: innerUrl },
    ]);
    const { body } = await list(id, "shop/parts/library");
    expect(body).toMatchObject({ path: "shop/parts/library", from: "work" });
    expect(body.entries.map(({ path, type, change }: Record<string, unknown>) => [path, type, change])).toEqual([
      ["shop/parts/library/gone", "submodule", null],
      ["shop/parts/library/inner", "submodule", null],
      ["shop/parts/library/lib.ts", "file", null],
    ]);
    expect((await read(id, "shop/parts/library/lib.ts")).body.text).toBe("library");
    expect((await read(id, "shop/parts/library/inner/deep.txt")).body.text).toBe("deep [secret]");
    expect((await read(id, "shop/parts/library")).status).toBe(400);
    expect((await read(id, "shop/parts/library/none")).status).toBe(404);
    expect(await list(id, "shop/parts/library/gone")).toMatchObject({
      status: 409,
      body: {
        error: expect.stringMatching(/^nothing of the submodule at shop\/parts\/library\/gone is kept/u) as string,
      },
    });
  });

  test("is not shown of what was not fetched for the session, whatever its commits name", async () => {
    const others = commitIn(innerUrl, () => [["100644", "private.txt", blob("of others")]]);
    const library = commitIn(libraryUrl, () => [["100644", "lib.ts", blob("library")]]);
    const settings = blob(`[submodule "x"]\n\tpath = x\n\turl = ${innerUrl}\n`);
    const head = commit(
      tree([
        ["100644", ".gitmodules", settings],
        ["160000", "moved", others],
        ["040000", "replaced", tree([["100644", "own.txt", blob("own")]])],
        ["160000", "x", others],
      ]),
    );
    const id = await sessionWith(head, [
      { path: "moved", sha: library, url: libraryUrl },
      { path: "replaced", sha: library, url: libraryUrl },
    ]);
    for (const path of ["moved", "x"]) expect((await list(id, `shop/${path}`)).status).toBe(409);
    expect((await read(id, "shop/x/private.txt")).status).toBe(404);
    expect((await read(id, "shop/moved/private.txt")).status).toBe(409);
    // The session has a folder of its own there now.
    expect((await read(id, "shop/replaced/own.txt")).body.text).toBe("own");
    expect((await read(id, "shop/replaced/lib.ts")).status).toBe(404);
  });

  test("is not shown once its mirror is gone", async () => {
    const library = commitIn(libraryUrl, () => [["100644", "lib.ts", blob("library")]]);
    const id = await sessionWith(commit(tree([["160000", "lib", library]])), [
      { path: "lib", sha: library, url: "https://git.example/acme/removed" },
    ]);
    expect((await list(id, "shop/lib")).status).toBe(409);
  });
});

test("names of any bytes are listed, and those that are no text can't be asked for", async () => {
  const content = blob("x");
  // What merely looks like a secret is masked in no name.
  const token = `ghp_${"Ab1".repeat(12)}`;
  const names = ["new\nline", "tab\there", "-rf", "$(id)", "%41", "ünï", "\u202etxt.exe", token];
  const head = commit(
    tree([
      ...names.map((name) => ["100644", name, content] as const),
      ["100644", Buffer.from([0x61, 0xff, 0x62]), content],
      ["100644", `x${secretValue}`, content],
    ]),
  );
  const id = await sessionOf({ head });
  const { body } = await list(id, "shop");
  const all: readonly { name: string; path: string | null }[] = body.entries;
  expect(all.flatMap(({ path }) => path ?? []).toSorted()).toEqual(names.map((name) => `shop/${name}`).toSorted());
  expect(all.flatMap(({ name, path }) => (path === null ? [name] : [])).toSorted()).toEqual(["a\ufffdb", "x[secret]"]);
  for (const name of names) expect((await read(id, `shop/${name}`)).body.text).toBe("x");
});

test("a large folder comes in pages that fit together", async () => {
  const content = blob("x");
  const folder = tree([["100644", "in", content]]);
  const files = Array.from({ length: 25 }, (_, index) => `f${index}`);
  const head = commit(
    tree([
      ...files.map((name) => ["100644", name, content] as const),
      ["040000", "z", folder],
      ["040000", "a", folder],
    ]),
  );
  const id = await sessionOf({ head });
  const found: string[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const { body } = await list(id, "shop", `&limit=10${cursor === "" ? "" : `&cursor=${cursor}`}`);
    expect(body.entries.length).toBeLessThanOrEqual(10);
    found.push(...body.entries.map(({ name }: { name: string }) => name));
    cursor = body.nextCursor;
  }
  expect(found).toEqual(["a", "z", ...files.toSorted()]);
  expect(await list(id, "shop", "&cursor=xx")).toMatchObject({ status: 400 });
});

describe("a file's text", () => {
  test("comes in parts, none of which ends within a character", async () => {
    const text = `${"a🦀".repeat(50)}end`;
    const id = await sessionOf({ head: commit(tree([["100644", "f", blob(text)]])) });
    let all = "";
    for (let offset: number | null = 0; offset !== null;) {
      const { body } = await read(id, "shop/f", `&limit=7&offset=${offset}`);
      expect(body.text.isWellFormed()).toBe(true);
      all += body.text;
      offset = body.nextOffset;
    }
    expect(all).toBe(text);
  });

  test("of a large file is its first MiB", async () => {
    const id = await sessionOf({
      head: commit(tree([["100644", "f", blob("é".repeat(3_000_000))]])),
    });
    const { body } = await read(id, "shop/f", "&offset=400000&limit=500000");
    expect(body).toMatchObject({ bytes: 6_000_000, complete: false, nextOffset: null, offset: 400_000 });
    expect(body.text).toBe("é".repeat(2 ** 19 - 400_000));
  });

  test.each([
    ["a token", 20, `ghp_${"Ab1".repeat(12)}`],
    [
      "a key",
      300,
      generateKeyPairSync("rsa", { modulusLength: 2048 })
        .privateKey.export({ type: "pkcs1", format: "pem" })
        .toString(),
    ],
  ])("that is cut within %s has nothing of it", async (_what, bytes, secret) => {
    const before = `${"x ".repeat((2 ** 20 - bytes - 2) / 2)}.\n`;
    const id = await sessionOf({ head: commit(tree([["100644", "f", blob(`${before}${secret}\nmore`)]])) });
    const { body } = await read(id, "shop/f", `&offset=${before.length - 2}`);
    expect(body).toMatchObject({ complete: false, nextOffset: null, text: ".\n" });
  });

  test("never has a secret, nor what looks like one, not even in parts of it", async () => {
    const token = `ghp_${"Ab1".repeat(12)}`;
    const text = `one ${secretValue}\ntwo ${serverSecret}\nthree ${token}\n${Buffer.from(secretValue).toString("base64")}\n`;
    const id = await sessionOf({
      head: commit(
        tree([
          ["100644", "f", blob(text)],
          ["120000", "l", blob(secretValue)],
        ]),
      ),
    });
    expect((await read(id, "shop/f")).body.text).toBe("one [secret]\ntwo [secret]\nthree [secret]\n[secret]\n");
    expect((await read(id, "shop/l")).body.text).toBe("[secret]");
    const parts = await Promise.all([0, 10, 20].map((offset) => read(id, "shop/f", `&offset=${offset}&limit=10`)));
    expect(parts.map(({ body }) => body.text).join("")).toBe("one [secret]\ntwo [secret]\nthre");
  });
});

test("which files are shown is what is recorded: the last checkpoint at work, the work when it is over, what was pushed, or the start", async () => {
  const [base, head, pushed, stored] = ["base", "head", "pushed", "checkpoint"].map((text) =>
    commit(tree([["100644", "f", blob(text)]])),
  );
  if (base === undefined || head === undefined || pushed === undefined || stored === undefined) throw new Error();
  const gone = "1".repeat(40);
  const shown = async (given: Parameters<typeof sessionOf>[0]): Promise<unknown> => {
    const { status, body } = await read(await sessionOf(given), "shop/f");
    return status === 200 ? [body.from, body.text] : [status, body.error];
  };
  expect(await shown({ base, head, pushed })).toEqual(["work", "head"]);
  expect(await shown({ base, head: gone, pushed })).toEqual(["pushed", "pushed"]);
  expect(await shown({ base })).toEqual(["start", "base"]);
  const notKept =
    "no worker that is running has files of this session: it has not begun to work, or they are no longer kept; what was pushed is in its branch";
  expect(await shown({ base, head: gone })).toEqual([409, notKept]);
  const { body } = await api.post("/session/create", { prompt: "Wait", queueRightAway: false, repositories: [url] });
  expect(await list(body.id)).toMatchObject({ status: 409, body: { error: notKept } });
});

test("at work they are those of the last checkpoint, which lies beside the session's folders", async () => {
  const head = commit(tree([["100644", "f", blob("head")]]));
  const id = await sessionOf({ base: head, head }, false);
  expect((await read(id, "shop/f")).body).toMatchObject({ from: "work", text: "head" });
  const place = createSessionFolders(data).checkpointPath(id, "shop");
  mkdirSync(dirname(place), { recursive: true });
  execFileSync("git", ["clone", "--quiet", "--bare", mirror, place], { stdio: "ignore" });
  const inMirror = mirror;
  mirror = place;
  const stored = commit(tree([["100644", "f", blob("stored")]]));
  mirror = inMirror;
  await api.database.pool.query(
    `insert into checkpoint (session_id, content, sealed_key, master_key, bytes)
     values ($1, $2, '\\x00', 'none', 0)`,
    [id, JSON.stringify({ repositories: [{ directory: "shop", commit: stored }], files: null, harness: null })],
  );
  expect((await read(id, "shop/f")).body).toMatchObject({ from: "checkpoint", text: "stored" });
  rmSync(place, { recursive: true });
  expect((await read(id, "shop/f")).body).toMatchObject({ from: "work", text: "head" });
  await api.post(`/session/${id}/cancel`, {});
});

describe("files of a session without a repository", () => {
  const members = (content: readonly (readonly [name: string, text: string | Buffer])[]): Buffer =>
    Buffer.concat([
      ...content.flatMap(([name, text]) => {
        const bytes = Buffer.from(text);
        return [tarHeader(name, bytes.length, new Date(0)), bytes, tarPadding(bytes.length)];
      }),
      tarEnd,
    ]);

  async function sessionWith(archive: Buffer): Promise<string> {
    const { body } = await api.post("/session/create", { prompt: "Look around" });
    const claimed = await requireClaim(api.database, { worker });
    await saveWorkspaceWorker(api.database, claimed, worker);
    const [piece, file] = [randomUUID(), join(data, randomUUID())];
    writeFileSync(file, gzipSync(archive));
    const checkpoint = {
      originalPaths: { workspace: "/w", home: "/h" },
      repositories: [],
      files: piece,
      contentHash: randomUUID(),
      harness: null,
    };
    const store = { database: api.database, vault, objects: null };
    await saveCheckpoint(store, claimed, { checkpoint, fresh: new Map([[piece, file]]) }, new AbortController().signal);
    await finishSession(api.database, claimed, { status: "cancelled", summary: null, failure: null });
    return body.id;
  }

  test("come from the archive that was taken, as tar writes it", async () => {
    const folder = join(data, "scratch");
    const long = `${"long-".repeat(40)}name.txt`;
    const put = (path: string, text: string): void => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    };
    put("notes.md", "# Notes\n");
    put(`deep/er/${long}`, `long ${secretValue}\n`);
    put(".git/config", "[remote]");
    symlinkSync("/etc/passwd", join(folder, "leads"));
    execFileSync("ln", [join(folder, "notes.md"), join(folder, "same.md")]);
    execFileSync("sh", ["-c", 'mkfifo "$0/pipe"', folder]);
    const archive = execFileSync("tar", ["--sort=name", "--mtime=@0", "--create", "--file=-", "."], { cwd: folder });
    const id = await sessionWith(archive);
    const root = await list(id);
    expect(root.body.entries.map(({ path, type }: Record<string, unknown>) => [path, type])).toEqual([
      ["deep", "folder"],
      ["leads", "link"],
      ["notes.md", "file"],
      ["pipe", "other"],
      ["same.md", "file"],
    ]);
    expect((await list(id, "deep/er")).body.entries).toMatchObject([{ name: long, type: "file" }]);
    expect((await read(id, `deep/er/${long}`)).body).toMatchObject({ from: "checkpoint", text: "long [secret]\n" });
    expect((await read(id, "same.md")).body.text).toBe("# Notes\n");
    expect((await read(id, "leads")).body).toMatchObject({ type: "link", text: "/etc/passwd" });
    expect((await read(id, "pipe")).status).toBe(400);
    expect((await list(id, "none")).status).toBe(404);
  });

  test.each([
    ["no tar at all", randomBytes(4_000)],
    ["a tar that ends early", members([["a", "content"]]).subarray(0, 700)],
    ["a size of no digits", Buffer.concat([members([["a", "b"]]).fill("z", 124, 135)])],
  ])("are none if an agent made it %s", async (_what, archive) => {
    const id = await sessionWith(archive);
    expect((await list(id)).status).toBe(200);
    expect((await read(id, "none")).status).toBe(404);
  });

  test("that lead out of the workspace are not shown by their way", async () => {
    const id = await sessionWith(
      members([
        ["../out.txt", "x"],
        ["a/../../b", "x"],
        ["/etc/passwd", "x"],
        ["in.txt", "x"],
      ]),
    );
    expect((await list(id)).body.entries).toMatchObject([{ name: "in.txt" }]);
    expect((await read(id, "in.txt")).status).toBe(200);
  });
});

test("a worker that is not there is said, and nothing is left of what was asked", async () => {
  const id = await sessionOf({ head: commit(tree([["100644", "f", blob("x")]])) });
  await removeWorker(api.database, worker);
  try {
    const { status, headers } = await list(id);
    expect([status, headers["retry-after"]]).toEqual([503, "5"]);
  } finally {
    await reportThere();
  }
  const { rows } = await api.database.pool.query("select count(*)::integer as count from file_request");
  expect(rows).toEqual([{ count: 0 }]);
});

describe("many questions at once", () => {
  test("of one organization leave places for others on an API node, also if they come before one of them is written", async () => {
    const id = await sessionOf({ head: commit(tree([["100644", "f", blob("x")]])) });
    await api.database.pool.query("update worker_node set id = 'silent' where id = $1", [worker]);
    const questions = await createFileQuestions(api.database);
    try {
      const session = { id, organizationId: api.organizationId };
      const asked = Array.from({ length: 100 }, () =>
        questions.ask(session, { kind: "list", path: "", limit: 1, cursor: null }).catch((error: unknown) => error),
      );
      const refused = await Promise.race(asked);
      expect(refused).toEqual(new UnavailableError("too many files are being looked at: try again", 1));
      await expect.poll(countRequests).toBe(24);
      await questions.close();
      await Promise.all(asked);
      expect(await countRequests()).toBe(0);
    } finally {
      await questions.close();
      await api.database.pool.query("delete from worker_node where id = 'silent'");
      await reportThere();
    }
  });

  test("of one organization leave places for others on a worker, however many notifications come at once", async () => {
    const ids = [await sessionOf({}), await sessionOf({})] as const;
    const other = randomUUID();
    const { rows } = await api.database.pool.query<{ id: string }>(
      "insert into organization (id, name) values ($1, 'Another') returning id",
      [other],
    );
    expect(rows).toHaveLength(1);
    await api.database.pool.query("update session set organization_id = $2 where id = $1", [ids[1], other]);
    const looking: string[] = [];
    let goOn = (): void => undefined;
    const slow = new Promise<void>((resolve) => (goOn = resolve));
    const busy = createFileAnswers({
      database: api.database,
      vault,
      objects: null,
      logger: createLogger("silent"),
      workerId: "busy",
      folders: createSessionFolders(data),
      mirrors: createMirrors({ dataDirectory: data, allowLocalRepositories: false }),
      mask: createMask([]),
      async forgesOf(organizationId) {
        looking.push(organizationId);
        await slow;
        return { secrets: () => [] };
      },
    });
    const ask = (session: string) =>
      api.database.pool.query(
        `insert into file_request (id, session_id, worker, question)
         values ($1, $2, 'busy', '{"kind": "list", "path": "", "limit": 1, "cursor": null}')`,
        [randomUUID(), session],
      );
    await busy.start();
    try {
      for (let count = 0; count < 12; count += 1) await ask(ids[0]);
      await ask(ids[1]);
      for (let count = 0; count < 12; count += 1) api.database.notify(fileRequestChannel, "busy");
      await expect.poll(() => looking.includes(other)).toBe(true);
      expect(looking.filter((id) => id === api.organizationId)).toHaveLength(4);
      goOn();
      await expect.poll(() => looking.length).toBe(13);
    } finally {
      goOn();
      await busy.stop();
      await api.database.pool.query("delete from file_request");
    }
  });

  async function countRequests(): Promise<number> {
    const { rows } = await api.database.pool.query<{ count: number }>(
      "select count(*)::integer as count from file_request",
    );
    return rows[0]?.count ?? 0;
  }
});
