import { sandboxLost } from "../../domain/errors/sandbox-lost.ts";
import type { Exceeded, Sandbox, SandboxedProcess, SandboxRequest } from "../../sandboxes/sandbox.ts";
import { tailOf } from "../git/tail.ts";

/** The bounds that end a program before its own end. */
export interface Bounds {
  /** Most time of it, in ms. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
}

/** How a program in a sandbox ended. */
export interface SandboxedEnd {
  /** Exit code; null if a signal ended it. */
  readonly code: number | null;
  /** The limit for which the sandbox was ended; null if for none. */
  readonly exceeded: Exceeded | null;
  /** Whether its time had run out by then. */
  readonly timedOut: boolean;
  /** The end of its stderr; empty if `thrown` is set. */
  readonly printed: string;
  /** The error that `use` threw, for which the program was ended; null if none. */
  readonly thrown: { readonly error: unknown } | null;
}

/**
 * Runs a program in a sandbox until nothing of it runs any more, whatever happens. The caller says which end is which error.
 * @param use reads the program's stdout to its end, and writes and ends its stdin; if it throws, the program is ended. Its
 *   second parameter aborts if the program is ended at a bound. A stdin that it leaves open is ended after the program.
 * @throws the reason of `bounds.signal`, if that has aborted by the program's end; SessionError sandbox_unavailable if the sandbox did
 *   not start or broke off
 */
export async function runInSandbox(
  sandbox: Sandbox,
  request: Omit<SandboxRequest, "signal">,
  { limitMs, signal }: Bounds,
  use: (child: SandboxedProcess, over: AbortSignal) => Promise<void> | void,
): Promise<SandboxedEnd> {
  const overtime = AbortSignal.timeout(limitMs);
  const over = AbortSignal.any([signal, overtime]);
  const child = sandbox.start({ ...request, signal: over });
  let printed = "";
  let thrown: SandboxedEnd["thrown"] = null;
  try {
    [printed] = await Promise.all([tailOf(child.stderr), use(child, over), child.exited]);
  } catch (error) {
    thrown = { error };
  } finally {
    child.stdin.end();
    child.kill();
  }
  const { code } = await child.exited;
  signal.throwIfAborted();
  const fault = child.fault();
  if (fault !== null && child.exceeded() === null && !overtime.aborted) throw sandboxLost(fault);
  return { code, exceeded: child.exceeded(), timedOut: overtime.aborted, printed, thrown };
}
