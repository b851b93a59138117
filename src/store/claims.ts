import type { Database, Queryable } from "../database/database.ts";
import { ConflictError, type Failure } from "../domain/errors.ts";
import type { NewEvent } from "../domain/event.ts";
import type { SessionStatus } from "../domain/status.ts";
import { budgetProblem, type BudgetLeft } from "./budgets.ts";
import { appendEvents } from "./events.ts";
import { announce, lockSession, moveSession, type Locked } from "./transition.ts";

/** A worker's hold on a session: `attempt` is the fence, a write under an older one changes nothing. */
export interface Claim {
  readonly sessionId: string;
  readonly organizationId: string;
  readonly attempt: number;
}

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

/** Another worker holds the session, or it is over: nothing was written. */
export class LeaseLostError extends ConflictError {}

/** After so many claims in a row without a finished turn a session is given up. */
const claimLimit = 5;
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
 * @throws LeaseLostError
 */
export async function parkSession(database: Database, claim: Claim, problem: string): Promise<void> {
  const reached = await underClaim(database, claim, async (transaction, session) => {
    if (session.cancelRequested) {
      await moveSession(transaction, await endWaiting(transaction, session), "cancelled");
      return "cancelled";
    }
    await moveSession(transaction, session, "waiting", { reason: problem });
    await transaction.query(
      `update session set worker = null, lease_until = null, waiting = $2, claims_without_progress = 0,
         attempt = attempt + 1 where id = $1`,
      [session.id, JSON.stringify({ reason: "budget", text: problem })],
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

/** Keeps the session for `leaseMs` more; null where it was lost. */
export async function renewClaim(
  database: Database,
  claim: Claim,
  leaseMs: number,
): Promise<{ cancelRequested: boolean } | null> {
  const { rows } = await database.pool.query<{ cancelRequested: boolean }>({
    name: "renew_claim",
    text: `update session set lease_until = now() + $3 * interval '1 millisecond'
           where id = $1 and attempt = $2 and status in ('running', 'waiting')
           returning cancel_requested as "cancelRequested"`,
    values: [claim.sessionId, claim.attempt, leaseMs],
  });
  return rows[0] ?? null;
}

/**
 * Puts sessions back in the queue whose lease ran out, or all of `worker`, which calls it when it starts again.
 * @returns how many there were
 */
export async function recoverSessions(database: Database, options: { readonly worker?: string }): Promise<number> {
  const { rows } = await database.pool.query<{ id: string; organization_id: string }>(
    `select id, organization_id from session where status in ('running', 'waiting')
       and (lease_until < now() or worker = $1)`,
    [options.worker ?? null],
  );
  let recovered = 0;
  for (const { id, organization_id } of rows) {
    const reached = await database.transaction(async (transaction) => {
      const session = await lockSession(transaction, organization_id, id);
      const { rows: fresh } = await transaction.query<{ lost: boolean; claims: number }>(
        `select status in ('running', 'waiting') and (lease_until < now() or worker = $2) as lost,
           claims_without_progress as claims from session where id = $1`,
        [id, options.worker ?? null],
      );
      return fresh[0]?.lost === true ? recover(transaction, session, fresh[0].claims) : null;
    });
    if (reached === null) continue;
    recovered += 1;
    announce(database, id, reached);
  }
  return recovered;
}

async function recover(transaction: Queryable, lost: Locked, claims: number): Promise<SessionStatus> {
  if (lost.cancelRequested) {
    await moveSession(transaction, lost, "cancelled");
    return "cancelled";
  }
  const session = await endWaiting(transaction, lost);
  if (claims >= claimLimit) {
    const failure: Failure = {
      code: "too_many_attempts",
      reason: `The worker died ${claims} times while it worked on this session.`,
      retryable: true,
      mend: "Look for the reason in the worker's log (memory is the usual one), then retry.",
    };
    await moveSession(transaction, session, "failed", { failure });
    return "failed";
  }
  const reason = "the worker that had it died; another takes it up";
  await moveSession(transaction, session, "queued", { reason, brokenOff: true });
  return "queued";
}

/** A session that waits for a person can only run on or be cancelled: other ends come after it runs again. */
async function endWaiting(transaction: Queryable, session: Locked): Promise<Locked> {
  if (session.status !== "waiting") return session;
  await moveSession(transaction, session, "running");
  return { ...session, status: "running" };
}

/** Locks the session's row for a write of a claim. @throws LeaseLostError where the fence is stale */
export async function holdClaim(transaction: Queryable, claim: Claim): Promise<Locked> {
  const session = await lockSession(transaction, claim.organizationId, claim.sessionId);
  const holds = session.attempt === claim.attempt && (session.status === "running" || session.status === "waiting");
  if (!holds) throw new LeaseLostError(`the claim on session ${claim.sessionId} was lost`);
  return session;
}

/** Runs a write of a claim with the session's row locked. @throws LeaseLostError */
async function underClaim<T>(
  database: Database,
  claim: Claim,
  work: (transaction: Queryable, session: Locked) => Promise<T>,
): Promise<T> {
  return database.transaction(async (transaction) => work(transaction, await holdClaim(transaction, claim)));
}

/** @throws LeaseLostError */
export async function appendClaimEvents(database: Database, claim: Claim, events: readonly NewEvent[]): Promise<void> {
  await underClaim(database, claim, (transaction) => appendEvents(transaction, claim.sessionId, events));
  database.notify("offstage_event", claim.sessionId);
}

export interface ClaimedMessage {
  readonly id: string;
  readonly position: number;
  readonly text: string;
  /** It was given to the agent before, by a worker that did not come to its end. */
  readonly interrupted: boolean;
}

/** The first message that is not done, marked as running; null where all are done. @throws LeaseLostError */
export function nextMessage(database: Database, claim: Claim): Promise<ClaimedMessage | null> {
  return underClaim(database, claim, async (transaction) => {
    const { rows } = await transaction.query<ClaimedMessage>(
      `select id, position, text, status = 'running' as interrupted from message
       where session_id = $1 and status <> 'done' order by position limit 1`,
      [claim.sessionId],
    );
    const [message] = rows;
    if (message === undefined) return null;
    await transaction.query("update message set status = 'running' where id = $1", [message.id]);
    return message;
  });
}

/**
 * The turn is done: `answer`, the agent's last words, become the session's summary.
 * @param isKept whether a checkpoint has all that it did
 * @throws LeaseLostError
 */
export function completeMessage(
  database: Database,
  claim: Claim,
  messageId: string,
  { answer, isKept }: { readonly answer: string; readonly isKept: boolean },
): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update message set status = 'done', kept = $2 where id = $1", [messageId, isKept]);
    await transaction.query("update session set claims_without_progress = 0, summary = $2 where id = $1", [
      claim.sessionId,
      answer,
    ]);
  });
}

/**
 * Has messages answered again whose work is nowhere: their worker died before it left it.
 * @param lost only what no checkpoint has, or all that was not settled, where there is no checkpoint either
 * @returns how many
 * @throws LeaseLostError
 */
export function reopenMessages(database: Database, claim: Claim, lost: "not kept" | "all"): Promise<number> {
  return underClaim(database, claim, async (transaction) => {
    const { rowCount } = await transaction.query(
      `update message set status = 'running' from session
       where session.id = message.session_id and session_id = $1 and message.status = 'done'
         and position > settled_messages and (not kept or $2)`,
      [claim.sessionId, lost === "all"],
    );
    return rowCount ?? 0;
  });
}

/** @throws LeaseLostError */
export function saveHarness(
  database: Database,
  claim: Claim,
  harness: { readonly provider: string; readonly sessionId: string },
): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update session set harness = $2 where id = $1", [
      claim.sessionId,
      JSON.stringify(harness),
    ]);
  });
}

/** From here on the session's folders are on this worker's disk, and what others have of them is old. @throws LeaseLostError */
export function saveWorkspaceWorker(database: Database, claim: Claim, worker: string): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query("update session set workspace_worker = $2 where id = $1", [claim.sessionId, worker]);
  });
}

export interface RepositoryProgress {
  readonly baseSha?: string;
  readonly headSha?: string;
  readonly pushedSha?: string;
  readonly patch?: string;
  readonly patchTruncated?: boolean;
}

/** Keeps what is known of one repository of the session; what is not given stays. @throws LeaseLostError */
export function saveRepository(
  database: Database,
  claim: Claim,
  position: number,
  { baseSha, headSha, pushedSha, patch, patchTruncated }: RepositoryProgress,
): Promise<void> {
  return underClaim(database, claim, async (transaction) => {
    await transaction.query(
      `update session_repository set base_sha = coalesce($3, base_sha), head_sha = coalesce($4, head_sha),
         pushed_sha = coalesce($5, pushed_sha), patch = coalesce($6, patch),
         patch_truncated = coalesce($7, patch_truncated)
       where session_id = $1 and position = $2`,
      // PostgreSQL's text holds no NUL; a diff that shows one is of a file that is not text.
      [claim.sessionId, position, baseSha, headSha, pushedSha, patch?.replaceAll("\0", "\u2400"), patchTruncated],
    );
  });
}

export interface OpenedPullRequest {
  readonly repositoryId: string;
  readonly head: string;
  readonly target: string;
  readonly number: number;
  readonly url: string;
  readonly state: "open" | "merged" | "closed";
}

/** Once for each (repository, head, target). @returns whether it was not known before @throws LeaseLostError */
export function savePullRequest(database: Database, claim: Claim, opened: OpenedPullRequest): Promise<boolean> {
  return underClaim(database, claim, async (transaction) => {
    const { rows } = await transaction.query<{ inserted: boolean }>(
      `with saved as (
         insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url, state)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (repository_id, head, target) do update
           set number = excluded.number, url = excluded.url, state = excluded.state
         returning xmax = 0 as inserted, pull_request as changed)
       select inserted, case when inserted then announce_pull_request(changed, 'opened') end from saved`,
      [
        crypto.randomUUID(),
        claim.organizationId,
        claim.sessionId,
        opened.repositoryId,
        opened.head,
        opened.target,
        opened.number,
        opened.url,
        opened.state,
      ],
    );
    return rows[0]?.inserted === true;
  });
}

/** Commits that the session's events tell of already. */
export async function toldCommits(database: Database, { sessionId }: Claim): Promise<ReadonlySet<string>> {
  const { rows } = await database.pool.query<{ sha: string }>(
    "select data ->> 'sha' as sha from event where session_id = $1 and type = 'workspace.commit'",
    [sessionId],
  );
  return new Set(rows.map(({ sha }) => sha));
}

/** What was said in the turns before, for a harness that can't resume. */
export async function transcript(
  database: Database,
  claim: Claim,
): Promise<{ from: "user" | "agent"; text: string }[]> {
  const { rows } = await database.pool.query<{ type: string; text: string; part: string | null }>(
    `select type, data ->> 'text' as text, data ->> 'part' as part from event
     where session_id = $1 and type in ('message.user', 'agent.message')
       and (type <> 'message.user' or coalesce((select status from message
         where message.id = (event.data ->> 'messageId')::uuid), 'done') = 'done')
     order by seq`,
    [claim.sessionId],
  );
  const turns: { from: "user" | "agent"; text: string; part: string | null }[] = [];
  for (const { type, text, part } of rows) {
    const from = type === "message.user" ? "user" : "agent";
    const last = turns.at(-1);
    if (last !== undefined && from === "agent" && last.from === "agent") {
      last.text += last.part === part ? text : `\n\n${text}`;
      last.part = part;
    } else turns.push({ from, text, part });
  }
  return turns.some((turn) => turn.from === "agent") ? turns.map(({ from, text }) => ({ from, text })) : [];
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
  draining: "the worker is shutting down; another takes it up",
  "no database": "the database could not be reached; a worker takes it up again",
  "no object store": "the work so far could not be fetched from the object store; a worker takes it up again",
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
