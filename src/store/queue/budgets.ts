import type { Database } from "../../database/database.ts";
import { NotFoundError } from "../../domain/errors/errors.ts";
import { notifyChange } from "../sessions/transition.ts";
import { one } from "../one-row.ts";

/** US dollars that a session may still spend; null: no limit. */
export interface BudgetLeft {
  /** Left of the session's own budget. */
  readonly session: number | null;
  /** Left of the organization's budget for this month. */
  readonly month: number | null;
}

/**
 * The rest of a session's budget.
 * @throws NotFoundError
 */
export async function budgetLeft(database: Database, sessionId: string): Promise<BudgetLeft> {
  const { rows } = await database.pool.query<BudgetLeft>({
    name: "budget_left",
    text: `select session_budget_left(session)::float8 as session, month_budget_left(session)::float8 as month
           from session where id = $1`,
    values: [sessionId],
  });
  return one(rows, "session", sessionId);
}

/** The reason why a session can't continue, as a sentence; null if it can. */
export function budgetProblem({ session, month }: BudgetLeft): string | null {
  if (session !== null && session <= 0) return "the session's budget is used up: an admin can raise it";
  if (month !== null && month <= 0) return "the organization's budget for this month is used up: an admin can raise it";
  return null;
}

/** The part of the budgets that is reserved for one request to a model. */
export interface BudgetHold {
  /** Null: no budget applies, so nothing is reserved. */
  readonly id: string | null;
  /** US dollars; null: no limit. */
  readonly dollars: number | null;
}

/**
 * Reserves the cost of a request, so that no two requests spend the same money, even if two workers send them.
 * @param needed the most that the request can cost, in US dollars
 * @param least the least that it is worth sending with, in US dollars
 * @returns the reservation, or what is left if that is not enough
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
    // Rounded up, so that no less than the requested amount is reserved.
    values: [sessionId, roundedUp(needed), roundedUp(least)],
  });
  const row = one(rows, "session", sessionId);
  const { hold, held, session, month } = row;
  if (hold !== null || (session === null && month === null)) return { id: hold, dollars: held };
  return { left: { session, month } };
}

/**
 * The reason why a request is not sent, as a sentence.
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
 * Records what a request cost, even if the session's claim was lost meanwhile: the money is spent.
 * @param spent US dollars
 * @param hold the request's reservation, which ends
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

/**
 * Sets the session's budget in US dollars; null restores the organization's default. A session that waits is requeued
 * if the new budget allows it.
 * @throws NotFoundError
 */
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
  database.notify("offstage_event", id);
  await wakeWaiting(database, organizationId);
}

/**
 * Requeues sessions that wait for a budget that has money again: it was raised, a month began, or a reservation
 * ended.
 * @param organizationId null: of all organizations
 * @returns how many sessions
 */
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
  for (const { id } of rows) notifyChange(database, id, "queued");
  return rows.length;
}
