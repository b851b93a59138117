import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConflictError } from "../../domain/errors/errors.ts";
import { sandboxUid } from "../process/ownership.ts";
import { seccompProfile } from "../process/seccomp.ts";
import type { EngineApi, Ulimit } from "./api.ts";
import { callEngine, type CallLimits } from "./call.ts";
import type { ContainerSettings } from "./settings.ts";

/** Properties in which engines differ. */
export interface Engine {
  /** User and group of a container's processes, as `uid:gid`. */
  readonly user: string;
  /** The filter of system calls, as this engine takes it; null: the engine's default. */
  readonly seccomp: string | null;
  /** Whether the engine reports that the kernel ended a process for lack of memory. */
  readonly reportsMemory: boolean;
}

/**
 * Finds out an engine's properties.
 * @throws OffstageError if it does not answer, or can't enforce what Offstage asks
 */
export async function askEngine(api: EngineApi, { runtime }: ContainerSettings, patience: CallLimits): Promise<Engine> {
  const [info, version] = await callEngine({ action: "say what it is", limitMs: patience.answerMs }, (signal) =>
    Promise.all([api.info(signal), api.version(signal)]),
  );
  const [options, components] = [info.SecurityOptions ?? [], version.Components ?? []];
  // Root of a rootless engine has only the rights of the user that runs the engine.
  const user = options.some((option) => option.includes("rootless")) ? "0:0" : ownUser();
  const profile = seccompProfile(process.arch);
  const isPodman = components.some(({ Name }) => Name.includes("Podman"));
  if (isPodman && runtime !== null) {
    throw new ConflictError(
      `Podman can't choose a runtime for one container: unset OFFSTAGE_CONTAINER_RUNTIME, and set ${runtime} in containers.conf`,
    );
  }
  return {
    user,
    seccomp: profile !== null && isPodman ? await profileFile(profile) : profile,
    reportsMemory: !isPodman,
  };
}

/** Podman reads the profile from a file, Docker takes its content. */
async function profileFile(profile: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-seccomp-"));
  const file = join(folder, "profile.json");
  await writeFile(file, profile);
  return file;
}

function ownUser(): string {
  const uid = process.getuid?.() ?? 0;
  return uid === 0 ? `${sandboxUid}:${sandboxUid}` : `${uid}:${process.getgid?.() ?? uid}`;
}

/** A high limit: the processes of all sessions may have one user, so it can't limit a single session. */
const mostPerUser = 32_768;

/** The server's own limits on open files and processes: some engines request more than the machine allows. */
export function ownLimits(): Ulimit[] {
  const limits = existsSync("/proc/self/limits") ? readFileSync("/proc/self/limits", "utf8") : "";
  return (
    [
      ["nofile", "Max open files"],
      ["nproc", "Max processes"],
    ] as const
  ).flatMap(([Name, title]) => {
    const hard = new RegExp(`^${title}\\s+\\S+\\s+(\\d+|unlimited)`, "mu").exec(limits)?.[1];
    if (hard === undefined) return [];
    const value = Math.min(mostPerUser, hard === "unlimited" ? mostPerUser : Number(hard));
    return [{ Name, Soft: value, Hard: value }];
  });
}
