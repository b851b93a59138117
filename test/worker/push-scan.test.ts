import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mustGit } from "../../src/worker/git/git.ts";
import { scanPush, type PushFindings } from "../../src/worker/secret-scan/push-scan.ts";

let folder: string;
const { signal } = new AbortController();
const identity = ["-c", "user.name=A", "-c", "user.email=a@example"];
const git = (...parameters: string[]): Promise<string> =>
  mustGit([...identity, ...parameters], { cwd: folder, signal, local: true });

const pem = `-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACBqZ0V4YW1wbGVLZXlNYXRlcmlhbFRoYXRJc05vdFJlYWxBQkNERUZHSElK
-----END OPENSSH PRIVATE KEY-----
`;
const secret = "one_line_secret_value_12345678";
/** A token of GitHub's form that is no one's: made at random, so that no scanner takes this file for a leak. */
const token = `ghp_${randomBytes(27).toString("base64").replaceAll(/[+/=]/gu, "x").slice(0, 36)}`;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "offstage-push-look-"));
  await git("init", "--quiet", "--initial-branch", "main");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

async function commit(files: Readonly<Record<string, string | Uint8Array>>, message = "work"): Promise<string> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  await git("add", "--all");
  await git("commit", "--quiet", "--allow-empty", "--message", message);
  return git("rev-parse", "HEAD");
}

/** Checked against the parameters of `scanPush`, so that none is ignored. */
type ScanOptions = Partial<Parameters<typeof scanPush>[0]>;

async function look(base: string, how: ScanOptions = {}): Promise<PushFindings> {
  const head = await git("rev-parse", "HEAD");
  return scanPush({ cwd: folder, head, known: [base], secrets: [secret, pem], allowed: [], signal, ...how });
}

const knownIn = async (base: string, how?: ScanOptions): Promise<string[]> =>
  (await look(base, how)).known.map(({ owner, path, inName }) => `${owner} ${inName ? "name " : ""}${path}`);
const shapesIn = async (base: string, how?: ScanOptions): Promise<string[]> =>
  (await look(base, how)).shapes.map(({ rule, path, line }) => `${rule} ${path}:${line}`);

describe("a known secret is found", () => {
  test.each([
    ["as a file of its own", pem],
    ["with other ends of lines", pem.replaceAll("\n", "\r\n")],
    ["behind a diff's signs", pem.replaceAll(/^/gmu, "+")],
    [
      "with line numbers",
      pem
        .split("\n")
        .map((line, index) => `${index + 1}\t${line}`)
        .join("\n"),
    ],
    ["in JSON", JSON.stringify({ key: pem })],
    ["in base64 that is broken into lines", Buffer.from(`x${pem}`).toString("base64").replaceAll(/.{76}/gu, "$&\n")],
    ["in UTF-16", Buffer.from(pem, "utf16le")],
    ["among bytes that are no text", Buffer.concat([randomBytes(5_000), Buffer.from(pem), randomBytes(5_000)])],
  ])("%s", async (_, content) => {
    const base = await commit({ "README.md": "# Before\n" });
    await commit({ "a folder/key": content });
    expect(await knownIn(base)).toEqual(["1 a folder/key"]);
  });

  test("in what a merge alone brings, and in a commit that a later one takes back", async () => {
    const base = await commit({ base: "base" });
    await git("checkout", "--quiet", "-b", "side");
    await commit({ side: "side" });
    await git("checkout", "--quiet", "main");
    await commit({ main: `KEY=${secret}\n` });
    await commit({ main: "nothing\n" });
    await git("merge", "--quiet", "--no-commit", "--no-ff", "side");
    await commit({ "merged.env": pem }, "Merge");
    expect((await knownIn(base)).sort()).toEqual(["0 main", "1 merged.env"]);
  });

  test("in a commit's message, in who made it, in names of files and over names of folders", async () => {
    const base = await commit({ base: "base" });
    await commit({}, `Use ${secret}`);
    expect(await knownIn(base)).toEqual(["0 name "]);
    const next = await git("rev-parse", "HEAD");
    await git("commit", "--quiet", "--allow-empty", "--message", "x", "--author", `${secret} <a@example>`);
    expect(await knownIn(next)).toEqual(["0 name "]);
    const third = await git("rev-parse", "HEAD");
    await commit({ [`folder/${secret}.txt`]: "x" });
    expect(await knownIn(third)).toContain("0 name folder");
    const fourth = await git("rev-parse", "HEAD");
    // The file itself is in the repository already: only its name is new.
    await commit({ "split/in/folders.txt": "x" });
    expect(await knownIn(fourth, { secrets: ["split/in/folders"] })).toEqual(["0 name split/in"]);
  });

  test("in a file that shows another part of it already, and not for that part alone", async () => {
    const shown = "DATABASE_PASSWORD=development_pw_1\n";
    const whole = `APP_NAME=demo\n${shown}SIGNING_KEY=9fA8sd7f6Gs9d8f7GHsdf876sdf\n`;
    const how = { secrets: [whole] };
    const base = await commit({ ".env.example": shown });
    await commit({ ".env.example": `# Copy it\n${shown}` });
    expect(await knownIn(base, how)).toEqual([]);
    await commit({ ".env.example": whole });
    expect(await knownIn(base, how)).toEqual(["0 .env.example"]);
    // What shows all of it shows each part.
    const next = await git("rev-parse", "HEAD");
    await commit({ ".env.example": whole.replace("APP_NAME=demo\n", "") });
    expect(await knownIn(next, how)).toEqual([]);
    const long = `${"# What every one of these variables is for\n".repeat(40)}${whole}`;
    const header = long.slice(0, 1_500);
    const before = await commit({ ".env.example": header });
    await commit({ ".env.example": `${header}\n` });
    expect(await knownIn(before, { secrets: [long] })).toEqual([]);
    await commit({ ".env.example": long });
    expect(await knownIn(before, { secrets: [long] })).toEqual(["0 .env.example"]);
  });

  test("as the commit of a submodule", async () => {
    const hexadecimal = "3f786850e387550fdab836ed7e6dc881de23001b";
    const base = await commit({ base: "base" });
    await git("update-index", "--add", "--cacheinfo", `160000,${hexadecimal},vendor`);
    await git("commit", "--quiet", "--message", "work");
    expect(await knownIn(base, { secrets: [hexadecimal] })).toEqual(["0 name "]);
  });

  test("at any place of a content that is far larger than what is read at once", async () => {
    const base = await commit({ base: "base" });
    const filler = randomBytes(3 * 1024 * 1024);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1_048_576 - 300, max: 1_048_576 + 10 }), async (at) => {
        const content = Buffer.concat([filler.subarray(0, at), Buffer.from(`\n${secret}\n`), filler.subarray(at)]);
        await git("reset", "--quiet", "--hard", base);
        await commit({ large: content });
        return (await knownIn(base)).join() === "0 large";
      }),
      { numRuns: 5 },
    );
  });

  test("behind more than any limit on a patch: nothing is cut", async () => {
    const base = await commit({ base: "base" });
    const line = "an ordinary line of a very large file\n";
    await commit({ "a-large": line.repeat(1_800_000), "z-last": secret });
    expect(await knownIn(base)).toEqual(["0 z-last"]);
  });
});

test("nothing is found in ordinary work, though a secret has ordinary lines", async () => {
  const account = JSON.stringify(
    { type: "service_account", auth_uri: "https://accounts.example.com/o/oauth2/auth", private_key: pem },
    null,
    2,
  );
  const base = await commit({ base: "base" });
  const ordinary =
    '{\n  "type": "service_account",\n  "auth_uri": "https://accounts.example.com/o/oauth2/auth",\n}\n-----BEGIN OPENSSH PRIVATE KEY-----\n';
  await commit({ "docs.json": ordinary });
  expect(await look(base, { secrets: [account, pem] })).toEqual({ known: [], shapes: [], notRead: [] });
  await commit({ "key.txt": pem.replaceAll(/^/gmu, "  ") });
  expect(await knownIn(base, { secrets: [account] })).toEqual(["0 key.txt"]);
});

describe("what looks like a secret", () => {
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  const random = (length: number): string =>
    randomBytes(length).toString("base64").replaceAll(/[+/=]/gu, "x").slice(0, length);
  test.each([
    ["github", token],
    ["gitlab", `glpat-${random(20)}`],
    ["aws", ["AKIA", "ABCDEFGHIJKL2345"].join("")],
    ["aws", `aws_secret_access_key = ${random(40)}`],
    ["slack", `xoxb-123456789012-1234567890123-${random(24)}`],
    ["openai", `sk-proj-${random(74)}T3BlbkFJ${random(74)}`],
    ["anthropic", `sk-ant-api03-${random(93)}AA`],
    ["npm", `npm_${random(36)}`],
    ["stripe", `sk_live_${random(24)}`],
    ["privatekey", privateKey],
  ])("stops a push: %s", async (rule, value) => {
    const base = await commit({ base: "base" });
    await commit({ "src/a.ts": `// one\n${value}\n` });
    expect(await shapesIn(base)).toEqual([`${rule} src/a.ts:2`]);
  });

  test("is found whatever the file says to the scanner, in UTF-16, and far into a large file", async () => {
    const base = await commit({ base: "base" });
    await commit({
      "comment.ts": `// secretlint-disable\nconst a = "${token}"; // secretlint-disable-line\n`,
      "wide.txt": Buffer.from(`token ${token}\n`, "utf16le"),
      "large.txt": `${"an ordinary line\n".repeat(100_000)}${token}\n`,
    });
    expect((await shapesIn(base)).sort()).toEqual([
      "github comment.ts:2",
      "github large.txt:100001",
      "github wide.txt:1",
    ]);
  });

  test("is found wherever what is read at once ends, and only once", async () => {
    const base = await commit({ base: "base" });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 33_000 }), async (before) => {
        await git("reset", "--quiet", "--hard", base);
        await commit({ "large.txt": `${" ".repeat(1_048_576 - before)}${token}${" ".repeat(40_000)}` });
        return (await shapesIn(base)).join() === "github large.txt:1";
      }),
      { numRuns: 8, examples: [[0], [20], [40], [32_768], [32_768 + 20], [32_768 + 64]] },
    );
  });

  test("is not found in examples of documentation", async () => {
    const base = await commit({ base: "base" });
    await commit({
      "README.md": "AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
    });
    expect(await shapesIn(base)).toEqual([]);
  });

  test("is not new if the base has it: in an identical file, in the same file, in another commit's", async () => {
    const base = await commit({ "a.ts": `${token}\n`, "b.ts": `${token}\n` });
    await git("mv", "a.ts", "moved.ts");
    await commit({ "b.ts": `more\n${token}\n` });
    expect(await shapesIn(base)).toEqual([]);
    await commit({ "c.ts": `${token} elsewhere\n` });
    expect(await shapesIn(base)).toEqual(["github c.ts:1"]);
    await commit({ "b.ts": `${token} ${token.replace("ghp_", "ghs_")}\n` });
    expect((await shapesIn(base)).sort()).toEqual(["github b.ts:1", "github c.ts:1"]);
  });

  test("passes if the repository allows it: by path, rule or the fingerprint of its value", async () => {
    const base = await commit({ base: "base" });
    await commit({ "test/fixtures/a.ts": token });
    const [shape] = (await look(base)).shapes;
    expect(shape).toMatchObject({ fingerprint: expect.stringMatching(/^[0-9a-f]{24}$/u) });
    const { fingerprint = "" } = shape ?? {};
    for (const allowed of [
      { fingerprint },
      { path: "test/**" },
      { rule: "github" },
      { path: "**/fixtures/*.ts", rule: "github" },
    ])
      expect(await shapesIn(base, { allowed: [allowed] })).toEqual([]);
    for (const allowed of [
      { fingerprint: "0".repeat(24) },
      { path: "src/**" },
      { rule: "aws" },
      { path: "test/**", rule: "aws" },
    ])
      expect(await shapesIn(base, { allowed: [allowed] })).toEqual(["github test/fixtures/a.ts:1"]);
  });
});

describe("what can't be looked through", () => {
  test("is named if it is too large, and passes if its path is allowed", async () => {
    const base = await commit({ base: "base" });
    await commit({ "assets/large.bin": randomBytes(1_100_000), "small.txt": secret });
    const { notRead } = await look(base, { largest: 1_048_576 });
    expect(notRead).toMatchObject([{ path: "assets/large.bin", why: "it has more than 1 MiB" }]);
    const allowed = [{ path: "assets/**", rule: "not-read" }];
    expect(await look(base, { largest: 1_048_576, allowed })).toMatchObject({
      notRead: [],
      known: [{ path: "small.txt" }],
    });
  });

  test("is named if it takes too long, and what comes after it is looked through all the same", async () => {
    const base = await commit({ base: "base" });
    // Text for which a rule needs a second for each MiB.
    await commit({ "a-slow": "ghs_1_".repeat(340_000) });
    await commit({ "z-last": secret });
    const { notRead } = await look(base, { chunkMs: 150 });
    expect(notRead.map(({ path }) => path)).toContain("a-slow");
    expect(notRead.find(({ path }) => path === "a-slow")?.why).toBe("it takes too long");
    expect((await look(base)).notRead).toEqual([]);
  });

  test("takes no more memory than it may, if a few bytes stand for endless folders", async () => {
    const base = await commit({ base: "base" });
    const entry = async (lines: (index: number) => string): Promise<string> =>
      mustGit(["mktree"], {
        cwd: folder,
        signal,
        input: Readable.from([Array.from({ length: 10 }, (_, index) => `${lines(index)}\n`).join("")]),
      });
    const blob = await git("hash-object", "-w", await file(secret));
    let tree = await entry((index) => `100644 blob ${blob}\t${index}`);
    for (let depth = 0; depth < 9; depth += 1) {
      const inner = tree;
      tree = await entry((index) => `040000 tree ${inner}\t${index}`);
    }
    const head = await git("commit-tree", tree, "-p", base, "-m", "bomb");
    await git("update-ref", "HEAD", head);
    expect((await look(base, { memoryBytes: 300 * 1024 ** 2 })).known).toMatchObject([{ owner: 0 }]);
  });
});

async function file(content: string): Promise<string> {
  const path = join(folder, "loose");
  await writeFile(path, content);
  return path;
}
