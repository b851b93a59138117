import type { Database, Queryable } from "../../database/database.ts";
import { storable } from "../../domain/fields/text.ts";
import { appendEvents } from "../sessions/events.ts";
import { underClaim, type Claim } from "./lease.ts";

/** A gate's decision, masked. */
export interface GateDecision {
  readonly outcome: "passed" | "filtered";
  readonly code: number;
  /** Its output for the agent. */
  readonly output: string;
  /** The end of what it printed on stderr. */
  readonly log: string;
  /** Of a run that it filtered: why, for the ledger. */
  readonly reason: string;
}

/**
 * Records what a session's gate decided, once for all. A run that it filtered has nothing more to do: its first message counts as
 * answered, and its job and ledger entry say that it was filtered, and why.
 * @throws LeaseLostError
 */
export async function recordGate(database: Database, claim: Claim, decision: GateDecision): Promise<void> {
  const { sessionId } = claim;
  const { outcome, code, output, log, reason } = decision;
  await underClaim(database, claim, async (transaction) => {
    await transaction.query(
      "update session_gate set outcome = $2, code = $3, output = $4, decided_at = clock_timestamp() where session_id = $1",
      [sessionId, outcome, code, storable(output)],
    );
    await appendEvents(transaction, sessionId, [{ type: "gate.decided", data: { outcome, code, output, log } }]);
    if (outcome === "passed") return;
    await filterRun(transaction, sessionId, storable(reason));
    const text = `The automation's gate ended with ${code}: the run is filtered, and no agent begins.`;
    await appendEvents(transaction, sessionId, [{ type: "notice", data: { level: "info", text } }]);
  });
  database.notify("offstage_event", sessionId);
}

async function filterRun(transaction: Queryable, sessionId: string, reason: string): Promise<void> {
  await transaction.query("update message set status = 'done' where session_id = $1 and position = 1", [sessionId]);
  // Settled: no later attempt asks it again, whatever became of the folders.
  await transaction.query("update session set settled_messages = greatest(settled_messages, 1) where id = $1", [
    sessionId,
  ]);
  // Sessions of one run are looked at one after the other: a run with several is filtered if each of them is.
  await transaction.query(
    "select from job where id = (select job_id from session where session.id = $1) for no key update",
    [sessionId],
  );
  // Also before the job's own worker has recorded that it made the session: that changes nothing then.
  await transaction.query(
    `select move_job(job.id, job.status, 'cancelled', why => $2, of_session => session.id)
     from session join job on job.id = session.job_id
     where session.id = $1 and job.status in ('pending', 'running', 'completed') and not exists (
       select from session other left join session_gate on session_gate.session_id = other.id
       where other.job_id = job.id and session_gate.outcome is distinct from 'filtered')`,
    [sessionId, reason],
  );
}
