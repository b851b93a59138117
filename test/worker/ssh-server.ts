import { execFile, spawn, spawnSync } from "node:child_process";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePorts } from "../fleet.ts";
import { waitFor } from "../wait-for.ts";

const run = promisify(execFile);

/** OpenSSH's own server, with git behind it. */
export interface SshServer {
  readonly port: number;
  /** `ssh://<user>@127.0.0.1:<port>`, to which a repository's path is appended. */
  readonly url: string;
  /** The server's line in a file of known hosts. */
  readonly knownHost: string;
  /** Whether its keys may only read from here on, and are refused as GitHub refuses a deploy key. */
  readOnly(isSo: boolean): Promise<void>;
  /** Lets a key in, and no other. */
  authorize(...publicKeys: string[]): Promise<void>;
  /** What the server logged. */
  log(): string;
  close(): Promise<void>;
}

/** Why a real ssh server can't run here; null if it can. */
export function sshServerProblem(): string | null {
  if (spawnSync("ssh", ["-V"]).error !== undefined) return "ssh is not installed";
  return spawnSync("/usr/sbin/sshd", ["-V"]).error === undefined ? null : "sshd (openssh-server) is not installed";
}

/** Makes a pair of keys. @returns the private key's path */
export async function makeKey(path: string, passphrase = ""): Promise<string> {
  await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", path]);
  return path;
}

/**
 * @param folder for its keys, which only this user may read
 * @param root folder of bare repositories, `<owner>/<name>.git`
 */
export async function startSshServer(folder: string, root: string): Promise<SshServer> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const hostKey = await makeKey(join(folder, "host_key"));
  const allowed = join(folder, "authorized_keys");
  await writeFile(allowed, "", { mode: 0o600 });
  const command = join(folder, "command");
  // The client asks for `git-upload-pack '/owner/name'`.
  const readOnly = join(folder, "read-only");
  const refusal = `[ "$1" = git-receive-pack ] && [ -e "${readOnly}" ] && { echo "ERROR: The key you are authenticating with has been marked as read only." >&2; exit 1; }`;
  await writeFile(
    command,
    `#!/bin/sh\neval "set -- $SSH_ORIGINAL_COMMAND"\n${refusal}\nexec "$1" "${root}/\${2%.git}.git"\n`,
  );
  await chmod(command, 0o755);
  const [port = 0] = await freePorts(1);
  const settings = [
    `Port ${port}`,
    "ListenAddress 127.0.0.1",
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${allowed}`,
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "StrictModes no",
    "UsePAM no",
    `ForceCommand ${command}`,
    `PidFile ${join(folder, "pid")}`,
  ];
  await writeFile(join(folder, "sshd_config"), `${settings.join("\n")}\n`);
  // Where sshd separates its privileges; systems make it when they start the service.
  if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
  const child = spawn("/usr/sbin/sshd", ["-D", "-e", "-f", join(folder, "sshd_config")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => (log += chunk.toString()));
  await waitFor(() => log.includes("Server listening") || child.exitCode !== null, "sshd listens");
  if (child.exitCode !== null) throw new Error(`sshd ended: ${log}`);
  const [kind = "", key = ""] = (await readFile(`${hostKey}.pub`, "utf8")).split(" ");
  return {
    port,
    url: `ssh://${userInfo().username}@127.0.0.1:${port}`,
    knownHost: `[127.0.0.1]:${port} ${kind} ${key}\n`,
    readOnly: (isSo) => (isSo ? writeFile(readOnly, "") : rm(readOnly)),
    async authorize(...publicKeys) {
      await writeFile(allowed, publicKeys.join(""), { mode: 0o600 });
      await chmod(allowed, 0o600);
    },
    log: () => log,
    async close() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
