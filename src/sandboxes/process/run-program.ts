import { execFile, type ExecFileOptions } from "node:child_process";
import { promisify } from "node:util";
import { childEnvironment } from "../../domain/child-environment.ts";

/**
 * Runs one of the system's programs to its end, with none of the server's own environment.
 * @throws Error if it could not be started or did not end with 0, with `stdout` and `stderr` as far as it got
 */
export function runProgram(
  program: string,
  parameters: readonly string[],
  options: Pick<ExecFileOptions, "maxBuffer" | "timeout" | "killSignal" | "uid" | "gid" | "cwd"> = {},
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const env = childEnvironment(process.env);
  return promisify(execFile)(program, [...parameters], { ...options, env, encoding: "utf8" });
}
