import { execFile, spawnSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { shellQuote } from "../programs/shell-quote.ts";
import { childEnvironment } from "../domain/environments/child-environment.ts";
import { joinServices } from "../lifecycle/service.ts";
import { programText } from "../programs/program-text.ts";
import { accountsOf, type SandboxUser } from "./process/accounts.ts";
import { attachFolders, tryAttaching } from "./process/attach.ts";
import { canLimit } from "./process/cgroup.ts";
import { startLimited } from "./process/limited.ts";
import { createOrphanSweep } from "./process/orphan-sweep.ts";
import { nodeFolders } from "./process/node-folders.ts";
import { giveToSandbox, userOfHome } from "./process/ownership.ts";
import { systemPerl, withRelay } from "./process/relay.ts";
import { seccompFilter } from "./process/seccomp.ts";
import { UidClaims, defaultUids, type UidRange } from "./process/uids.ts";
import type { Sandbox, SandboxedProcess, SandboxRequest } from "./sandbox.ts";

const installHint = "install bubblewrap, for example `apt-get install bubblewrap`";
/**
 * System settings that programs need; the rest of /etc, such as keys, is not visible. The accounts are the sandbox's own
 * (`accountsOf`).
 */
const settingsRead = [
  "/etc/alternatives",
  "/etc/ssl",
  "/etc/ca-certificates",
  "/etc/pki",
  "/etc/resolv.conf",
  "/etc/hosts",
  "/etc/nsswitch.conf",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/localtime",
  "/etc/mime.types",
  "/etc/os-release",
  "/etc/protocols",
  "/etc/services",
  "/etc/terminfo",
  // Without theirs these programs do not start, or know no TLS, no extensions and no fonts. Maven's settings may hold passwords.
  "/etc/R",
  "/etc/fonts",
  "/etc/maven/logging",
  "/etc/maven/m2.conf",
  "/etc/php",
];
/** Folders of settings with a version in their name. */
const versionedSettings = /^(?:java|python)-?\d[\d.]*(?:-openjdk)?$/u;
/** The accounts' files, from the descriptors that `start` gives. */
const accountParameters = [
  "--perms",
  "0644",
  "--file",
  "4",
  "/etc/passwd",
  "--perms",
  "0644",
  "--file",
  "5",
  "/etc/group",
];
const systemFolders = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/**
 * A sandbox by bubblewrap (https://github.com/containers/bubblewrap): own namespaces for processes, mounts, IPC and
 * host name, a read-only system, no capabilities, and only the folders that the request names.
 * The environment is passed through a descriptor and set in the last step before the command: not as arguments, which
 * every process of the machine can read, and not as bubblewrap's own environment, in which a variable could load code
 * into bubblewrap.
 * @param uids user ids for sessions if the server runs as root; default: see `defaultUids`
 */
export function createBubblewrap(uids: UidRange | null = null): Sandbox {
  const isRoot = process.getuid?.() === 0;
  const claims = new UidClaims(uids ?? defaultUids());
  const makeWritable = (directory: string): Promise<void> => giveToSandbox(directory, claims);
  const releaseOwner = (folder: string): Promise<void> => claims.giveBack(folder);
  const filter = seccompFilter(process.arch);
  let known: Promise<string | null> | null = null;
  let attaching: Promise<string | null> | null = null;

  function start(request: SandboxRequest): SandboxedProcess {
    const relayed = withRelay(request, true, existsSync(systemPerl) ? systemPerl : null);
    const { passwd, group } = accountsOf(userOf(request.home, isRoot));
    const started = startLimited(
      "bwrap",
      parametersOf({ ...request, ...relayed }, isRoot),
      { ...request, environment: { PATH: pathInside() } },
      {
        cwd: "/",
        ends: "namespace",
        // The descriptors from 3 on, by which `parametersOf` names them; the next is that on which bubblewrap reports
        // its process.
        more: [
          assignments(relayed.environment),
          Buffer.from(passwd),
          Buffer.from(group),
          ...(filter === null ? [] : [filter]),
        ],
      },
    );
    return {
      ...started,
      async attach(later) {
        await attachFolders(started, request.home, later);
        started.measureInstead({ workspace: later.disk, home: later.home, disk: later.disk });
      },
    };
  }

  async function check(): Promise<string | null> {
    if (process.platform !== "linux") return "bubblewrap needs Linux: run Offstage there, or choose --sandbox none";
    if (spawnSync("bwrap", ["--version"], { env: childEnvironment(process.env) }).error !== undefined)
      return `bubblewrap is not installed: ${installHint}`;
    if (isRoot && spawnSync("setpriv", ["--version"], { env: childEnvironment(process.env) }).error !== undefined) {
      return "setpriv, which drops root's rights, is not installed: install util-linux, or run Offstage as another user";
    }
    const folder = await mkdtemp(join(tmpdir(), "offstage-check-"));
    const home = join(folder, "home");
    try {
      await makeWritable(home);
      const folders = {
        workspace: home,
        home,
        readOnly: [],
        environment: {},
        signal: AbortSignal.timeout(10_000),
      };
      const trial = start({ ...folders, command: "sh", arguments: ["-c", "touch works"] });
      trial.stdin.end();
      const [{ code }, errors] = await Promise.all([trial.exited, text(trial.stderr)]);
      if (code === 0 && existsSync(join(home, "works"))) return null;
      if (code === 0)
        return "bubblewrap exited with 0 without running the command: the program `bwrap` is not bubblewrap";
      return `bubblewrap does not start here (${errors.trim() || `exit ${code}`}): allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap)`;
    } finally {
      await rm(folder, { recursive: true, force: true });
      await releaseOwner(folder);
    }
  }

  return {
    kind: "bubblewrap",
    isolates: true,
    imageId: () => Promise.resolve(null),
    enforcesLimits: canLimit() ? "kernel" : "polling",
    // Success is cached; a failure is checked again before each turn, because it may have been fixed.
    check: async () => {
      const problem = await (known ??= check());
      if (problem !== null) known = null;
      return problem;
    },
    start,
    attachProblem: async () => {
      const problem = await (attaching ??= tryAttaching({ start, makeWritable, releaseOwner }));
      if (problem !== null) attaching = null;
      return problem;
    },
    makeWritable,
    moveOwner: (from, to) => claims.move(from, to),
    releaseOwner,
    sweeper: joinServices([createOrphanSweep(), ...(isRoot ? [claims.sweeper] : [])]),
  };
}

function parametersOf(request: SandboxRequest, isRoot: boolean): string[] {
  const { workspace, home, gateway, workingDirectory = workspace, aliases = [], limits } = request;
  const programs = [...nodeFolders(process.execPath), ...request.readOnly];
  return [
    ...(isRoot
      ? ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
      : ["--unshare-all", "--unshare-user", "--disable-userns"]),
    "--die-with-parent",
    "--new-session",
    "--hostname",
    "offstage",
    ...(seccompFilter(process.arch) === null ? [] : ["--seccomp", "6"]),
    "--info-fd",
    seccompFilter(process.arch) === null ? "6" : "7",
    "--cap-drop",
    "ALL",
    ...(isRoot ? ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"] : []),
    ...systemParameters(),
    ...accountParameters,
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--perms",
    "1777",
    ...(limits === undefined ? [] : ["--size", String(Math.min(limits.memoryBytes, limits.diskBytes))]),
    "--tmpfs",
    "/tmp",
    ...ancestorsOf([home, workspace, ...programs, ...(gateway === undefined ? [] : [gateway])], aliases).flatMap(
      (folder) => ["--perms", "0755", "--dir", folder],
    ),
    ...programs.flatMap(readOnly),
    "--bind",
    home,
    home,
    ...(workspace === home ? [] : ["--bind", workspace, workspace]),
    ...aliases.flatMap(({ path, folder }) => ["--bind", folder, path]),
    ...(gateway === undefined ? [] : ["--bind", gateway, gateway]),
    // Parent folders that bubblewrap created for the mounts above.
    ...["/", "/dev"].flatMap((folder) => ["--remount-ro", folder]),
    "--chdir",
    isRoot ? "/" : workingDirectory,
    "--",
    // Root without capabilities may not enter the agent's folder: change to it only after the switch to the agent's
    // uid.
    ...(isRoot ? dropRoot(userOfHome(home)) : []),
    "/bin/sh",
    "-c",
    programText(import.meta.url, "enter-bubblewrap.sh"),
    "sh",
    limits === undefined ? "" : String(Math.floor(limits.diskBytes / 512)),
    // Without root the sandbox has its own user namespace, whose processes the kernel counts separately.
    limits === undefined || isRoot ? "" : String(limits.processes),
    workingDirectory,
    request.command,
    ...request.arguments,
  ];
}

/** Ids of the processes inside: as root those of the home's owner, else the server's own. */
function userOf(home: string, isRoot: boolean): SandboxUser {
  const uid = isRoot ? userOfHome(home) : (process.getuid?.() ?? 0);
  return { uid, gid: isRoot ? uid : (process.getgid?.() ?? 0), home };
}

/**
 * As root, bubblewrap creates the mounts without a user namespace, so that the process would still be the kernel's uid
 * 0. This gives up the uid, every capability, and all ways to regain them.
 */
function dropRoot(uid: number): string[] {
  const ids = ["--reuid", String(uid), "--regid", String(uid), "--clear-groups"];
  return ["setpriv", ...ids, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"];
}

/** The environment as shell code, with values quoted, for `enter-bubblewrap.sh`. Leaves out names that a shell can't set. */
function assignments(environment: Readonly<Record<string, string>>): Buffer {
  const lines = Object.entries(environment)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/u.test(name))
    .map(([name, value]) => `export ${name}=${shellQuote(value)}\n`);
  return Buffer.from(lines.join(""));
}

function systemParameters(): string[] {
  const versioned = readdirSync("/etc").filter((name) => versionedSettings.test(name));
  const links = systemFolders
    .filter((folder) => existsSync(folder))
    .flatMap((folder) =>
      lstatSync(folder).isSymbolicLink() ? ["--symlink", readlinkSync(folder), folder] : readOnly(folder),
    );
  return [
    "--ro-bind",
    "/usr",
    "/usr",
    ...links,
    ...["/etc", "/etc/maven"].flatMap((folder) => ["--perms", "0755", "--dir", folder]),
    ...[...settingsRead, ...versioned.map((name) => join("/etc", name))].flatMap(readOnly),
  ];
}

/**
 * Parent folders of the mounts. They are created with mode 0755, because those that bubblewrap creates are for root
 * alone.
 */
function ancestorsOf(paths: readonly string[], aliases: NonNullable<SandboxRequest["aliases"]>): string[] {
  const found = new Set<string>();
  const there = paths.flatMap((named) => (existsSync(named) ? [named, realpathSync(named)] : []));
  for (const path of [...there, ...aliases.map((alias) => alias.path)]) {
    for (let folder = dirname(path); folder !== "/"; folder = dirname(folder)) found.add(folder);
  }
  const system = ["/usr", "/etc", "/proc", "/dev", ...systemFolders];
  return [...found]
    .filter((folder) => folder !== "/tmp" && !system.some((root) => `${folder}/`.startsWith(`${root}/`)))
    .sort();
}

/**
 * Mounts a path read-only at its name and, if a link leads elsewhere, at its real path: programs find their files by
 * either.
 */
function readOnly(path: string): string[] {
  if (!existsSync(path)) return [];
  const real = realpathSync(path);
  return real === path || path.startsWith("/etc/")
    ? ["--ro-bind", real, path]
    : ["--ro-bind", real, real, "--ro-bind", real, path];
}

/** PATH inside, with the server's own Node first: harnesses written for Node need no other. */
function pathInside(): string {
  return [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(":");
}

/** Proxy settings for apt-get, which may need them to reach its archive. */
function aptProxies(): Record<string, string> {
  const names = ["http_proxy", "https_proxy", "no_proxy"];
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/**
 * Installs bubblewrap if it is missing, the machine has apt and the server runs as root.
 * @returns whether it is installed now
 */
export async function installBubblewrap(): Promise<boolean> {
  const isThere = () => spawnSync("bwrap", ["--version"], { env: childEnvironment(process.env) }).error === undefined;
  if (isThere() || process.getuid?.() !== 0) return isThere();
  const run = promisify(execFile);
  const environment = childEnvironment(process.env, { DEBIAN_FRONTEND: "noninteractive", ...aptProxies() });
  try {
    await run("apt-get", ["update", "-qq"], { env: environment });
    await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "bubblewrap"], { env: environment });
  } catch {
    // No apt, or it can't reach its archive: the caller says how to install it by hand.
  }
  return isThere();
}
