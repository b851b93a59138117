import type { Database, Queryable } from "../../database/database.ts";
import type { Failure } from "../../domain/errors/errors.ts";
import { invitationIssuer } from "../../domain/people/user.ts";
import type { SessionStatus } from "../../domain/sessions/status.ts";
import { moveSession, notifyChange, forgetLostWorkers } from "../sessions/transition.ts";
import { budgetProblem, type BudgetLeft } from "./budgets.ts";
import { LeaseLostError, underClaim, type Claim } from "./lease.ts";

// How a worker claims a session, and how a claim ends.

/** A harness's own session, which has the conversation. */
export interface HarnessSession {
  readonly provider: string;
  /** The model that it was started with; null: its own choice. Absent if a version that did not keep it began the turn. */
  readonly model?: string | null;
  /** The harness's id of it. */
  readonly sessionId: string;
}

/** A session that a worker has claimed, with everything that an attempt needs. */
export interface ClaimedSession extends Claim {
  readonly title: string;
  readonly agent: string | null;
  readonly targetBranch: string | null;
  readonly branchName: string;
  /** Whether no pull request is opened until the work on all repositories is pushed. */
  readonly pullRequestsTogether: boolean;
  /** Whether it only runs the setups of its repositories; false if omitted. */
  readonly setupTrial?: boolean;
  readonly payload: unknown;
  /** The automation that started it; null: none did. */
  readonly automationId: string | null;
  /** The script that decides whether the agent begins, and what it decided: null if it has not yet. Null: there is none. */
  readonly gate: {
    readonly script: string;
    readonly outcome: "passed" | "filtered" | null;
    readonly output: string;
  } | null;
  /** Of the last turn; null: there was none. */
  readonly harness: HarnessSession | null;
  /** Seconds that it waited in the queue; null if it was not taken from the queue. */
  readonly queuedSeconds?: number | null;
  /** W3C `traceparent` of the request that created it, if tracing is on. */
  readonly traceParent: string | null;
  /** The agent's answer of the last finished turn. */
  readonly summary: string | null;
  /** The worker that has the session's latest folders on its disk; null: none has. */
  readonly workspaceWorker: string | null;
  /** Settings of the organization. */
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
    /** Index of the repository in the session. */
    readonly position: number;
    readonly baseSha: string | null;
    readonly headSha: string | null;
    /** Hosts that its sandbox may reach in addition to those that the server allows. */
    readonly egress: readonly string[];
    readonly setupScript: string | null;
    readonly variables: Readonly<Record<string, string>>;
    /** Folders that its clones have; empty: everything. */
    readonly sparse: readonly string[];
  }[];
}

/** How a worker claims sessions. */
export interface ClaimOptions {
  readonly worker: string;
  /** Milliseconds until the lease expires if it is not renewed. */
  readonly leaseMs: number;
  /** Default limit of running sessions of an organization. */
  readonly maxRunningPerOrganization: number;
  /** Default limit of a repository; null: no limit. */
  readonly maxRunningPerRepository?: number | null;
}

type Details = Omit<ClaimedSession, keyof Claim | "queuedSeconds">;

interface ClaimRow {
  readonly organizationId: string;
  /** Null if nothing of this organization can be claimed after all. */
  readonly sessionId: string | null;
  readonly attempt: number;
  readonly details: Details;
  readonly queuedSeconds: number | null;
  readonly budgetLeft: BudgetLeft;
}

/**
 * Claims the next queued session under a new attempt number; null if there is none. Sessions whose budget is used up
 * become waiting instead. The order is that of src/store/sql/queue/claim_session.sql.
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
 * Ends the claim and lets the session wait until its budget is raised. The attempt number increases, so that the
 * worker that had the claim can write nothing more.
 * @param neededUsd US dollars that must be left before the session continues; null: any amount
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
      await moveSession(transaction, session, "cancelled");
      return "cancelled";
    }
    const waiting = { reason: "budget", text: problem, neededUsd } as const;
    await moveSession(transaction, session, "waiting", { reason: problem, waiting });
    return "waiting";
  });
  notifyChange(database, claim.sessionId, reached);
}

/**
 * The person who asked for a session, if their identity provider verified their address, so that they can be named in a
 * commit.
 * @returns null if the person or their address is not known
 */
export async function requesterOf(
  database: Database,
  sessionId: string,
): Promise<{ readonly name: string; readonly email: string } | null> {
  const { rows } = await database.pool.query<{ name: string; email: string }>(
    `select user_account.name, email from session join user_account on user_account.id = session.requested_by
     where session.id = $1 and email is not null and issuer <> $2`,
    [sessionId, invitationIssuer],
  );
  return rows[0] ?? null;
}

/**
 * Reads the details of a claimed session.
 * @throws LeaseLostError if the session no longer exists
 */
export async function readClaimed(queryable: Queryable, claim: Claim): Promise<ClaimedSession> {
  const { rows } = await queryable.query<{ details: Details }>(
    "select read_claimed(session) as details from session where id = $1",
    [claim.sessionId],
  );
  const [row] = rows;
  if (row === undefined) throw new LeaseLostError(`session ${claim.sessionId} is gone`);
  return { ...row.details, ...claim };
}

/**
 * Ends the attempt. If a message arrived meanwhile, the session goes back to the queue, so that the message is not
 * lost.
 * @returns the session's new status
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
    const more = outcome.status === "completed" && (await settleMessages(transaction, claim.sessionId));
    const to = more ? (session.cancelRequested ? "cancelled" : "queued") : outcome.status;
    await moveSession(transaction, session, to, { summary, failure });
    return to;
  });
  notifyChange(database, claim.sessionId, reached);
  return reached;
}

/**
 * Records which messages of a session are settled by its deliveries. The caller has locked the session, so that no
 * message arrives before it moves.
 * @returns whether others still wait
 */
async function settleMessages(transaction: Queryable, sessionId: string): Promise<boolean> {
  const { rows } = await transaction.query<{ waits: boolean }>({
    name: "settle_messages",
    text: `update session set settled_messages = coalesce((
             select max(position) from message where session_id = $1 and status = 'done'), settled_messages) where id = $1
           returning exists (select from message where session_id = $1 and status = 'pending') as waits`,
    values: [sessionId],
  });
  return rows[0]?.waits === true;
}

/** Why a worker hands a session back to the queue. */
const releaseReasons = {
  draining: "the worker is shutting down; another takes over",
  "no database": "the database could not be reached; a worker will continue",
};

/**
 * Puts the session back into the queue, or cancels it if that was requested. It was handed back in order: no worker died.
 * @param why the reason that its events state
 * @throws LeaseLostError
 */
export async function releaseClaim(
  database: Database,
  claim: Claim,
  why: keyof typeof releaseReasons = "draining",
): Promise<void> {
  const reached = await underClaim(database, claim, async (transaction, session) => {
    await forgetLostWorkers(transaction, claim.sessionId);
    if (session.cancelRequested) {
      await moveSession(transaction, session, "cancelled");
      return "cancelled";
    }
    const reason = releaseReasons[why];
    await moveSession(transaction, session, "queued", { reason, keepsQueuePosition: true });
    return "queued";
  });
  notifyChange(database, claim.sessionId, reached);
}
