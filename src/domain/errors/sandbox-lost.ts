import { SessionError } from "./errors.ts";

/** Why a sandbox did not start a command, or lost it. */
export interface SandboxFault {
  /** The sandbox's own words. */
  readonly why: string;
  /** Whether it passes by itself: the engine did not answer, rather than refuse. */
  readonly passes: boolean;
}

/** The failure of what a sandbox did not start, or lost. */
export function sandboxLost({ why, passes }: SandboxFault): SessionError {
  return new SessionError({
    code: "sandbox_unavailable",
    reason: `The sandbox did not start, or broke off: ${why}`,
    retryable: true,
    passing: passes,
    remedy: `${passes ? "The session goes on by itself, with what the agent made, once the sandbox works again" : "Fix this, then retry the session: it continues with what the agent made"}. \`offstage doctor\` on the worker tries the sandbox.`,
  });
}
