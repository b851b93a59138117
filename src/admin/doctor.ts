import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Check } from "../cli/terminal/commands.ts";
import type { Config } from "../config/config.ts";
import { childEnvironment } from "../domain/environments/child-environment.ts";
import { messageOf, ObjectStoreError, OffstageError } from "../domain/errors/errors.ts";
import { createObjectStore } from "../objects/object-store.ts";
import { reachOutside } from "../server/reach-outside.ts";
import { chooseDefaultAgent, createAgentRegistry } from "../server/agent-registry.ts";
import { createSandbox } from "../server/create-sandbox.ts";
import { chooseWay, type Way } from "../worker/checkouts/ways.ts";
import { imageProblem } from "../worker/disk/session-disk.ts";
import { canBeHeld, canMerge } from "../worker/git/git-version.ts";
import { attachDatabase } from "./attach.ts";

/**
 * Checks what this machine has and lacks, with the exact remedy for each problem. `offstage doctor` prints the
 * result.
 */
export async function diagnose(config: Config): Promise<Check[]> {
  reachOutside(config);
  const providers = createAgentRegistry(config);
  const agents = await Promise.all(
    providers.map(async (provider): Promise<Check> => {
      const problem = await provider.problem();
      return {
        name: `agent ${provider.id}`,
        ok: problem === null,
        detail: problem === null ? (provider.defaultModel ?? "ready") : "not available",
        remedy: problem,
        optional: true,
      };
    }),
  );
  return [
    nodeCheck(),
    await gitCheck(),
    await sandboxCheck(config),
    limitsCheck(config),
    await disksCheck(config),
    await workspacesCheck(config),
    await warmCheck(config),
    await databaseCheck(config),
    ...(config.objects === null ? [] : [await objectStoreCheck(config.objects)]),
    modelCheck(config),
    ...agents,
    defaultAgentCheck(await chooseDefaultAgent(config, providers)),
  ];
}

function nodeCheck(): Check {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const ok = major > 22 || (major === 22 && minor >= 18);
  return { name: "node", ok, detail: process.versions.node, remedy: ok ? null : "install Node 22.18 or newer" };
}

async function gitCheck(): Promise<Check> {
  const stdout = await promisify(execFile)("git", ["--version"], { env: childEnvironment(process.env) }).then(
    (printed) => printed.stdout.trim(),
    () => null,
  );
  const name = "git";
  if (stdout === null)
    return { name, ok: false, detail: "not found", remedy: "install git, for example `apt-get install git`" };
  const detail = stdout.replace("git version ", "");
  if (canMerge(detail)) return { name, ok: true, detail, remedy: null };
  const remedy = canBeHeld(detail)
    ? "install git 2.38 or newer: this one can't merge others' commits to a session's branch"
    : "install git 2.38 or newer: with this one only repositories on hosts that OFFSTAGE_FORGES names can be used";
  return { name, ok: false, detail, remedy, optional: true };
}

async function sandboxCheck(config: Config): Promise<Check> {
  const problem = await createSandbox(config).check();
  const name = `sandbox ${config.sandbox}`;
  if (problem !== null) return { name, ok: false, detail: "does not work here", remedy: problem };
  return { name, ok: true, detail: config.sandbox === "none" ? "agents are not isolated" : "works", remedy: null };
}

function limitsCheck(config: Config): Check {
  const kept = createSandbox(config).enforcesLimits;
  const { memoryBytes, processes, diskBytes, cpus } = config.limits;
  return {
    name: "sandbox limits",
    ok: kept === "kernel",
    detail:
      kept === "no"
        ? "not enforced"
        : `${memoryBytes / 1024 ** 2} MB, ${processes} processes, ${diskBytes / 1024 ** 2} MB of disk${kept === "kernel" ? `, ${cpus} cores` : ", checked twice a second"}`,
    remedy: kept === "kernel" ? null : limitsRemedy,
    optional: true,
  };
}

const limitsRemedy =
  "to have the kernel enforce them, run the server as root on a system in which it may create control groups (/sys/fs/cgroup is writable)";

/** Checks how the disk space of sessions' folders is limited, and whether that works. */
async function disksCheck({ sessionDisks, sandbox, limits }: Config): Promise<Check> {
  const name = "session disks";
  const bounds = `${limits.diskBytes / 1024 ** 2} MB and ${limits.files} files`;
  if (sessionDisks === "watch") {
    const detail = `${bounds}, ${sandbox === "none" ? "not enforced" : "checked twice a second"}`;
    const problem = await imageProblem();
    const remedy =
      problem === null
        ? "to have the kernel enforce them, set OFFSTAGE_SANDBOX_DISK=image"
        : `the kernel can't enforce them here: ${problem}`;
    return { name, ok: false, detail, remedy, optional: true };
  }
  const problem = await imageProblem();
  if (problem === null) return { name, ok: true, detail: `${bounds}, a file system image for each`, remedy: null };
  const remedy = `give the server root, loop devices and mkfs.ext4 (e2fsprogs), or set OFFSTAGE_SANDBOX_DISK=watch (${problem})`;
  return { name, ok: false, detail: "a file system image can't be made", remedy };
}

const ways: Readonly<Record<Way, string>> = {
  overlay: "overlays on shared checkouts",
  copy: "copies of shared checkouts",
  checkout: "each clone is checked out",
};

/** Tries how clones get their files. */
async function workspacesCheck({ data, workspaces: asked, sandbox }: Config): Promise<Check> {
  const { way, why } = await chooseWay(join(data, "checkouts"), asked, { kind: sandbox });
  const ok = why === "" || way === asked;
  return { name: "workspaces", ok, detail: ways[way], remedy: ok ? null : why, optional: true };
}

/** Checks whether sandboxes can be kept ready. */
async function warmCheck(config: Config): Promise<Check> {
  const name = "warm sandboxes";
  const problem =
    config.sessionDisks === "image"
      ? "each session has a disk of its own"
      : await createSandbox(config).attachProblem();
  if (problem !== null) {
    const remedy =
      "sessions wait for their agent's program to start; to keep some ready, run the server as root with bubblewrap and perl, and OFFSTAGE_SANDBOX_DISK=watch";
    return { name, ok: false, detail: problem, remedy, optional: true };
  }
  const detail = config.warm === 0 ? "would work; OFFSTAGE_WARM is 0, or memory is short" : `up to ${config.warm}`;
  return { name, ok: true, detail, remedy: null };
}

async function databaseCheck(config: Config): Promise<Check> {
  const name = config.databaseUrl === null ? "database (embedded)" : "database";
  try {
    await mkdir(config.data, { recursive: true });
    const database = await attachDatabase(config);
    try {
      const { rows } = await database.pool.query<{ server_version: string }>("show server_version");
      return { name, ok: true, detail: `PostgreSQL ${rows[0]?.server_version}`, remedy: null };
    } finally {
      await database.close();
    }
  } catch (error) {
    const reason = messageOf(error);
    const remedy =
      error instanceof OffstageError ? reason : `${reason}: check DATABASE_URL, or the folder ${config.data}`;
    return { name, ok: false, detail: "can't be opened", remedy };
  }
}

/** Puts, gets and removes an object. If it can't be removed, the next check overwrites it. */
async function objectStoreCheck(settings: NonNullable<Config["objects"]>): Promise<Check> {
  const name = "object store";
  const objects = createObjectStore(settings, { requestMs: 5_000, totalMs: 5_000, putMs: 5_000 });
  const key = objects.keyOf(`doctor/${hostname()}`);
  const content = randomBytes(64);
  const { signal } = new AbortController();
  try {
    await objects.put(key, content, signal);
    const found = await objects.get(key, { maximumBytes: content.length, signal });
    await objects.remove(key, signal);
    if (found?.equals(content) === true) return { name, ok: true, detail: `bucket ${settings.bucket}`, remedy: null };
    const remedy = `the bucket ${settings.bucket} returned another object than the one stored: check OFFSTAGE_S3_ENDPOINT`;
    return { name, ok: false, detail: "does not store objects", remedy };
  } catch (error) {
    const reason = messageOf(error);
    const remedy =
      error instanceof ObjectStoreError && error.transient ? `${reason}: check OFFSTAGE_S3_ENDPOINT` : reason;
    return { name, ok: false, detail: "can't be used", remedy };
  }
}

function modelCheck(config: Config): Check {
  const found = Object.keys(config.models);
  return found.length > 0
    ? { name: "model keys", ok: true, detail: found.join(", "), remedy: null }
    : {
        name: "model keys",
        ok: false,
        detail: "none",
        remedy: "set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OFFSTAGE_MODEL_BASE_URL",
        optional: true,
      };
}

function defaultAgentCheck(agent: string | null): Check {
  return agent === null
    ? { name: "default agent", ok: false, detail: "none can run", remedy: "set up one of the agents above" }
    : { name: "default agent", ok: true, detail: agent, remedy: null };
}
