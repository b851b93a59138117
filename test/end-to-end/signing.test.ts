import { execFile, execFileSync, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client } from "../../src/client.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

const run = promisify(execFile);
const has = (program: string, flag: string): boolean => spawnSync(program, [flag]).error === undefined;
const ssh = has("ssh-keygen", "-?");
const gpg = has("gpg", "--version");
if (!ssh) console.warn("signatures by ssh are not tested: ssh-keygen is not installed");
if (!gpg) console.warn("signatures by GnuPG are not tested: gpg is not installed");

let world: World;
let folder: string;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  folder = await mkdtemp(join(tmpdir(), "offstage-sign-"));
});

afterAll(async () => {
  await world?.close();
  await rm(folder, { recursive: true, force: true });
});

const identities = {
  OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
  OFFSTAGE_COMMIT_AUTHOR: "Ann Author <ann@example.com>",
  OFFSTAGE_COMMIT_COMMITTER: "Cem Çommitter <cem@example.com>",
};

/** The agent's own commits, one with a signature that it made up, and a file that it leaves. */
const work = [
  "echo one > one.txt",
  "git add one.txt",
  "git commit -q -m 'Agent: one'",
  "echo two > two.txt",
  "git add two.txt",
  "git -c user.name=Other commit -q --author 'Agent <agent@example.org>' -m 'Agent: two, ünlike'",
  "made=$(git cat-file commit HEAD | sed 's/^committer .*/&\\ngpgsig -----BEGIN SSH SIGNATURE-----\\n made up\\n -----END SSH SIGNATURE-----/' | git hash-object -t commit -w --stdin)",
  "git reset -q --soft $made",
  "echo left > left.txt",
].join("; ");

async function repository(): Promise<{ name: string; url: string }> {
  const name = `signed-${(count += 1)}`;
  return { name, ...(await world.forge.createRepository("acme", name, { "README.md": "# App\n" })) };
}

async function say(client: Client, url: string, prompt: string) {
  const { id } = await client.session.create({ prompt, repositories: [url] });
  return untilOver(client, id);
}

/** The commits of a branch beyond `main` on the forge, oldest first, and what git says of their signatures. */
function pushed(name: string, branch: string, verify: readonly string[], env: Record<string, string> = {}) {
  const at = ["-C", world.forge.pathOf("acme", name)];
  const git = (...parameters: string[]): string => execFileSync("git", [...at, ...parameters], { encoding: "utf8" });
  const commits = git("rev-list", "--reverse", branch, "--not", "main").trim().split("\n");
  return commits.map((sha) => {
    const verified = spawnSync("git", [...at, ...verify, "verify-commit", "--raw", sha], {
      encoding: "utf8",
      env: { ...process.env, ...env },
    });
    return {
      sha,
      subject: git("log", "-1", "--format=%s", sha).trim(),
      author: git("log", "-1", "--format=%an <%ae>", sha).trim(),
      committer: git("log", "-1", "--format=%cn <%ce>", sha).trim(),
      isGood: verified.status === 0,
      said: `${verified.stdout}${verified.stderr}`,
    };
  });
}

async function followUp(client: Client, id: string, text: string) {
  await client.session.message(id, { message: text });
  return untilOver(client, id);
}

/** Runs a session with the agent's own commits and a follow-up, and says what the forge has of them. */
async function signedWith(key: string, verify: readonly string[], env: Record<string, string> = {}) {
  const { name, url } = await repository();
  const { offstage, client } = await startInProcess(world, { ...identities, OFFSTAGE_SIGNING_KEY_FILE: key });
  try {
    const done = await say(client, url, `shell ${work}; cat ${key} > seen.txt 2>&1`);
    expect(done).toMatchObject({ status: "completed", failure: null });
    const first = pushed(name, done.branchName, verify, env);
    // The agent's clone is on the signed commits: what follows builds on them, and nothing has to be forced.
    const again = await followUp(
      client,
      done.id,
      "shell echo three > three.txt; git add -A; git commit -q -m 'Agent: three'",
    );
    expect(again).toMatchObject({ status: "completed", failure: null });
    expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
    const all = pushed(name, done.branchName, verify, env);
    expect(all.slice(0, first.length).map(({ sha }) => sha)).toEqual(first.map(({ sha }) => sha));
    const { repositories } = await client.session.diff(done.id);
    expect(repositories[0]?.patch).toMatch(/^\+cat: .*No such file or directory$/mu);
    return all;
  } finally {
    await offstage.stop();
  }
}

const committer = "Cem Çommitter <cem@example.com>";
const expected = (title: string) => [
  { subject: "Agent: one", author: "Ann Author <ann@example.com>", committer },
  { subject: "Agent: two, ünlike", author: "Agent <agent@example.org>", committer },
  { subject: title, author: "Ann Author <ann@example.com>", committer },
  { subject: "Agent: three", author: "Ann Author <ann@example.com>", committer },
];

describe.skipIf(!ssh)("with an ssh key", () => {
  it("every commit of the pull request is signed, the agent's own too, and the key is not in the sandbox", async () => {
    const key = join(folder, "id");
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", key]);
    const signers = join(folder, "signers");
    await writeFile(signers, `cem@example.com ${await readFile(`${key}.pub`, "utf8")}`);
    const commits = await signedWith(key, ["-c", `gpg.ssh.allowedSignersFile=${signers}`]);
    expect(commits).toMatchObject(expected(commits[2]?.subject ?? "").map((each) => ({ ...each, isGood: true })));
    expect(commits).toHaveLength(4);
  });

  it("a key that is missing, empty, none, or locked ends the start, and no commit is unsigned for it", async () => {
    const files = { empty: "\n", text: "not a key\n", broken: "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n" };
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content, { mode: 0o600 });
    const locked = join(folder, "locked");
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "secret", "-f", locked]);
    for (const [name, words] of [
      ["missing", "can't be read"],
      ["empty", "is empty"],
      ["text", "holds no private key"],
      ["broken", "can't sign"],
      ["locked", "can't sign"],
    ] as const) {
      const file = join(folder, name);
      await expect(startInProcess(world, { ...identities, OFFSTAGE_SIGNING_KEY_FILE: file })).rejects.toThrow(
        `OFFSTAGE_SIGNING_KEY_FILE: ${file} ${words}`,
      );
    }
  });
});

describe.skipIf(!gpg)("with a key of GnuPG", () => {
  it("every commit of the pull request is signed, the agent's own too", async () => {
    const home = await mkdtemp(join(tmpdir(), "gpg-"));
    const env = { ...process.env, GNUPGHOME: home };
    const always = ["--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", ""];
    try {
      await run("gpg", [...always, "--quick-generate-key", "Cem <cem@example.com>", "ed25519", "sign", "never"], {
        env,
      });
      const { stdout } = await run("gpg", [...always, "--armor", "--export-secret-keys"], { env });
      const key = join(folder, "key.asc");
      await writeFile(key, stdout, { mode: 0o600 });
      const commits = await signedWith(key, [], { GNUPGHOME: home });
      expect(commits).toMatchObject(expected(commits[2]?.subject ?? "").map((each) => ({ ...each, isGood: true })));
      expect(commits.every(({ said }) => said.includes("GOODSIG"))).toBe(true);
    } finally {
      await run("gpgconf", ["--kill", "gpg-agent"], { env });
      await rm(home, { recursive: true, force: true });
    }
  });
});

it("without a key no commit is signed, and author and committer are as configured", async () => {
  const { name, url } = await repository();
  const { offstage, client } = await startInProcess(world, identities);
  try {
    const done = await say(
      client,
      url,
      "shell echo one > one.txt; git add -A; git commit -q -m 'Agent: one'; echo left > left.txt",
    );
    const commits = pushed(name, done.branchName, []);
    expect(commits).toMatchObject([
      { subject: "Agent: one", author: "Ann Author <ann@example.com>", committer, isGood: false },
      { author: "Ann Author <ann@example.com>", committer, isGood: false },
    ]);
  } finally {
    await offstage.stop();
  }
});
