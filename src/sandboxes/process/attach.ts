import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { messageOf } from "../../domain/errors/errors.ts";
import { programText } from "../../programs/program-text.ts";
import type { LaterFolders, Sandbox } from "../sandbox.ts";
import type { LimitedProcess } from "./limited.ts";
import { hasChildren } from "./process-table.ts";
import { systemPerl } from "./relay.ts";
import { runProgram } from "./run-program.ts";

/** Number of the system call setns (setns(2)), of those architectures that Offstage has a filter of system calls for. */
const setns: Partial<Record<NodeJS.Architecture, number>> = { x64: 308, arm64: 268 };
const limitMs = 10_000;
const lookAgainMs = 10;

/** The missing requirement of this machine for attaching folders to a running sandbox; null if none is known. */
export function missingForAttaching(): string | null {
  if (process.getuid?.() !== 0) return "only root can give a running sandbox its folders";
  if (!existsSync(systemPerl)) return `${systemPerl}, which gives a running sandbox its folders, is not installed`;
  return setns[process.arch] === undefined ? `not known how on ${process.arch}` : null;
}

/**
 * Makes folders visible in a sandbox, once it runs. The agent's user can't: it has neither the rights nor the system calls.
 * @param home of the sandbox, by the path at which it was started
 * @throws Error with the reason
 */
export async function attachFolders(child: LimitedProcess, home: string, later: LaterFolders): Promise<void> {
  const missing = missingForAttaching();
  if (missing !== null) throw new Error(missing);
  const first = await whenRunning(child);
  const mounts = later.mounts.flatMap(({ folder, place, isReadOnly }) => [isReadOnly ? "ro" : "rw", folder, place]);
  const parameters = [String(setns[process.arch]), String(first), later.home, home, ...mounts];
  await runProgram(systemPerl, ["-e", programText(import.meta.url, "attach.pl"), "--", ...parameters], {
    timeout: limitMs,
    killSignal: "SIGKILL",
  });
}

/**
 * Waits until a sandbox runs its command: bubblewrap reports the first process before it has made the sandbox's
 * folders, and that process starts the command when they are made. Until then it may still see the machine's own.
 * @returns its first process
 * @throws Error if it ends before, or does not get that far
 */
async function whenRunning(child: LimitedProcess): Promise<number> {
  let hasEnded = false;
  void child.exited.then(() => (hasEnded = true));
  for (let waited = 0; waited < limitMs && !hasEnded; waited += lookAgainMs) {
    const first = child.first();
    if (first !== null && hasChildren(first)) return first;
    await wait(lookAgainMs);
  }
  throw new Error(hasEnded ? "the sandbox has ended" : "the sandbox has not begun its command");
}

/** Starts a sandbox, attaches a folder to it, and looks at what it sees. @returns why that is not possible; null if it is */
export async function tryAttaching({
  start,
  makeWritable,
  releaseOwner,
}: Pick<Sandbox, "start" | "makeWritable" | "releaseOwner">): Promise<string | null> {
  const missing = missingForAttaching();
  if (missing !== null) return missing;
  const folder = await mkdtemp(join(tmpdir(), "offstage-attach-"));
  const [home, later] = [join(folder, "home"), join(folder, "later")];
  try {
    await makeWritable(home);
    await makeWritable(later);
    const place = join(folder, "place");
    const look = `read -r start && test -d "${place}" && touch "${place}/works"`;
    const trial = start({
      command: "sh",
      arguments: ["-c", look],
      environment: {},
      workspace: home,
      home,
      readOnly: [],
      signal: AbortSignal.timeout(limitMs),
    });
    try {
      await trial.attach?.({ mounts: [{ folder: later, place, isReadOnly: false }], home, disk: folder });
      trial.stdin.end("start\n");
      const [{ code }, errors] = await Promise.all([trial.exited, text(trial.stderr)]);
      return code === 0 && existsSync(join(later, "works")) ? null : `it was not visible (${errors.trim() || code})`;
    } finally {
      trial.kill();
      await trial.exited;
    }
  } catch (error) {
    return messageOf(error);
  } finally {
    await rm(folder, { recursive: true, force: true });
    await releaseOwner(folder);
  }
}
