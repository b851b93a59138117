import { execFile, spawn, type ChildProcess } from "node:child_process";
import { chmod, cp, mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { askEngineSocket, type EngineRequest } from "../../src/sandboxes/container/socket.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { waitFor } from "../wait-for.ts";

const run = promisify(execFile);

export interface TestEngine {
  readonly socket: string;
  readonly image: string;
  /** Ends the engine by a signal, or starts it again; null for one that is not the suite's own. */
  readonly power: { off(signal: NodeJS.Signals): Promise<void>; on(): Promise<void> } | null;
  close(): Promise<void>;
}

/** What repositories and tests run inside; node comes from outside, and needs its libraries. */
const programs =
  "sh bash cat ls env git head tail find tar sleep touch setsid tr seq chmod chown mkdir rm ln cp mv sed grep cut wc date true id stat dd sort uniq printf echo pwd readlink hostname kill perl";

/**
 * A container engine of the suite's own, in its own folder and network namespace, with an image made of this machine's own
 * programs, since no registry need be reached. Another engine is tried by its socket in OFFSTAGE_TEST_ENGINE.
 * @returns why there is none, if there can't be
 */
export async function startEngine(): Promise<TestEngine | string> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "only root on Linux can start an engine";
  if (!(await hasEngine())) return "docker is not installed and can't be";
  const folder = await mkdtemp(join(tmpdir(), "offstage-docker-"));
  const image = "offstage-test";
  const given = process.env["OFFSTAGE_TEST_ENGINE"];
  if (given !== undefined) {
    await makeImage(given, image, folder);
    return { socket: given, image, power: null, close: () => rm(folder, { recursive: true, force: true }) };
  }
  const socket = join(folder, "docker.sock");
  let daemon = startDaemon(folder, socket);
  const close = () => stop(daemon, folder);
  const isUp = () => waitFor(() => answers(socket), "the engine answers");
  const power = {
    async off(signal: NodeJS.Signals) {
      const ended = new Promise((resolve) => daemon.once("exit", resolve));
      daemon.kill(signal);
      await ended;
    },
    async on() {
      daemon = startDaemon(folder, socket);
      // One that finds what a killed one left behind may give up, and is started again, as a service is.
      await waitFor(async () => {
        if (daemon.exitCode !== null || daemon.signalCode !== null) daemon = startDaemon(folder, socket);
        return answers(socket);
      }, "the engine answers again");
    },
  };
  try {
    await isUp();
    await makeImage(socket, image, folder);
    return { socket, image, power, close };
  } catch (error) {
    await close();
    return `the engine does not start here: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function startDaemon(folder: string, socket: string): ChildProcess {
  return spawn(
    "unshare",
    [
      "--net",
      "dockerd",
      `--data-root=${join(folder, "root")}`,
      `--exec-root=${join(folder, "exec")}`,
      `--pidfile=${join(folder, "pid")}`,
      `--host=unix://${socket}`,
      "--iptables=false",
      "--ip6tables=false",
      "--bridge=none",
      "--default-ulimit=nofile=4096:4096",
      "--log-level=error",
    ],
    { stdio: "ignore" },
  );
}

/** A container as the engine lists it. */
export interface ListedContainer {
  readonly Id: string;
  readonly Names: string[];
  readonly Labels: Record<string, string>;
  readonly State: string;
}

/** Asks an engine for something that Offstage itself never asks for. @returns its answer, null if that is empty */
export async function askEngineFor<T>(
  socket: string,
  method: EngineRequest["method"],
  path: string,
  query: Record<string, string> = {},
): Promise<T> {
  const said = await askEngineSocket(socket, { method, path, query, signal: AbortSignal.timeout(hangTimeoutMs) });
  return (said === "" ? null : JSON.parse(said)) as T;
}

/** Every container of an engine, whether it runs or not. */
export function containersOf(socket: string): Promise<ListedContainer[]> {
  return askEngineFor(socket, "GET", "/containers/json", { all: "true" });
}

export async function removeContainer(socket: string, id: string): Promise<void> {
  await askEngineFor(socket, "DELETE", `/containers/${id}`, { force: "true" });
}

async function answers(socket: string): Promise<boolean> {
  return run("docker", ["--host", `unix://${socket}`, "version"]).then(
    () => true,
    () => false,
  );
}

async function hasEngine(): Promise<boolean> {
  const isThere = () => ["dockerd", "docker", "runc"].every((name) => find(name) !== null);
  if (isThere()) return true;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  try {
    await run("apt-get", ["update", "-qq"], { env });
    await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "docker.io"], { env });
  } catch {
    // No apt, or it can't reach its archive: the caller reports it.
  }
  return isThere();
}

function find(name: string): string | null {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin", "/usr/bin", "/bin"];
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null;
}

async function makeImage(socket: string, image: string, folder: string): Promise<void> {
  const root = join(folder, "image");
  for (const empty of ["tmp", "etc", "proc", "dev", "sys"]) await mkdir(join(root, empty), { recursive: true });
  const found = programs.split(" ").flatMap((name) => find(name) ?? []);
  const files = new Set(found);
  for (const program of [...found, process.execPath]) {
    // A script has no libraries.
    const { stdout } = await run("ldd", [program]).catch(() => ({ stdout: "" }));
    for (const [library] of stdout.matchAll(/\/\S+/gu)) files.add(library);
  }
  await chmod(join(root, "tmp"), 0o1777);
  files.delete(process.execPath);
  for (const file of files) {
    await mkdir(join(root, dirname(file)), { recursive: true });
    await cp(await realpath(file), join(root, file), { force: true });
  }
  const archive = join(folder, "image.tar");
  await run("tar", ["--create", "--file", archive, "--directory", root, "."]);
  await run("docker", ["--host", `unix://${socket}`, "import", archive, image]);
  // Another one, distinguished by its environment.
  await run("docker", [
    "--host",
    `unix://${socket}`,
    "import",
    "--change",
    "ENV IMAGE=other",
    archive,
    `${image}-other`,
  ]);
}

async function stop(daemon: ChildProcess, folder: string): Promise<void> {
  if (daemon.exitCode === null && daemon.signalCode === null) {
    const ended = new Promise((resolve) => daemon.once("exit", resolve));
    daemon.kill("SIGTERM");
    await ended;
  }
  await run("sh", ["-c", `grep -o '${folder}[^ ]*' /proc/mounts | sort -r | xargs -r umount -l`]).catch(
    () => undefined,
  );
  await rm(folder, { recursive: true, force: true });
}
