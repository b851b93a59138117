import type { Database } from "../../database/database.ts";
import type { Failure } from "../../domain/errors.ts";
import type { SessionStatus } from "../../domain/status.ts";
import { announce, moveSession } from "../sessions/transition.ts";
import { budgetProblem, type BudgetLeft } from "./budgets.ts";
import { claimLimit, endWaiting, LeaseLostError, underClaim, type Claim } from "./lease.ts";

// How a worker comes by a session, and how it lets go of it.

export interface ClaimedSession extends Claim {
  readonly title: string;
  readonly agent: string | null;
  readonly targetBranch: string | null;
  readonly branchName: string;
  readonly payload: unknown;
  /** Where the harness keeps the conversation. */
  readonly harness: { readonly provider: string; readonly sessionId: string } | null;
  /** How long it waited in the queue; null where it came from elsewhere. */
  readonly queuedSeconds?: number | null;
  /** Of what made it, where traces are on. */
  readonly traceParent: string | null;
  /** What the last finished turn ended with. */
  readonly summary: string | null;
  /** The worker whose disk has the session's folders as they were left last; null: none has. */
  readonly workspaceWorker: string | null;
  readonly requester: { readonly name: string } | null;
  /** What the organization's admins decided. */
  readonly organization: {
    readonly defaultAgent: string | null;
    readonly egress: readonly string[];
    readonly models: readonly string[] | null;
  };
  readonly repositories: readonly {
    readonly id: string;
    readonly name: string;
    readonly url: string;
    readonly branch: string | null;
    readonly directory: string;
    readonly position: number;
    readonly baseSha: string | null;
    readonly headSha: string | null;
    /** What its sandbox may reach beside what the server allows. */
    readonly egress: readonly string[];
    readonly setupScript: string | null;
    readonly variables: Readonly<Record<string, string>>;
  }[];
}

export interface ClaimOptions {
  readonly worker: string;
  readonly leaseMs: number;
  readonly maxRunningPerOrganization: number;
  /** Where a repository has none of its own; null: any number. */
  readonly maxRunningPerRepository?: number | null;
}

type Details = Omit<ClaimedSession, keyof Claim | "queuedSeconds">;

interface ClaimRow {
  readonly organizationId: string;
  /** Null where nothing of the organization can be taken after all. */
  readonly sessionId: string | null;
  readonly attempt: number;
  readonly details: Details;
  readonly queuedSeconds: number | null;
  readonly budgetLeft: BudgetLeft;
}

/**
 * Takes the queued session whose turn it is, under a new attempt number, and puts those aside that nothing is left to spend
 * for. Whose turn it is stands in migrations/0021_quick_claim.sql.
 */
export async function claimSession(database: Database, options: ClaimOptions): Promise<ClaimedSession | null> {
  const tried: string[] = [];
  for (;;) {
    const { rows } = await database.pool.query<ClaimRow>({
      name: "claim_session",
      text: `select organization as "organizationId", session_id as "sessionId", attempt, details,
               queued_seconds as "queuedSeconds", jsonb_build_object('session', session_left, 'month', month_left) as "budgetLeft"
             from claim_session($1, $2 * interval '1 millisecond', $3, $4, $5)`,
      values: [
        options.worker,
        options.leaseMs,
        options.maxRunningPerOrganization,
        options.maxRunningPerRepository ?? null,
        tried,
      ],
    });
    const [row] = rows;
    if (row === undefined) return null;
    const { organizationId, sessionId, attempt, details, queuedSeconds, budgetLeft } = row;
    if (sessionId === null) {
      tried.push(organizationId);
      continue;
    }
    const claim = { sessionId, organizationId, attempt };
    database.notify("offstage_event", sessionId);
    const problem = budgetProblem(budgetLeft);
    if (problem === null) return { ...details, ...claim, queuedSeconds };
    await parkSession(database, claim, problem);
  }
}

/**
 * Puts the session aside until its budget is raised, held by nobody: whoever held it writes nothing more.
 * @param neededUsd what has to be left so that it goes on; null: anything
 * @throws LeaseLostError
 */
export async function parkSession(
  database: Database,
  claim: Claim,
  problem: string,
  neededUsd: number | null = null,
): Promise<void> {
  const reached = await underClaim(database, claim, async (transaction, session) => {
    if (session.cancelRequested) {
      await moveSession(transaction, await endWaiting(transaction, session), "cancelled");
      return "cancelled";
    }
    await moveSession(transaction, session, "waiting", { reason: problem });
    await transaction.query(
      `update session set worker = null, lease_until = null, waiting = $2, claims_without_progress = 0,
         attempt = attempt + 1 where id = $1`,
      [session.id, JSON.stringify({ reason: "budget", text: problem, neededUsd })],
    );
    return "waiting";
  });
  announce(database, claim.sessionId, reached);
}

/** @throws LeaseLostError where the session is gone */
export async function readClaimed(database: Database, claim: Claim): Promise<ClaimedSession> {
  const { rows } = await database.pool.query<{ details: Details }>(
    "select read_claimed(session) as details from session where id = $1",
    [claim.sessionId],
  );
  const [row] = rows;
  if (row === undefined) throw new LeaseLostError(`session ${claim.sessionId} is gone`);
  return { ...row.details, ...claim };
}

/**
 * Ends the run. A message that came while it ended puts the session back in the queue instead of letting it be lost.
 * @returns the status that it reached
 * @throws LeaseLostError
 */
export async function finishSession(
  database: Database,
  claim: Claim,
  outcome: {
    readonly status: "completed" | "failed" | "cancelled";
    readonly summary: string | null;
    readonly failure: Failure | null;
  },
): Promise<SessionStatus> {
  const reached = await underClaim(database, claim, async (transaction, session) => {
    const { summary, failure } = outcome;
    // The row is locked, so that no message can come between this look and the move.
    const waiting = await transaction.query(
      "select 1 from message where session_id = $1 and status = 'pending' limit 1",
      [claim.sessionId],
    );
    const more = outcome.status === "completed" && waiting.rowCount === 1;
    const to = more ? (session.cancelRequested ? "cancelled" : "queued") : outcome.status;
    if (outcome.status === "completed") {
      await transaction.query(
        `update session set settled_messages = coalesce((
           select max(position) from message where session_id = $1 and status = 'done'), settled_messages) where id = $1`,
        [claim.sessionId],
      );
    }
    await moveSession(transaction, await endWaiting(transaction, session), to, { summary, failure });
    return to;
  });
  announce(database, claim.sessionId, reached);
  return reached;
}

/** Why a session is handed back. That its worker shuts down is no fault of the session's; the others count. */
const releaseReasons = {
  draining: "the worker is shutting down; another takes over",
  "no database": "the database could not be reached; a worker will continue",
  "no object store": "the work so far could not be fetched from the object store; a worker will continue",
};

/** Whether a claim that comes to nothing may be followed by another. */
export async function mayBeTriedAgain(database: Database, { sessionId }: Claim): Promise<boolean> {
  const { rows } = await database.pool.query<{ claims: number }>(
    "select claims_without_progress as claims from session where id = $1",
    [sessionId],
  );
  return rows[0] !== undefined && rows[0].claims < claimLimit;
}

/**
 * Hands the session back to the queue; one whose cancel was asked for is cancelled.
 * @param why what its events say
 * @throws LeaseLostError
 */
export async function releaseClaim(
  database: Database,
  claim: Claim,
  why: keyof typeof releaseReasons = "draining",
): Promise<void> {
  const reached = await underClaim(database, claim, async (transaction, session) => {
    if (why === "draining") {
      await transaction.query("update session set claims_without_progress = 0 where id = $1", [claim.sessionId]);
    }
    if (session.cancelRequested) {
      await moveSession(transaction, session, "cancelled");
      return "cancelled";
    }
    const reason = releaseReasons[why];
    await moveSession(transaction, await endWaiting(transaction, session), "queued", { reason, brokenOff: true });
    return "queued";
  });
  announce(database, claim.sessionId, reached);
}
