import { expect, test } from "vitest";
import { ObjectStoreError, SessionError } from "../../domain/errors/errors.ts";
import { LeaseLostError } from "../../store/queue/lease.ts";
import { endOf, isFailure } from "./end.ts";
import { BudgetUsedUp, ClaimLost, SessionCancelled, WorkerDraining } from "./stop-reasons.ts";

const failed = new SessionError({ code: "agent_crashed", reason: "It ended.", retryable: true, remedy: "Retry." });
const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED", syscall: "connect" });
const away = new ObjectStoreError("no answer", true);
const shortage = new BudgetUsedUp("the session's budget is used up", 1);
const running = new AbortController().signal;

test.each<[string, unknown, AbortSignal, string]>([
  ["a failed step", failed, running, "failed"],
  ["an unexpected error", new TypeError("x is undefined"), running, "failed"],
  ["an object store that refuses for good", new ObjectStoreError("forbidden", false), running, "failed"],
  ["an object store that does not answer", away, running, "failed"],
  ["a database that can't be reached", refused, running, "database"],
  ["a budget that is used up", shortage, running, "budget"],
  ["a write under a lost lease", new LeaseLostError("lost"), running, "lost"],
  ["a lost lease, whatever it broke", failed, AbortSignal.abort(new ClaimLost()), "lost"],
  [
    "a lost lease of a session that is to be cancelled",
    new LeaseLostError("lost"),
    AbortSignal.abort(new SessionCancelled()),
    "lost",
  ],
  ["a cancel, whatever it broke", failed, AbortSignal.abort(new SessionCancelled()), "cancelled"],
  ["a cancel while the object store is away", away, AbortSignal.abort(new SessionCancelled()), "cancelled"],
  ["a cancel that can't be recorded", refused, AbortSignal.abort(new SessionCancelled()), "database"],
  ["a worker that shuts down", failed, AbortSignal.abort(new WorkerDraining()), "draining"],
  ["a worker that shuts down while the database is away", refused, AbortSignal.abort(new WorkerDraining()), "draining"],
])("%s ends the attempt for that reason", (_, error, signal, why) => {
  expect(endOf(error, signal)).toMatchObject({ why });
});

test.each<[string, unknown, AbortSignal, boolean]>([
  ["a failed step", failed, running, true],
  ["an object store that does not answer", away, running, true],
  ["a failed step of an attempt that is being ended", failed, AbortSignal.abort(new SessionCancelled()), false],
  ["a failed step of an attempt whose signal has aborted for whatever reason", failed, AbortSignal.abort(), false],
  ["a write under a lost lease", new LeaseLostError("lost"), running, false],
  ["a database that can't be reached", refused, running, false],
  ["a budget that is used up", shortage, running, false],
])("%s is a failure only if the attempt does not end for another reason", (_, error, signal, isOne) => {
  expect(isFailure(error, signal)).toBe(isOne);
});

test("a used-up budget comes with what is missing", () => {
  expect(endOf(shortage, running)).toEqual({ why: "budget", shortage });
});
