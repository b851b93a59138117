import { mkdir } from "node:fs/promises";
import { createOrphanSweep } from "./process/orphan-sweep.ts";
import { startProcess } from "./process/process.ts";
import { withRelay } from "./process/relay.ts";
import type { Sandbox } from "./sandbox.ts";

/**
 * No sandbox, by the operator's explicit choice: the agent has the server's rights. Only its environment is cleared.
 */
export function createUnsandboxed(): Sandbox {
  return {
    kind: "none",
    isolates: false,
    enforcesLimits: "no",
    check: () => Promise.resolve(null),
    imageId: () => Promise.resolve(null),
    start(request) {
      const { command, arguments: parameters, environment: wanted } = withRelay(request, false);
      const environment = { PATH: process.env["PATH"] ?? "", ...wanted };
      const { signal, workingDirectory = request.workspace } = request;
      return startProcess(command, parameters, { environment, signal }, { cwd: workingDirectory, ends: "descendants" });
    },
    async makeWritable(directory) {
      await mkdir(directory, { recursive: true });
    },
    attachProblem: () => Promise.resolve("there is no sandbox"),
    moveOwner: () => Promise.resolve(),
    releaseOwner: () => Promise.resolve(),
    sweeper: createOrphanSweep(),
  };
}
