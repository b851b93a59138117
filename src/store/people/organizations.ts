import type { Database } from "../../database/database.ts";
import { NotFoundError } from "../../domain/errors/errors.ts";
import { defaultOrganization, type Organization, type UpdateOrganization } from "../../domain/people/organization.ts";
import type { AllowedRepositories } from "../../domain/repositories/repository-pattern.ts";
import { wakeWaiting } from "../queue/budgets.ts";
import { insertKey, newKey } from "./keys.ts";
import { one } from "../one-row.ts";

/** Advisory lock of whoever makes an organization: of two at once, one waits. */
export const newOrganizationLock = 4_747_003;

/** The result of `bootstrap`. */
export interface Bootstrapped {
  readonly organizationId: string;
  /** True only at the first start. */
  readonly created: boolean;
  /** The generated key of a new organization; null if the operator set one, or the organization existed already. */
  readonly adminKey: string | null;
}

/**
 * Creates the organization `default` and one admin key at the first start; later finds the organization.
 * @param options.adminKey the operator's key; null: one is generated
 */
export function bootstrap(database: Database, options: { readonly adminKey: string | null }): Promise<Bootstrapped> {
  return database.transaction(async (transaction) => {
    await transaction.query("select pg_advisory_xact_lock($1)", [newOrganizationLock]);
    const found = await transaction.query<{ id: string }>("select id from organization where name = $1", [
      defaultOrganization,
    ]);
    if (found.rows[0] !== undefined) return { organizationId: found.rows[0].id, created: false, adminKey: null };
    const organizationId = crypto.randomUUID();
    await transaction.query("insert into organization (id, name) values ($1, $2)", [
      organizationId,
      defaultOrganization,
    ]);
    const key = options.adminKey ?? newKey();
    await insertKey(transaction, organizationId, { name: "first admin key", scopes: ["admin"] }, key);
    return { organizationId, created: true, adminKey: options.adminKey === null ? key : null };
  });
}

/**
 * The id of the organization `default`.
 * @throws NotFoundError before the first start
 */
export async function findDefaultOrganization(database: Database): Promise<string> {
  const { rows } = await database.pool.query<{ id: string }>("select id from organization where name = $1", [
    defaultOrganization,
  ]);
  if (rows[0] === undefined)
    throw new NotFoundError("the database is empty: start the server once with `offstage start`");
  return rows[0].id;
}

/** SQL condition: the organization is being erased. */
export const isErased = "exists (select from erasure where erasure.organization_id = organization.id)";

/** The id of the organization of this name; null if there is none, or it is being erased. */
export async function findOrganization(database: Database, name: string): Promise<string | null> {
  const { rows } = await database.pool.query<{ id: string }>(
    `select id from organization where name = $1 and not ${isErased}`,
    [name],
  );
  return rows[0]?.id ?? null;
}

const columns = `
  id, name, default_agent as "defaultAgent", max_running_sessions as "maxRunningSessions", egress, models,
  repositories, uses_server_forges as "usesServerForges",
  session_budget_usd::float8 as "sessionBudgetUsd", run_budget_usd::float8 as "runBudgetUsd",
  monthly_budget_usd::float8 as "monthlyBudgetUsd",
  coalesce((select spent_usd from model_spend where organization_id = organization.id and month = this_month()), 0)::float8
    as "spentUsd"`;

/**
 * Reads an organization's settings and what it has spent this month.
 * @throws NotFoundError
 */
export async function getOrganization(database: Database, id: string): Promise<Organization> {
  const { rows } = await database.pool.query<Organization>(`select ${columns} from organization where id = $1`, [id]);
  return one(rows, "organization", id);
}

/** Which repositories an organization's sessions may use. */
export async function allowedRepositories(database: Database, id: string): Promise<AllowedRepositories> {
  const { rows } = await database.pool.query<AllowedRepositories>({
    name: "allowed_repositories",
    text: `select repositories as patterns, uses_server_forges as "usesServerForges" from organization where id = $1`,
    values: [id],
  });
  return rows[0] ?? { patterns: [], usesServerForges: false };
}

const settingColumns: Readonly<Record<keyof UpdateOrganization, string>> = {
  defaultAgent: "default_agent",
  maxRunningSessions: "max_running_sessions",
  egress: "egress",
  models: "models",
  repositories: "repositories",
  sessionBudgetUsd: "session_budget_usd",
  runBudgetUsd: "run_budget_usd",
  monthlyBudgetUsd: "monthly_budget_usd",
};

/**
 * Changes the given settings only. Sessions that wait for a budget are requeued if there is one again.
 * @throws NotFoundError
 */
export async function updateOrganization(
  database: Database,
  id: string,
  changes: UpdateOrganization,
): Promise<Organization> {
  const given = Object.entries(settingColumns).filter(
    ([name]) => changes[name as keyof UpdateOrganization] !== undefined,
  );
  if (given.length > 0) {
    const sets = given.map(([, column], index) => `${column} = $${index + 2}`);
    await database.pool.query(`update organization set ${sets.join(", ")} where id = $1`, [
      id,
      ...given.map(([name]) => changes[name as keyof UpdateOrganization]),
    ]);
    await wakeWaiting(database, id);
    database.notify("offstage_work", "");
  }
  return getOrganization(database, id);
}
