import { execFile, type ExecFileOptions } from "node:child_process";
import { promisify } from "node:util";
import { childEnvironment } from "../../domain/environments/child-environment.ts";

/**
 * Runs a system program to its end, without the server's own environment.
 * @throws Error with `stdout` and `stderr` so far if it could not be started or its exit code is not 0
 */
export function runProgram(
  program: string,
  parameters: readonly string[],
  options: Pick<ExecFileOptions, "maxBuffer" | "timeout" | "killSignal" | "uid" | "gid" | "cwd"> & {
    readonly encoding?: "utf8" | "latin1";
  } = {},
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const env = childEnvironment(process.env);
  return promisify(execFile)(program, [...parameters], { encoding: "utf8", ...options, env });
}
