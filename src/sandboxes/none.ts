import { mkdir } from "node:fs/promises";
import { startProcess } from "./process.ts";
import type { Sandbox } from "./sandbox.ts";

/** No sandbox, by the operator's explicit choice: the agent has the server's own rights. Only its environment is cleared. */
export function createUnsandboxed(): Sandbox {
  return {
    kind: "none",
    isolates: false,
    check: () => Promise.resolve(null),
    start(request) {
      const environment = { PATH: process.env["PATH"] ?? "", ...request.environment };
      const { command, signal, workingDirectory = request.workspace } = request;
      return startProcess(
        command,
        request.arguments,
        { environment, signal },
        { cwd: workingDirectory, endsDescendants: true },
      );
    },
    async makeWritable(directory) {
      await mkdir(directory, { recursive: true });
    },
  };
}
