import type { Database } from "../database/database.ts";
import { NotFoundError } from "../domain/errors.ts";
import { announce } from "./transition.ts";

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

/** Counts what a request cost, whoever holds the session by now: it is spent. */
export async function spend(
  database: Database,
  { sessionId, organizationId }: { readonly sessionId: string; readonly organizationId: string },
  dollars: number,
): Promise<void> {
  await database.pool.query({
    name: "spend",
    text: `with counted as (
             update session set spent_usd = spent_usd + $3, reserved_usd = greatest(0, reserved_usd - $3) where id = $1)
           insert into model_spend (organization_id, month, spent_usd) values ($2, this_month(), $3)
           on conflict (organization_id, month) do update set spent_usd = model_spend.spent_usd + excluded.spent_usd`,
    values: [sessionId, organizationId, dollars.toFixed(6)],
  });
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
     returning id`,
    [organizationId],
  );
  for (const { id } of rows) announce(database, id, "queued");
  return rows.length;
}
