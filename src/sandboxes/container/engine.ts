import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConflictError } from "../../domain/errors.ts";
import { sandboxUid } from "../process/ownership.ts";
import { seccompProfile } from "../process/seccomp.ts";
import type { EngineApi, Ulimit } from "./api.ts";
import { callEngine, type Patience } from "./call.ts";
import type { ContainerSettings } from "./settings.ts";

/** What is particular to one engine. */
export interface Engine {
  /** Whom a container's processes are. */
  readonly user: string;
  /** The filter of system calls, as this engine takes it; null for its own. */
  readonly seccomp: string | null;
  /** Whether it tells that the kernel ended something for want of memory. */
  readonly tellsMemory: boolean;
}

/** @throws OffstageError if it does not answer, or would not do as it is told */
export async function askEngine(api: EngineApi, { runtime }: ContainerSettings, patience: Patience): Promise<Engine> {
  const [info, version] = await callEngine({ toDo: "say what it is", limitMs: patience.answerMs }, (signal) =>
    Promise.all([api.info(signal), api.version(signal)]),
  );
  const [options, components] = [info.SecurityOptions ?? [], version.Components ?? []];
  // Root of a rootless engine is whoever runs it, and no more.
  const user = options.some((option) => option.includes("rootless")) ? "0:0" : ownUser();
  const profile = seccompProfile(process.arch);
  const isPodman = components.some(({ Name }) => Name.includes("Podman"));
  if (isPodman && runtime !== null) {
    throw new ConflictError(
      `Podman can't choose a runtime for one container: unset OFFSTAGE_CONTAINER_RUNTIME, and set ${runtime} in containers.conf`,
    );
  }
  return { user, seccomp: profile !== null && isPodman ? await profileFile(profile) : profile, tellsMemory: !isPodman };
}

/** Podman reads the profile from a file, where Docker takes it as it is. */
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

/** Every session's processes have one user, so that this is no bound of one of them. */
const mostPerUser = 32_768;

/** What the server itself may have open and start: some engines ask for more than a machine lets them. */
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

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
