import { expect, test } from "vitest";
import { ObjectStoreError, SessionError, type Failure } from "../../domain/errors/errors.ts";
import { createMask } from "../../domain/masking/mask.ts";
import { createLogger } from "../../observability.ts";
import { failureOf } from "./failure.ts";

const failed = (error: unknown, diskIsFull: boolean, isOwnFull = false) =>
  failureOf(
    error,
    {
      mask: createMask(["a-secret-of-the-server"]),
      session: { sessionId: "the session" } as never,
      logger: createLogger("silent"),
    },
    { diskIsFull: () => Promise.resolve(diskIsFull), ownDiskIsFull: () => Promise.resolve(isOwnFull) },
  );

const broken = new SessionError({
  code: "workspace_broken",
  reason: "couldn't write 'target.lock' a-secret-of-the-server",
  retryable: false,
  remedy: "Start a new session.",
});

test("what a program could not write on a full disk is the disk's failure, for which a retry helps", async () => {
  expect(await failed(new Error("cannot update ref: couldn't write 'target.lock'"), true)).toMatchObject({
    code: "disk_full",
    retryable: true,
  });
  expect(await failed(broken, true)).toMatchObject({ code: "disk_full", retryable: true });
});

test("a ref of the server's own that could not be written is the disk's failure, though it has room again", async () => {
  const refused =
    "git update-ref failed: fatal: update_ref failed for ref 'refs/a': cannot update ref 'refs/a': couldn't write '/data/m.git/./refs/a.lock'";
  expect(await failed(new Error(refused), false)).toMatchObject({ code: "disk_full", passing: true });
});

test("a failure that has nothing to do with a full disk keeps its own reason, masked", async () => {
  expect(await failed(broken, false)).toMatchObject({
    code: "workspace_broken",
    reason: expect.not.stringContaining("a-secret-of-the-server") as string,
  });
  const refused = { code: "pull_request_refused", reason: "No.", retryable: false, remedy: "Ask." } as const;
  expect(await failed(new SessionError(refused), true)).toEqual({ ...refused, passing: false });
  expect(await failed(new Error("who knows"), false)).toMatchObject({ code: "internal", retryable: true });
});

test("a full disk of the session's own is its bound, and the worker's is not blamed", async () => {
  const full = new Error("error: unable to write file one.txt: No space left on device");
  expect(await failed(full, false, true)).toMatchObject({
    code: "resources_exhausted",
    remedy: expect.stringContaining("OFFSTAGE_SANDBOX_DISK_MB") as string,
  });
  expect(await failed(full, true, true)).toMatchObject({ code: "disk_full" });
  // The worker's has room again when it is asked.
  expect(await failed(full, false)).toMatchObject({ code: "disk_full", passing: true });
});

test("a failure says whether it passes by itself: by its code, unless it says so itself", async () => {
  const of = (failure: Partial<Failure>) =>
    failed(
      new SessionError({ code: "model_error", reason: "No.", retryable: true, remedy: "Ask.", ...failure }),
      false,
    );
  expect(await of({ code: "forge_unavailable" })).toMatchObject({ passing: true });
  expect(await of({ code: "forge_unavailable", retryable: false })).toMatchObject({ passing: false });
  expect(await of({ code: "model_error" })).toMatchObject({ passing: false });
  expect(await of({ code: "model_error", passing: true })).toMatchObject({ passing: true });
  expect(await failed(new ObjectStoreError("no answer", true), false)).toMatchObject({ passing: true });
  expect(await failed(new ObjectStoreError("forbidden", false), false)).toMatchObject({ passing: false });
});
