import { randomUUID } from "node:crypto";
import { existsSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { accountsOf } from "../process/accounts.ts";
import { sandboxShares } from "../process/cgroup.ts";
import { nodeFolders } from "../process/node-folders.ts";
import { userOfHome } from "../process/ownership.ts";
import { withRelay } from "../process/relay.ts";
import type { SandboxRequest } from "../sandbox.ts";
import type { BindMount, CreateContainerOptions } from "./api.ts";
import { ownLimits, type Engine } from "./engine.ts";
import { handshakeCommand } from "./handshake.ts";
import type { ContainerSettings } from "./settings.ts";
import { nanoCpus } from "./verify.ts";

/**
 * A request as the engine's options for creating a container; its command waits for the handshake. Writes the container's
 * accounts beside its home.
 */
export function containerOptions(
  request: SandboxRequest,
  settings: ContainerSettings,
  engine: Engine,
): CreateContainerOptions {
  const { workspace, home, gateway, limits, aliases = [], workingDirectory = workspace } = request;
  const relayed = withRelay(request, true);
  // A system's Node needs the system's libraries: use the image's Node instead.
  const nodeIsOurs = !process.execPath.startsWith("/usr/") && !process.execPath.startsWith("/bin/");
  const insideOf = (command: string): string => (command === process.execPath && !nodeIsOurs ? "node" : command);
  const path = [
    ...(nodeIsOurs ? [dirname(process.execPath)] : []),
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
  ];
  const environment: Record<string, string> = { PATH: path.join(":"), ...relayed.environment };
  const bind = (target: string, source: string, readOnly: boolean): BindMount => ({
    Type: "bind",
    Target: target,
    Source: source,
    ReadOnly: readOnly,
  });
  const programs = [...(nodeIsOurs ? nodeFolders(process.execPath) : []), ...request.readOnly]
    .filter((named) => existsSync(named))
    .flatMap((named) => [...new Set([named, realpathSync(named)])]);
  const user = userFor(home, engine);
  return {
    Image: request.image ?? settings.image,
    ...handshakeCommand([relayed.command, ...relayed.arguments].map(insideOf)),
    Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    WorkingDir: workingDirectory,
    User: user,
    Hostname: "offstage",
    OpenStdin: true,
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: {
      NetworkMode: "none",
      IpcMode: "private",
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges:true", ...(engine.seccomp === null ? [] : [`seccomp=${engine.seccomp}`])],
      LogConfig: { Type: "none", Config: {} },
      Init: true,
      ...(settings.runtime !== null && { Runtime: settings.runtime }),
      Tmpfs: {
        "/tmp": `rw,nosuid,nodev,mode=1777${limits === undefined ? "" : `,size=${Math.min(limits.memoryBytes, limits.diskBytes)}`}`,
      },
      Ulimits: [
        { Name: "core", Soft: 0, Hard: 0 },
        ...ownLimits(),
        ...(limits === undefined ? [] : [{ Name: "fsize", Soft: limits.diskBytes, Hard: limits.diskBytes }]),
      ],
      ...(limits !== undefined && {
        Memory: limits.memoryBytes,
        MemorySwap: limits.memoryBytes,
        PidsLimit: limits.processes,
        NanoCpus: nanoCpus(limits.cpus),
        // The server has the higher priority if it runs in a container too.
        CpuShares: sandboxShares,
      }),
      Mounts: [
        ...[...new Set(programs)].map((named) => bind(named, named, true)),
        ...[...new Set([home, workspace])].map((folder) => bind(folder, folder, false)),
        ...accountFiles(home, user).map(({ path: named, file }) => bind(named, file, true)),
        ...aliases.map(({ path: alias, folder }) => bind(alias, folder, false)),
        ...(gateway === undefined ? [] : [bind(gateway, gateway, false)]),
      ],
    },
  };
}

/**
 * If the server is root, the session's own user; in a rootless engine, its root, which is the user that runs the
 * engine.
 */
function userFor(home: string, { user }: Engine): string {
  if (process.getuid?.() !== 0 || user === "0:0") return user;
  const uid = userOfHome(home);
  return `${uid}:${uid}`;
}

/**
 * Files of accounts in place of the image's, which does not know the session's user. They are beside the home, so that they go
 * with the session's folders, and the session can't write them.
 * @param user as `uid:gid`
 */
function accountFiles(home: string, user: string): { readonly path: string; readonly file: string }[] {
  const [uid = 0, gid = 0] = user.split(":").map(Number);
  const { passwd, group } = accountsOf({ uid, gid, home });
  return [
    { path: "/etc/passwd", file: `${home}.passwd`, content: passwd },
    { path: "/etc/group", file: `${home}.group`, content: group },
  ].map(({ path, file, content }) => {
    const written = `${file}.${randomUUID()}`;
    writeFileSync(written, content, { mode: 0o644 });
    renameSync(written, file);
    return { path, file };
  });
}
