import { statSync } from "node:fs";
import { dirname } from "node:path";
import type { Exceeded, SandboxRequest } from "../sandbox.ts";
import { createControlGroup, type ControlGroup } from "./cgroup.ts";
import type { Holders } from "./disk-usage.ts";
import { usageOf } from "./process-usage.ts";
import { startProcess, type StartedProcess, type StartOptions } from "./process.ts";
import { watchUsage } from "./watch.ts";

const measureEveryMs = 250;
/** Adds itself to the control groups named before `--`, then executes the command after it. */
const joinFirst = `while [ "$1" != "--" ]; do echo 0 > "$1"; shift; done; shift; exec "$@"`;

/** A session's folders, by what they use of the disk. */
type Place = Pick<SandboxRequest, "workspace" | "home" | "disk">;

/** A started command with limits. */
export interface LimitedProcess extends StartedProcess {
  /** From now on these folders count, and it has the usual priority. */
  measureInstead(place: Place): void;
}

type LimitedRequest = Pick<
  SandboxRequest,
  "environment" | "signal" | "limits" | "standsBack" | "workspace" | "home" | "disk"
>;

/**
 * Like `startProcess`, with the request's limits on everything that the command starts: enforced by the kernel if
 * control groups can be created, else by measuring. If a limit is exceeded, every process is ended: an agent short of
 * memory or disk fails in ways that hide the reason.
 */
export function startLimited(
  command: string,
  parameters: readonly string[],
  request: LimitedRequest,
  options: StartOptions,
): LimitedProcess {
  const { limits } = request;
  if (limits === undefined) {
    return { ...startProcess(command, parameters, request, options), measureInstead: () => undefined };
  }
  const group = createControlGroup(limits);
  if (request.standsBack === true) group?.standBack(true);
  const started =
    group === null
      ? startProcess(command, parameters, request, options)
      : startProcess(
          "/bin/sh",
          ["-c", joinFirst, "sh", ...group.joinFiles, "--", command, ...parameters],
          request,
          options,
        );
  const watchFolders = (place: Place) =>
    watchUsage({
      limits,
      ...watched(place),
      pids: group === null ? started.pids : null,
      holders: () => holdersOf(place.home, started.pids),
      onExceeded: started.kill,
    });
  let watch = watchFolders(request);
  let exceeded: Exceeded | null = null;
  const measure = (): void => {
    exceeded ??= group?.exceeded() ?? null;
    if (exceeded !== null) started.kill();
  };
  const measuring = group === null ? null : setInterval(measure, measureEveryMs);
  const exited = started.exited.then(async (result) => {
    if (measuring !== null) clearInterval(measuring);
    watch.stop();
    exceeded ??= group?.exceeded() ?? watch.exceeded();
    if (group !== null) await removeWhenEmpty(group);
    return result;
  });
  let isOver = false;
  void started.exited.then(() => (isOver = true));
  return {
    ...started,
    exited,
    exceeded: () => exceeded ?? watch.exceeded(),
    measureInstead(place) {
      group?.standBack(false);
      watch.stop();
      watch = watchFolders(place);
    },
    usage: () => (isOver ? null : (group?.usage() ?? usageOf(started.pids()))),
  };
}

/** Folders to measure, and the folder that may be a separate file system. */
export function watched({ disk, workspace, home }: Pick<SandboxRequest, "disk" | "workspace" | "home">) {
  return disk === undefined
    ? { folders: [...new Set([workspace, home])], disk: dirname(workspace) }
    : { folders: [disk], disk };
}

/**
 * Processes of a session whose deleted open files count. If the server is root: all of the home's owner, which also
 * finds processes that hide from a search.
 */
export function holdersOf(home: string, pids: () => readonly number[]): Holders | null {
  if (process.getuid?.() !== 0) return { pids: pids() };
  const owner = statSync(home, { throwIfNoEntry: false });
  return owner === undefined ? null : { uid: owner.uid };
}

/** The kernel releases the last process a moment after its end. */
async function removeWhenEmpty(group: ControlGroup): Promise<void> {
  for (let tries = 0; tries < 200 && !group.remove(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
