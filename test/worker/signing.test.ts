import { execFile, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { mustGit } from "../../src/worker/git/git.ts";
import { signCommits } from "../../src/worker/git/sign-commits.ts";
import { openSigner } from "../../src/worker/git/signer.ts";
import { waitFor } from "../wait-for.ts";

const run = promisify(execFile);
const hasAgent = spawnSync("ssh-agent", ["-h"]).error === undefined;
if (!hasAgent) console.warn("a key in an ssh agent is not tested: ssh-agent is not installed");

describe.skipIf(!hasAgent)("a signing key in an ssh agent", () => {
  let folder: string;
  let key: string;
  let publicHalf: string;
  let socket: string;
  let agent: ChildProcess;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "o-sign-"));
    key = join(folder, "id");
    publicHalf = join(folder, "elsewhere.pub");
    socket = join(folder, "agent");
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    // The private half is not beside the public one, where ssh-keygen would find it without an agent.
    await rename(`${key}.pub`, publicHalf);
    await startAgent();
  });

  afterEach(async () => {
    await stopAgent();
    await rm(folder, { recursive: true, force: true });
  });

  async function startAgent(): Promise<void> {
    agent = spawn("ssh-agent", ["-D", "-a", socket], { stdio: "ignore" });
    const add = () => run("ssh-add", ["-q", key], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
    await waitFor(
      () =>
        add().then(
          () => true,
          () => null,
        ),
      "the agent has the key",
    );
  }

  async function stopAgent(): Promise<void> {
    if (agent.exitCode !== null || agent.signalCode !== null) return;
    agent.kill("SIGKILL");
    await once(agent, "exit");
    await rm(socket, { force: true });
  }

  test("makes the work wait while the agent is away, and signs once it is back", async () => {
    const cwd = join(folder, "repository.git");
    const signal = new AbortController().signal;
    const options = { cwd, signal };
    await mustGit(["init", "-q", "--bare", cwd], { cwd: folder, signal });
    const empty = await mustGit(["hash-object", "-t", "tree", "-w", "/dev/null"], options);
    const identity = { name: "A", email: "a@example.com" };
    const as = ["-c", `user.name=${identity.name}`, "-c", `user.email=${identity.email}`];
    const base = await mustGit([...as, "commit-tree", empty, "-m", "base"], options);
    const head = await mustGit([...as, "commit-tree", empty, "-p", base, "-m", "work"], options);
    const signer = await openSigner(publicHalf, { folder, agent: socket });
    const work = { head, known: [base], committer: identity };
    await stopAgent();
    await expect(signCommits(signer, work, options)).rejects.toMatchObject({
      code: "signing_failed",
      passing: true,
      message: expect.stringMatching(/could not be signed: .*(?:agent|private key)/iu) as string,
    });
    await startAgent();
    const signed = (await signCommits(signer, work, options)).get(head) ?? "";
    expect(await mustGit(["cat-file", "commit", signed], options)).toContain("BEGIN SSH SIGNATURE");
  });
});
