import { createControlGroup, type ControlGroup } from "./cgroup.ts";
import { startProcess, type StartOptions } from "./process.ts";
import type { Exceeded, SandboxedProcess, SandboxRequest } from "./sandbox.ts";

const lookEveryMs = 250;
/** Puts itself into the control groups named before `--`, and becomes the command after it. */
const joinFirst = `while [ "$1" != "--" ]; do echo 0 > "$1"; shift; done; shift; exec "$@"`;

/**
 * As `startProcess`, with everything that the command starts bound to the request's limits. Where a bound is run into,
 * all of it is ended: a half-starved agent is no use, and its reason would be lost.
 */
export function startLimited(
  command: string,
  parameters: readonly string[],
  request: Pick<SandboxRequest, "environment" | "signal" | "limits">,
  options: StartOptions,
): SandboxedProcess {
  const group = request.limits === undefined ? null : createControlGroup(request.limits);
  if (group === null) return startProcess(command, parameters, request, options);
  const bound = ["-c", joinFirst, "sh", ...group.joinFiles, "--", command, ...parameters];
  const started = startProcess("/bin/sh", bound, request, options);
  let exceeded: Exceeded | null = null;
  const look = (): void => {
    exceeded ??= group.exceeded();
    if (exceeded !== null) started.kill();
  };
  const looking = setInterval(look, lookEveryMs);
  const exited = started.exited.then(async (result) => {
    clearInterval(looking);
    exceeded ??= group.exceeded();
    await removeWhenEmpty(group);
    return result;
  });
  return { ...started, exited, exceeded: () => exceeded };
}

/** The kernel lets go of the last process a moment after it is gone. */
async function removeWhenEmpty(group: ControlGroup): Promise<void> {
  for (let tries = 0; tries < 200 && !group.remove(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
