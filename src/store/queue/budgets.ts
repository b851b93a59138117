import type { Database } from "../../database/database.ts";
import { NotFoundError } from "../../domain/errors.ts";
import { announce } from "../sessions/transition.ts";

/** US dollars that a session may still spend; null: no limit. */
export interface BudgetLeft {
  /** By its own budget. */
  readonly session: number | null;
  /** Of the organization's month. */
  readonly month: number | null;
}

export async function budgetLeft(database: Database, sessionId: string): Promise<BudgetLeft> {
  const { rows } = await database.pool.query<BudgetLeft>({
    name: "budget_left",
    text: `select session_budget_left(session)::float8 as session, month_budget_left(session)::float8 as month
           from session where id = $1`,
    values: [sessionId],
  });
  if (rows[0] === undefined) throw new NotFoundError(`session ${sessionId} was not found`);
  return rows[0];
}

/** Why a session can't go on, as a sentence; null where it can. */
export function budgetProblem({ session, month }: BudgetLeft): string | null {
  if (session !== null && session <= 0) return "the session's budget is used up: an admin can raise it";
  if (month !== null && month <= 0) return "the organization's budget for this month is used up: an admin can raise it";
  return null;
}

/** What a request of a model holds back of budgets while it is under way. */
export interface BudgetHold {
  /** Null: no budget limits it. */
  readonly id: string | null;
  /** US dollars; null: no limit. */
  readonly dollars: number | null;
}

/**
 * Holds back what a request can cost, so that no two requests spend the same money, whichever worker sends them.
 * @param needed US dollars that it can cost; `least`: with less it is not worth sending
 * @returns the hold, or what is left if that is not enough
 * @throws NotFoundError
 */
export async function holdBudget(
  database: Database,
  sessionId: string,
  { needed, least }: { readonly needed: number; readonly least: number },
): Promise<BudgetHold | { readonly left: BudgetLeft }> {
  const { rows } = await database.pool.query<{
    hold: string | null;
    held: number | null;
    session: number | null;
    month: number | null;
  }>({
    name: "hold_budget",
    text: `select held.hold, held.held::float8 as held, session_left::float8 as session, month_left::float8 as month
           from session, hold_budget(session.id, $2, $3) as held where session.id = $1`,
    // Rounded up: what is held is never less than what is asked for.
    values: [sessionId, roundedUp(needed), roundedUp(least)],
  });
  const [row] = rows;
  if (row === undefined) throw new NotFoundError(`session ${sessionId} was not found`);
  const { hold, held, session, month } = row;
  if (hold !== null || (session === null && month === null)) return { id: hold, dollars: held };
  return { left: { session, month } };
}

/**
 * Why a request is not sent, as a sentence.
 * @param needed US dollars that it can cost at least
 */
export function shortageOf({ session, month }: BudgetLeft, needed: number): string {
  const isSession = session !== null && (month === null || session <= month);
  const whose = isSession ? "the session's budget" : "the organization's budget for this month";
  const left = Math.max(0, (isSession ? session : month) ?? 0);
  return left === 0
    ? `${whose} is used up: an admin can raise it`
    : `${whose} is used up: $${left.toFixed(2)} is left, and the next request can cost $${needed.toFixed(2)}; an admin can raise it`;
}

/**
 * Counts what a request cost, whoever holds the session by now: it is spent.
 * @param hold what was held back for it, which ends
 */
export async function spend(
  database: Database,
  { sessionId, organizationId }: { readonly sessionId: string; readonly organizationId: string },
  spent: number,
  hold: string | null = null,
): Promise<void> {
  await database.pool.query({
    name: "spend",
    text: "select settle_budget($1, $2, $3, $4)",
    values: [sessionId, organizationId, hold, spent.toFixed(6)],
  });
}

function roundedUp(amount: number): string {
  return (Math.ceil(amount * 1_000_000) / 1_000_000).toFixed(6);
}

/** Sets what this session may spend in all; null gives it the organization's again. It goes on where that lets it. @throws NotFoundError */
export async function setSessionBudget(
  database: Database,
  organizationId: string,
  id: string,
  dollars: number | null,
): Promise<void> {
  const { rowCount } = await database.pool.query(
    "update session set budget_usd = $3, updated_at = now() where id = $1 and organization_id = $2",
    [id, organizationId, dollars],
  );
  if (rowCount !== 1) throw new NotFoundError(`session ${id} was not found`);
  await wakeWaiting(database, organizationId);
}

/** Lets sessions go on that waited for a budget which has something left: raised, of a new month, or freed by others. */
export async function wakeWaiting(database: Database, organizationId: string | null = null): Promise<number> {
  const { rows } = await database.pool.query<{ id: string }>(
    `update session set ready = true where status = 'waiting' and not ready and waiting ->> 'reason' = 'budget'
       and ($1::uuid is null or organization_id = $1)
       and coalesce(session_budget_left(session), 1) > 0 and coalesce(month_budget_left(session), 1) > 0
       -- What it waited for was a request that could cost so much.
       and least(session_budget_left(session)
             - coalesce((select sum(held_usd) from model_hold where session_id = session.id), 0),
           month_budget_left(session))
           >= (waiting ->> 'neededUsd')::numeric is not false
     returning id`,
    [organizationId],
  );
  for (const { id } of rows) announce(database, id, "queued");
  return rows.length;
}
