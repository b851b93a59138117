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
import type { Clone, CloneServices } from "../../src/worker/clones/clone.ts";
import { makeClones, removeSession } from "../../src/worker/clones/clones.ts";
import { createMirrors } from "../../src/worker/git/mirrors.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { cloneSourceAt } from "./clone-source.ts";

/** A worker's workspaces in a folder of their own, with bubblewrap as their sandbox. */
export interface OverlayWorld {
  readonly data: string;
  readonly sandbox: Sandbox;
  readonly services: CloneServices & Pick<Workspaces, "mounts">;
  /** Makes a session with a clone of a repository at a path of this machine. */
  session(url: string): Promise<SandboxedClone>;
  close(): Promise<void>;
}

/** A session's clone, and its sandbox. */
export interface SandboxedClone {
  readonly id: string;
  readonly clone: Clone;
  /** Runs a shell program in the session's sandbox, in its clone. @returns what it printed on stdout and stderr */
  run(program: string, environment?: Readonly<Record<string, string>>): Promise<string>;
}

/** @param way how clones get their files */
export async function createOverlayWorld(way: Way): Promise<OverlayWorld> {
  const data = await mkdtemp(join(tmpdir(), "offstage-overlays-"));
  const sandbox = createBubblewrap();
  const mirrors = createMirrors({ dataDirectory: data, allowLocalRepositories: true });
  const { limits } = readConfig({});
  const logger = createLogger("warn");
  const config = { data, workspaces: way, sessionDisks: "watch", limits } as const;
  const workspaces = createWorkspaces(config, { sandbox, mirrors, metrics: createMetrics(), logger });
  const services = { ...workspaces, mirrors, sandbox, limits };
  return {
    data,
    sandbox,
    services,
    async session(url) {
      const id = crypto.randomUUID();
      const signal = AbortSignal.timeout(hangTimeoutMs);
      const request = { sessionId: id, sources: [cloneSourceAt(url)], progress: () => undefined, signal };
      const { clones } = await makeClones(services, request, null);
      const [clone] = clones;
      if (clone === undefined) throw new Error("no clone was made");
      const { home } = services.folders.pathsOf(id);
      return { id, clone, run: (program, more) => run(sandbox, clone, { HOME: home, ...more }, program) };
    },
    async close() {
      for (const id of await services.folders.list()) await removeSession(services, id);
      await rm(data, { recursive: true, force: true });
    },
  };
}

async function run(
  sandbox: Sandbox,
  { folder, mirror }: Clone,
  environment: Readonly<Record<string, string>> & { readonly HOME: string },
  program: string,
): Promise<string> {
  const child = sandbox.start({
    command: "sh",
    arguments: ["-c", `exec 2>&1\n${program}`],
    environment,
    workspace: dirname(folder),
    workingDirectory: folder,
    home: environment.HOME,
    readOnly: [mirror.path],
    signal: AbortSignal.timeout(hangTimeoutMs),
  });
  child.stdin.end();
  const [said] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
  return said;
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
