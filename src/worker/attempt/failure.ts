import { ObjectStoreError, SessionError, type Failure } from "../../domain/errors/errors.ts";
import { isDiskFull } from "../disk/disk-full.ts";
import { damageOf } from "../git/damage.ts";
import type { Attempt, AttemptServices } from "./attempt.ts";

/**
 * Turns the error that ended an attempt into the failure that its session shows: code, masked reason, remedy, whether it passes
 * by itself, and whether a person's retry may help. Logs errors that the session's user can't fix.
 */
export async function failureOf(
  error: unknown,
  { session, mask, logger }: Pick<Attempt, "session" | "mask" | "logger">,
  { diskIsFull, ownDiskIsFull }: Pick<AttemptServices, "diskIsFull" | "ownDiskIsFull">,
): Promise<Failure> {
  if (error instanceof ObjectStoreError) {
    logger.warn({ err: error }, "the work so far could not be fetched from the object store");
    return {
      code: "object_store_unavailable",
      reason: `The work so far could not be fetched: ${mask.text(error.message)}.`,
      retryable: true,
      passing: error.transient,
      remedy: "It is still stored: fix the cause (`offstage doctor` checks the object store), then retry the session.",
    };
  }
  // A disk that has room again by now was the worker's: what an agent or a setup left on the session's own stays there.
  if (isDiskFull(error) && !(await diskIsFull()) && (await ownDiskIsFull(session.sessionId))) {
    return {
      code: "resources_exhausted",
      reason: "The session's files took more disk than a sandbox may have.",
      retryable: true,
      remedy: "Ask for less at once, or raise OFFSTAGE_SANDBOX_DISK_MB or OFFSTAGE_SANDBOX_FILES.",
    };
  }
  // A program that fails because the disk is full does not always say so.
  if (isDiskFull(error) || isUnwrittenRef(error) || (mayComeOfDisk(error) && (await diskIsFull()))) {
    logger.error({ err: error }, "the disk of this worker is full");
    return {
      code: "disk_full",
      reason: "The disk of the worker that had this session is full.",
      retryable: true,
      passing: true,
      remedy: "Free disk space on the worker (docs/operating.md lists what is stored where), then retry the session.",
    };
  }
  const known = damageOf(error) ?? error;
  if (known instanceof SessionError) {
    return { ...known.failure, reason: mask.text(known.message), remedy: mask.text(known.remedy) };
  }
  logger.error({ err: error }, "an attempt failed with an unexpected error");
  return {
    code: "internal",
    reason: "Something broke inside Offstage while it worked on this session.",
    retryable: true,
    passing: true,
    remedy: `Retry the session; if it fails again, look for ${session.sessionId} in the server's log.`,
  };
}

/** Errors that a full disk may have caused: unexpected ones, and a workspace found broken. */
function mayComeOfDisk(error: unknown): boolean {
  return !(error instanceof SessionError) || error.code === "workspace_broken";
}

/**
 * Whether git could not write a ref of the server's own. It does not say why (`write_ref_to_lockfile` in refs/files-backend.c); nothing but
 * the disk keeps it from that, which may have room again by now.
 */
function isUnwrittenRef(error: unknown): boolean {
  return (
    error instanceof Error && !(error instanceof SessionError) && /couldn't write '[^']+\.lock'/u.test(error.message)
  );
}
