import { programText } from "../../programs/program-text.ts";
import type { Sandbox, SandboxRequest } from "../../sandboxes/sandbox.ts";
import { tailOf } from "./tail.ts";

const limitMs = 60_000;

/**
 * Writes a harness's settings into the session's home. It is done inside the sandbox: an earlier turn may have left a symbolic
 * link there, which a write from outside would follow with the server's rights.
 * @param files content by path, relative to the home
 * @throws Error if they could not be written, or not within 60 s
 */
export async function writeHarnessFiles(
  sandbox: Sandbox,
  place: Pick<SandboxRequest, "workspace" | "home" | "signal">,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  if (Object.keys(files).length === 0) return;
  const process_ = sandbox.start({
    ...place,
    // If an agent left a pipe in a file's place, writing may never end.
    signal: AbortSignal.any([place.signal, AbortSignal.timeout(limitMs)]),
    command: process.execPath,
    arguments: ["-e", programText(import.meta.url, "write-files.cjs")],
    environment: { HOME: place.home },
    workingDirectory: place.home,
    readOnly: [],
  });
  process_.stdin.end(JSON.stringify(files));
  process_.stdout.resume();
  const [{ code }, said] = await Promise.all([process_.exited, tailOf(process_.stderr)]);
  place.signal.throwIfAborted();
  if (code !== 0) throw new Error(`the harness's settings could not be written: ${said.slice(-500)}`);
}
