import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { existsSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import type Docker from "dockerode";
import { z } from "zod";
import { OffstageError } from "../domain/errors.ts";
import {
  askEngine,
  attach,
  messageOf,
  ownLimits,
  removeContainer,
  removeLeft,
  serverLabel,
  serverName,
  type Engine,
} from "./container-engine.ts";
import { giveToSandbox } from "./ownership.ts";
import { withRelay } from "./relay.ts";
import type { Exceeded, Limits, Sandbox, SandboxedProcess, SandboxRequest } from "./sandbox.ts";
import { watchUsage } from "./watch.ts";

export interface ContainerSettings {
  /** Unix socket of the engine: Docker's, Podman's, or another that speaks Docker's API. */
  readonly socket: string;
  /** Needs git, a shell and the programs of the repositories; node comes from outside. */
  readonly image: string;
  /** `runsc` for gVisor; the engine's own without it. */
  readonly runtime: string | null;
}

const lookEveryMs = 1_000;
/** Exit code of what SIGKILL ended. */
const killed = 137;
/** What was told to end has this long. */
const endLimitMs = 5_000;
const checkLimits: Limits = { memoryBytes: 256 * 1024 ** 2, processes: 64, diskBytes: 2 ** 30, cpus: 1 };

/**
 * A container for each start, by Docker's API (https://docs.docker.com/reference/api/engine/): its own root image,
 * read-only, without a network, capabilities or new privileges, bound by the engine's control groups.
 */
export function createContainerSandbox(settings: ContainerSettings): Sandbox {
  // Loaded only where it is used: it takes a tenth of a second and 30 MB.
  const Client = createRequire(import.meta.url)("dockerode") as typeof Docker;
  const docker = new Client({ socketPath: settings.socket });
  let asked: Promise<Engine> | null = null;
  let known: Promise<string | null> | null = null;

  function start(request: SandboxRequest): SandboxedProcess {
    request.signal.throwIfAborted();
    return runContainer(docker, request, engine, (asking) => optionsOf(request, settings, asking));
  }

  /** What kind it is, asked once; again where it did not answer. */
  async function engine(): Promise<Engine> {
    try {
      return await (asked ??= askEngine(docker, settings));
    } catch (error) {
      asked = null;
      throw error;
    }
  }

  async function check(): Promise<string | null> {
    try {
      await engine();
    } catch (error) {
      if (error instanceof OffstageError) return error.message;
      return `the container engine at ${settings.socket} does not answer (${messageOf(error)}): start it, or set OFFSTAGE_CONTAINER_SOCKET`;
    }
    await removeLeft(docker);
    if (!(await hasImage(settings.image))) {
      return `the image ${settings.image} is not there: docker pull ${settings.image}, or set OFFSTAGE_CONTAINER_IMAGE`;
    }
    return trial();
  }

  /** Starts one and believes only what is seen inside: some engines take a limit and do not keep it. */
  async function trial(): Promise<string | null> {
    const folder = await mkdtemp(join(tmpdir(), "offstage-check-"));
    try {
      await giveToSandbox(folder);
      const child = start({
        command: process.execPath,
        arguments: ["-e", trialScript],
        environment: {},
        workspace: folder,
        home: folder,
        readOnly: [],
        limits: checkLimits,
        signal: AbortSignal.timeout(60_000),
      });
      child.stdin.end();
      const [said, complained, { code }] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
      if (code !== 0) return `containers do not start here: ${complained.trim().slice(-500) || `exit ${code}`}`;
      return trialProblem(said);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async function hasImage(image: string): Promise<boolean> {
    return docker
      .getImage(image)
      .inspect()
      .then(
        () => true,
        () => false,
      );
  }

  return {
    kind: "container",
    isolates: true,
    keepsLimits: "kernel",
    check: async () => {
      const problem = await (known ??= check());
      if (problem !== null) known = null;
      return problem;
    },
    hasImage,
    start,
    makeWritable: giveToSandbox,
  };
}

/** Runs inside: what is believed is what it sees, and a connection that it really tries. */
const trialScript = `
const { readFileSync, writeFileSync } = require("node:fs");
const { spawnSync } = require("node:child_process");
const attempt = (work) => { try { return work(); } catch { return null; } };
const memory = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
  .map((file) => attempt(() => Number(readFileSync(file, "utf8")))).find((limit) => limit !== null) ?? null;
const wrote = attempt(() => (writeFileSync("works", ""), true)) === true;
const git = spawnSync("git", ["--version"]).status === 0;
const interfaces = Object.keys(require("node:os").networkInterfaces());
const socket = require("node:net").connect({ host: "1.1.1.1", port: 443 });
const tell = (reached) => { process.stdout.write(JSON.stringify({ memory, wrote, git, interfaces, reached })); process.exit(); };
socket.on("connect", () => tell(true)).on("error", () => tell(false));
setTimeout(() => tell(false), 2000);`;

const trialSchema = z.object({
  memory: z.number().nullable(),
  wrote: z.boolean(),
  git: z.boolean(),
  interfaces: z.array(z.string()),
  reached: z.boolean(),
});

function trialProblem(said: string): string | null {
  const { memory, wrote, git, interfaces, reached } = trialSchema.parse(JSON.parse(said));
  if (!wrote) return "the container can't write to its workspace: run the server as root or as the engine's user";
  if (memory === null) return "the engine shows no memory limit inside its containers, so that it can't be checked";
  if (memory !== checkLimits.memoryBytes) {
    return "the engine does not keep the memory limit (rootless engines need cgroup version 2): use an engine that does";
  }
  if (reached || interfaces.join(" ") !== "lo") {
    return `the engine gives a network to containers that must have none but loopback (${interfaces.join(", ")}): use an engine that does not`;
  }
  return git ? null : "the image has no git: choose one that has it (OFFSTAGE_CONTAINER_IMAGE)";
}

function optionsOf(
  request: SandboxRequest,
  settings: ContainerSettings,
  engine: Engine,
): Docker.ContainerCreateOptions {
  const { workspace, home, gateway, limits, aliases = [], workingDirectory = workspace } = request;
  const relayed = withRelay(request, true);
  // A node of the system's own needs the system's libraries: then the image's is used.
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
  const bind = (target: string, source: string, readOnly: boolean): Docker.MountSettings => ({
    Type: "bind",
    Target: target,
    Source: source,
    ReadOnly: readOnly,
  });
  const programs = [...(nodeIsOurs ? [dirname(dirname(process.execPath))] : []), ...request.readOnly]
    .filter((named) => existsSync(named))
    .flatMap((named) => [...new Set([named, realpathSync(named)])]);
  return {
    Image: request.image ?? settings.image,
    Entrypoint: [insideOf(relayed.command)],
    Cmd: relayed.arguments.map(insideOf),
    Env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    WorkingDir: workingDirectory,
    User: engine.user,
    Hostname: "offstage",
    Labels: { [serverLabel]: serverName() },
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
        NanoCpus: Math.round(limits.cpus * 1e9),
      }),
      Mounts: [
        ...[...new Set(programs)].map((named) => bind(named, named, true)),
        ...[...new Set([home, workspace])].map((folder) => bind(folder, folder, false)),
        ...aliases.map(({ path: alias, folder }) => bind(alias, folder, false)),
        ...(gateway === undefined ? [] : [bind(gateway, gateway, false)]),
      ],
    },
  };
}

function runContainer(
  docker: Docker,
  request: SandboxRequest,
  askedEngine: () => Promise<Engine>,
  options: (engine: Engine) => Docker.ContainerCreateOptions,
): SandboxedProcess {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const ending = new AbortController();
  const signal = AbortSignal.any([request.signal, ending.signal]);
  let exceeded: Exceeded | null = null;

  async function run(): Promise<number | null> {
    const engine = await askedEngine();
    const container = await docker.createContainer(options(engine));
    try {
      const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      if (signal.aborted) return null;
      const attached = await attach(docker, container.id);
      docker.modem.demuxStream(attached, stdout, stderr);
      attached.on("error", () => undefined);
      stdin.on("error", () => undefined);
      stdin.pipe(attached);
      const drained = new Promise<void>((resolve) => attached.once("close", resolve).once("end", resolve));
      // Asked for before it starts, so that a short one is not missed.
      const waited = container.wait({ condition: "next-exit" }) as Promise<{ StatusCode: number }>;
      waited.catch(() => undefined);
      await container.start();
      const watch = watchContainer(container, request, (by) => {
        exceeded ??= by;
        ending.abort();
      });
      try {
        const over = await Promise.race([waited, stopped]);
        if (over === undefined) {
          // The engine tells of what it ended only at the end of all.
          await container.kill().catch(() => undefined);
          await Promise.race([waited.catch(() => undefined), pause(endLimitMs, undefined, { ref: false })]);
        } else await drained;
        const { State } = await container.inspect();
        const guessed = !engine.tellsMemory && request.limits !== undefined && over?.StatusCode === killed;
        if (State.OOMKilled || guessed) exceeded ??= "memory";
        return over?.StatusCode ?? null;
      } finally {
        watch.stop();
      }
    } finally {
      await removeContainer(container);
    }
  }

  const exited = run()
    .catch((error: unknown) => {
      stderr.write(`${messageOf(error)}\n`);
      return 127;
    })
    .then((code) => {
      stdout.end();
      stderr.end();
      stdin.destroy();
      return { code, signal: code === null ? ("SIGKILL" as const) : null };
    });
  return { stdin, stdout, stderr, exited, kill: () => ending.abort(), exceeded: () => exceeded };
}

/** Disk is looked at from outside; that the bound of processes was run into only the engine tells. */
function watchContainer(
  container: Docker.Container,
  { limits, workspace, home }: SandboxRequest,
  onExceeded: (by: Exceeded) => void,
): { stop: () => void } {
  if (limits === undefined) return { stop: () => undefined };
  const disk = watchUsage({
    limits,
    folders: [...new Set([workspace, home])],
    pids: null,
    onExceeded: () => onExceeded("disk"),
  });
  async function look(): Promise<void> {
    const { pids_stats: pids, memory_stats: memory } = await container.stats({ stream: false, "one-shot": true });
    if ((pids?.current ?? 0) >= (limits?.processes ?? Number.POSITIVE_INFINITY)) onExceeded("processes");
    // The engine notes that something was ended for want of memory only at the end of all.
    const { failcnt } = memory as { failcnt?: number };
    if (failcnt !== undefined && failcnt > 0 && (await container.inspect()).State.OOMKilled) onExceeded("memory");
  }
  const looking = setInterval(() => {
    // Gone in the meantime: its end tells.
    look().catch(() => undefined);
  }, lookEveryMs);
  return {
    stop() {
      clearInterval(looking);
      disk.stop();
    },
  };
}
