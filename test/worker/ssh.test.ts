import { execFile, spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { SessionError } from "../../src/domain/errors/errors.ts";
import { git } from "../../src/worker/git/git.ts";
import { remoteError } from "../../src/worker/git/remote-error.ts";
import { usersSsh, type SshSettings } from "../../src/worker/git/ssh.ts";
import { directTransport } from "../../src/worker/git/transport.ts";
import { script } from "../end-to-end/script.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { makeKey, sshServerProblem, startSshServer, type SshServer } from "./ssh-server.ts";

const run = promisify(execFile);
const problem = sshServerProblem();
if (problem !== null) console.warn(`git over ssh is not tested: ${problem}`);

describe.skipIf(problem !== null)("git over ssh", () => {
  let world: World;
  let server: SshServer;
  let folder: string;
  let key: string;
  let known: string;
  let url: string;

  beforeAll(async () => {
    world = await createWorld(script);
    folder = await mkdtemp(join(tmpdir(), "offstage ssh %h-"));
    await world.forge.createRepository("acme", "app", { "README.md": "# App\n" });
    server = await startSshServer(
      join(tmpdir(), `offstage-sshd-${process.pid}`),
      dirname(dirname(world.forge.pathOf("acme", "app"))),
    );
    key = await makeKey(join(folder, "key"));
    known = join(folder, "known hosts");
    await writeFile(known, server.knownHost);
    await server.authorize(await readFile(`${key}.pub`, "utf8"));
    url = `${server.url}/acme/app`;
  });

  afterAll(async () => {
    vi.unstubAllEnvs();
    await server?.close();
    await world?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const settings = (changes: Partial<SshSettings>): SshSettings => ({
    ...usersSsh,
    keys: { "127.0.0.1": key },
    knownHosts: known,
    ...changes,
  });

  /** Asks the server for its branches. @returns them, or the failure that the session would have */
  async function ask(ssh: SshSettings): Promise<string | SessionError> {
    const remote = { url, credentials: null, pinned: null, transport: { ...directTransport, ssh } };
    const { signal } = new AbortController();
    const { code, stdout, stderr } = await git(["ls-remote", url, "refs/heads/main"], { cwd: folder, signal, remote });
    return code === 0 ? stdout : remoteError(url, stderr);
  }

  it("fetches and pushes with the host's key, which no agent can read", async () => {
    const { offstage, client } = await startInProcess(world, {
      OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
      OFFSTAGE_SSH_KEYS: JSON.stringify({ "127.0.0.1": key }),
      OFFSTAGE_SSH_KNOWN_HOSTS: known,
    });
    try {
      const prompt = `shell cat "${key}" > seen.txt 2>&1; echo "socket: $SSH_AUTH_SOCK" >> seen.txt`;
      const { id } = await client.session.create({ prompt, repositories: [url] });
      expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
      expect(await world.forge.pullRequests("acme", "app")).toHaveLength(1);
      const { repositories } = await client.session.diff(id);
      expect(repositories[0]?.patch).toContain("No such file or directory");
      expect(repositories[0]?.patch).toMatch(/^\+socket: $/mu);
    } finally {
      await offstage.stop();
    }
    // The control: it was ssh that carried both, and the key that opened.
    expect(server.log()).toMatch(/Accepted publickey/u);
  });

  it("takes the key for a host's port before the one for the host", async () => {
    const other = await makeKey(join(folder, "other"));
    expect(await ask(settings({ keys: { "127.0.0.1": other, [`127.0.0.1:${server.port}`]: key } }))).toContain(
      "refs/heads/main",
    );
    expect(await ask(settings({ keys: { "127.0.0.1": other } }))).toMatchObject({
      code: "repository_access_denied",
      message: expect.stringContaining("accepted none of this server's ssh keys") as string,
    });
  });

  it("talks to no host whose key is unknown or another, and says so", async () => {
    const empty = join(folder, "nobody");
    await writeFile(empty, "");
    expect(await ask(settings({ knownHosts: empty }))).toMatchObject({
      code: "repository_unreachable",
      retryable: false,
      message: expect.stringContaining("is not known to this server") as string,
    });
    const wrong = join(folder, "wrong");
    const [kind, hostKey] = (await readFile(`${key}.pub`, "utf8")).split(" ");
    await writeFile(wrong, `[127.0.0.1]:${server.port} ${kind} ${hostKey}\n`);
    expect(await ask(settings({ knownHosts: wrong }))).toMatchObject({
      message: expect.stringContaining("showed another ssh key") as string,
    });
    expect(await ask(settings({}))).toContain("refs/heads/main");
  });

  it("says that a key may be read by others, and that ssh is not installed", async () => {
    const open = await makeKey(join(folder, "open"));
    // ssh reads the private half only of a key that the server would let in.
    await server.authorize(await readFile(`${key}.pub`, "utf8"), await readFile(`${open}.pub`, "utf8"));
    await chmod(open, 0o644);
    expect(await ask(settings({ keys: { "127.0.0.1": open } }))).toMatchObject({
      message: expect.stringContaining("may be read by other users") as string,
    });
    const bin = join(folder, "bin");
    await mkdir(bin);
    const { stdout } = await run("sh", ["-c", "command -v git"]);
    await symlink(stdout.trim(), join(bin, "git"));
    await symlink("/bin/sh", join(bin, "sh"));
    vi.stubEnv("PATH", bin);
    expect(await ask(settings({}))).toMatchObject({ message: expect.stringContaining("not installed") as string });
    vi.unstubAllEnvs();
  });

  it("uses an ssh agent, of whose keys only a host's own is given", async () => {
    const secret = await makeKey(join(folder, "in-agent"));
    await server.authorize(await readFile(`${secret}.pub`, "utf8"), await readFile(`${key}.pub`, "utf8"));
    const agent = join(folder, "agent");
    const child = spawn("ssh-agent", ["-D", "-a", agent], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await waitFor(
        () =>
          run("ssh-add", ["-q", secret], { env: { ...process.env, SSH_AUTH_SOCK: agent } }).then(
            () => true,
            () => false,
          ),
        "the agent has the key",
      );
      await rm(secret);
      expect(await ask(settings({ keys: {}, agent }))).toContain("refs/heads/main");
      // The control.
      expect(await ask(settings({ keys: {}, agent: null }))).toMatchObject({ code: "repository_access_denied" });
      expect(await ask(settings({ keys: { "127.0.0.1": `${secret}.pub` }, agent }))).toContain("refs/heads/main");
      // With a key of its own the host is not offered the agent's others.
      const stranger = await makeKey(join(folder, "stranger"));
      expect(await ask(settings({ keys: { "127.0.0.1": stranger }, agent }))).toMatchObject({
        code: "repository_access_denied",
      });
    } finally {
      child.kill();
    }
  });

  it("starts no program that a repository's settings name for ssh", async () => {
    const repository = join(folder, "mirror.git");
    await run("git", ["init", "-q", "--bare", repository]);
    const trap = join(folder, "trap");
    await run("git", ["-C", repository, "config", "core.sshCommand", `touch '${trap}'; ssh`]);
    const remote = { url, credentials: null, pinned: null, transport: { ...directTransport, ssh: settings({}) } };
    const { signal } = new AbortController();
    await git(["ls-remote", url], { cwd: repository, signal, remote });
    await expect(readFile(trap)).rejects.toThrow("ENOENT");
    // The control: by itself git would have started it.
    await run("git", ["-C", repository, "ls-remote", url]).catch(() => undefined);
    await readFile(trap);
  });
});
