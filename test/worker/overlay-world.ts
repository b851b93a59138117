import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { readConfig } from "../../src/config/config.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { createLogger } from "../../src/observability.ts";
import { createBubblewrap } from "../../src/sandboxes/bubblewrap.ts";
import type { Sandbox } from "../../src/sandboxes/sandbox.ts";
import { createWorkspaces, type Workspaces } from "../../src/server/workspaces.ts";
import { chooseWay, type Way } from "../../src/worker/checkouts/ways.ts";
import type { Clone, CloneServices, CloneSource } from "../../src/worker/clones/clone.ts";
import { makeClones, openClones, type CloneRequest } from "../../src/worker/clones/clones.ts";
import { removeSession } from "../../src/worker/clones/remove-session.ts";
import { createMirrors } from "../../src/worker/git/mirrors/mirrors.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { waitFor } from "../wait-for.ts";
import { cloneSourceAt } from "./clone-source.ts";

/** A worker's workspaces in a folder of their own, with bubblewrap as their sandbox. */
export interface OverlayWorld {
  readonly data: string;
  readonly sandbox: Sandbox;
  readonly services: CloneServices & Pick<Workspaces, "mounts">;
  /** Makes a session with a clone of each repository at a path of this machine. */
  session(...urls: readonly string[]): Promise<SandboxedSession>;
  /** Opens a session's folders again, as its next attempt does; null if they are lost. */
  open(session: SandboxedSession): Promise<SandboxedSession | null>;
  /** The same folder with another process of the server's, as after a restart. */
  restarted(): OverlayWorld;
  close(): Promise<void>;
}

/** A session's clones, and its sandbox. */
export interface SandboxedSession {
  readonly id: string;
  readonly sources: readonly CloneSource[];
  readonly clones: readonly Clone[];
  /** The first of them. */
  readonly clone: Clone;
  /** Runs a shell program in the session's sandbox, in its first clone. @returns what it printed on stdout and stderr */
  run(program: string, environment?: Readonly<Record<string, string>>): Promise<string>;
}

/** How a world is. */
interface WorldOptions {
  readonly disks?: "watch" | "image";
  /** See `Config`. */
  readonly checkoutsBytes?: number;
  /** In which its folder is made; the system's folder for temporary files, if omitted. */
  readonly folder?: string;
}

/** @param way how clones get their files */
export async function createOverlayWorld(way: Way, options: WorldOptions = {}): Promise<OverlayWorld> {
  return worldIn(await mkdtemp(join(options.folder ?? tmpdir(), "offstage-overlays-")), way, options);
}

function worldIn(data: string, way: Way, { disks = "watch", checkoutsBytes = 0 }: WorldOptions): OverlayWorld {
  const sandbox = createBubblewrap();
  const mirrors = createMirrors({ dataDirectory: data, allowLocalRepositories: true });
  const limits = { ...readConfig({}).limits, diskBytes: 256 * 1024 ** 2, files: 20_000 };
  const { retention } = readConfig({});
  const config = { data, workspaces: way, sessionDisks: disks, limits, retention: { ...retention, checkoutsBytes } };
  const logger = createLogger("warn");
  const workspaces = createWorkspaces(config, { sandbox, mirrors, metrics: createMetrics(), logger });
  const services = { ...workspaces, mirrors, sandbox, limits };

  function requestOf(id: string, sources: readonly CloneSource[]): CloneRequest {
    return { sessionId: id, sources, progress: () => undefined, signal: AbortSignal.timeout(hangTimeoutMs) };
  }

  function sessionOf(id: string, sources: readonly CloneSource[], clones: readonly Clone[]): SandboxedSession {
    const [clone] = clones;
    if (clone === undefined) throw new Error("no clone was made");
    const { home } = services.folders.pathsOf(id);
    return {
      id,
      sources,
      clones,
      clone,
      run: (program, more) => run(sandbox, clones, { HOME: home, ...more }, program),
    };
  }

  return {
    data,
    sandbox,
    services,
    async session(...urls) {
      const id = crypto.randomUUID();
      const sources = urls.map((url, index) => {
        const source = cloneSourceAt(url, index === 0 ? "clone" : `clone${index + 1}`);
        return { ...source, repository: { ...source.repository, position: index } };
      });
      const { clones } = await makeClones(services, requestOf(id, sources), null);
      return sessionOf(id, sources, clones);
    },
    async open({ id, sources }) {
      const clones = await openClones(services, requestOf(id, sources));
      return clones === null ? null : sessionOf(id, sources, clones);
    },
    restarted: () => worldIn(data, way, { disks, checkoutsBytes }),
    async close() {
      for (const id of await services.folders.list()) await removeSession(services, id);
      await rm(data, { recursive: true, force: true });
    },
  };
}

async function run(
  sandbox: Sandbox,
  clones: readonly Clone[],
  environment: Readonly<Record<string, string>> & { readonly HOME: string },
  program: string,
): Promise<string> {
  const folder = clones[0]?.folder ?? "";
  const child = sandbox.start({
    command: "sh",
    arguments: ["-c", `exec 2>&1\n${program}`],
    environment,
    workspace: dirname(folder),
    workingDirectory: folder,
    home: environment.HOME,
    readOnly: clones.map(({ mirror }) => mirror.path),
    signal: AbortSignal.timeout(hangTimeoutMs),
  });
  child.stdin.end();
  const [said] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
  return said.trim();
}

/**
 * Waits until another second has begun: git trusts an index only for files that are older than it, and their times are compared in
 * seconds.
 */
export async function anotherSecond(): Promise<void> {
  const second = Math.floor(Date.now() / 1_000);
  await waitFor(() => Math.floor(Date.now() / 1_000) > second, "another second has begun");
}

/** Why workspaces can't be overlays here; empty if they can. */
export async function overlaysMissing(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-way-"));
  try {
    return (await chooseWay(folder, "overlay", { kind: "bubblewrap" })).why;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs git in a folder of a test's own. */
export function gitIn(cwd: string, ...parameters: readonly string[]): string {
  const settings = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...settings, ...parameters], { cwd, encoding: "utf8", stdio: "pipe" }).trim();
}
