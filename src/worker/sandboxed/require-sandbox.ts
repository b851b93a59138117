import { SessionError } from "../../domain/errors/errors.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";

/** Checks that the sandbox works on this machine. @throws SessionError sandbox_unavailable if it does not */
export async function requireSandbox({
  sandbox,
}: {
  readonly sandbox: Pick<Sandbox, "check" | "kind">;
}): Promise<void> {
  const problem = await sandbox.check();
  if (problem !== null) {
    throw new SessionError({
      code: "sandbox_unavailable",
      reason: `Agents can't be sandboxed on this server: ${problem}`,
      retryable: true,
      // An engine of containers is another service, which may be restarting; a program that is missing does not come by itself.
      passing: sandbox.kind === "container",
      remedy: "Fix this and retry, or start the server with `--sandbox none` to run agents without isolation.",
    });
  }
}
