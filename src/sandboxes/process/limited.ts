import { statSync } from "node:fs";
import { dirname } from "node:path";
import type { Exceeded, SandboxedProcess, SandboxRequest } from "../sandbox.ts";
import { createControlGroup, type ControlGroup } from "./cgroup.ts";
import type { Holders } from "./disk-usage.ts";
import { startProcess, type StartOptions } from "./process.ts";
import { watchUsage } from "./watch.ts";

const lookEveryMs = 250;
/** Puts itself into the control groups named before `--`, and becomes the command after it. */
const joinFirst = `while [ "$1" != "--" ]; do echo 0 > "$1"; shift; done; shift; exec "$@"`;

type LimitedRequest = Pick<SandboxRequest, "environment" | "signal" | "limits" | "workspace" | "home" | "disk">;

/**
 * As `startProcess`, with everything that the command starts bound to the request's limits: by the kernel where control
 * groups can be made, else by looking. Where a bound is run into, all of it is ended: a half-starved agent is no use, and
 * its reason would be lost.
 */
export function startLimited(
  command: string,
  parameters: readonly string[],
  request: LimitedRequest,
  options: StartOptions,
): SandboxedProcess {
  const { limits, home } = request;
  if (limits === undefined) return startProcess(command, parameters, request, options);
  const group = createControlGroup(limits);
  const started =
    group === null
      ? startProcess(command, parameters, request, options)
      : startProcess(
          "/bin/sh",
          ["-c", joinFirst, "sh", ...group.joinFiles, "--", command, ...parameters],
          request,
          options,
        );
  const watch = watchUsage({
    limits,
    ...watched(request),
    pids: group === null ? started.pids : null,
    holders: () => holdersOf(home, started.pids),
    onExceeded: started.kill,
  });
  let exceeded: Exceeded | null = null;
  const look = (): void => {
    exceeded ??= group?.exceeded() ?? null;
    if (exceeded !== null) started.kill();
  };
  const looking = group === null ? null : setInterval(look, lookEveryMs);
  const exited = started.exited.then(async (result) => {
    if (looking !== null) clearInterval(looking);
    watch.stop();
    exceeded ??= group?.exceeded() ?? watch.exceeded();
    if (group !== null) await removeWhenEmpty(group);
    return result;
  });
  return { ...started, exited, exceeded: () => exceeded ?? watch.exceeded() };
}

/** The folders that count, and the one that may be a file system of its own. */
export function watched({ disk, workspace, home }: Pick<SandboxRequest, "disk" | "workspace" | "home">) {
  return disk === undefined
    ? { folders: [...new Set([workspace, home])], disk: dirname(workspace) }
    : { folders: [disk], disk };
}

/** Under root a session's processes are those of its home's owner, whatever they did to be hidden from a search. */
export function holdersOf(home: string, pids: () => readonly number[]): Holders | null {
  if (process.getuid?.() !== 0) return { pids: pids() };
  const owner = statSync(home, { throwIfNoEntry: false });
  return owner === undefined ? null : { uid: owner.uid };
}

/** The kernel lets go of the last process a moment after it is gone. */
async function removeWhenEmpty(group: ControlGroup): Promise<void> {
  for (let tries = 0; tries < 200 && !group.remove(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
