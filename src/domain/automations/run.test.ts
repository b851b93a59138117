import { expect, test } from "vitest";
import type { SessionStatus } from "../sessions/status.ts";
import type { JobStatus, RunStatus } from "./job.ts";
import { runStatusOf } from "./run.ts";

const table: readonly (readonly [JobStatus, readonly SessionStatus[], RunStatus])[] = [
  ["pending", [], "pending"],
  ["running", [], "running"],
  // Its worker died before it completed the job.
  ["running", ["completed"], "running"],
  ["failed", [], "failed"],
  ["cancelled", [], "cancelled"],
  // A gate filtered it.
  ["cancelled", ["completed"], "cancelled"],
  ["completed", [], "completed"],
  ["completed", ["draft"], "running"],
  ["completed", ["queued"], "running"],
  ["completed", ["running"], "running"],
  ["completed", ["waiting"], "waiting"],
  ["completed", ["completed"], "completed"],
  ["completed", ["failed"], "failed"],
  ["completed", ["cancelled"], "cancelled"],
  ["completed", ["failed", "running"], "running"],
  ["completed", ["cancelled", "queued", "completed"], "running"],
  ["completed", ["waiting", "running"], "running"],
  ["completed", ["waiting", "failed", "completed"], "waiting"],
  ["completed", ["failed", "completed"], "failed"],
  ["completed", ["cancelled", "failed"], "failed"],
  ["completed", ["cancelled", "completed"], "cancelled"],
  ["completed", ["completed", "completed"], "completed"],
];

for (const [job, sessions, expected] of table) {
  test(`a ${job} job with ${sessions.join(", ") || "no session"} is a run that is ${expected}`, () => {
    expect(runStatusOf(job, sessions)).toBe(expected);
    expect(runStatusOf(job, sessions.toReversed())).toBe(expected);
  });
}
