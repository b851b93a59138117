import type { Database, Queryable } from "../../database/database.ts";
import { isUniqueViolation } from "../../database/unique-violation.ts";
import { moveConversations } from "./moved-conversations.ts";

interface KeyedRow {
  readonly id: string;
  readonly organizationId: string;
  readonly url: string;
  readonly addressKey: string;
}

const atOnce = 1_000;

/**
 * Updates the normalized address of every repository to the current rules. Rows from an older version, or from before
 * a forge was configured, have other addresses; without this a second row for the same repository could lack the
 * settings of the first. Two connected rows with the same address are merged into one. Idempotent, and safe to run on
 * several nodes at once.
 * @param keyOf normalizes a URL of an organization; null if the URL can't be parsed: its row stays as it is
 * @param only the organization whose repositories it is about; omitted: those of all
 * @returns how many rows were changed
 */
export async function settleRepositoryKeys(
  database: Database,
  keyOf: (url: string, organizationId: string) => string | null | Promise<string | null>,
  only: string | null = null,
): Promise<number> {
  let changed = 0;
  for (let after = "00000000-0000-0000-0000-000000000000"; ;) {
    const { rows } = await database.pool.query<KeyedRow>(
      `select id, organization_id as "organizationId", url, address_key as "addressKey" from repository
       where id > $1 and ($3::uuid is null or organization_id = $3) order by id limit $2`,
      [after, atOnce, only],
    );
    for (const row of rows) {
      const key = await keyOf(row.url, row.organizationId);
      if (key === null || key === row.addressKey) continue;
      await settle(database, row, key);
      changed += 1;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < atOnce) break;
    after = last.id;
  }
  if (only === null || changed > 0) await database.transaction(moveSessions);
  return changed;
}

async function settle(database: Database, row: KeyedRow, key: string): Promise<void> {
  try {
    await database.pool.query("update repository set address_key = $2 where id = $1 and address_key = $3", [
      row.id,
      key,
      row.addressKey,
    ]);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    await database.transaction((transaction) => merge(transaction, row, key));
  }
}

/** Merges two connected rows of the same repository into the one with more settings, or into the older one. */
async function merge(transaction: Queryable, { id, organizationId: organization }: KeyedRow, key: string) {
  const { rows } = await transaction.query<{ id: string }>(
    `select id from repository
     where organization_id = $1 and deleted_at is null and (id = $2 or address_key = $3)
     order by (branch is not null)::int + (max_running_sessions is not null)::int + (setup_script is not null)::int
       + (egress <> '{}')::int + (variables <> '{}')::int + (sparse <> '{}')::int desc, created_at, id
     for update`,
    [organization, id, key],
  );
  const [kept, other] = rows.map((row) => row.id);
  // Another node has merged them already.
  if (kept === undefined || other === undefined) return;
  await transaction.query(
    `update repository set deleted_at = now(), updated_at = now(), address_key = $2,
       max_running_sessions = least(max_running_sessions, (select max_running_sessions from repository where id = $3))
     where id = $1`,
    [other, key, kept],
  );
  await transaction.query(
    `update repository set address_key = $3, updated_at = now(),
       branch = coalesce(repository.branch, other.branch), setup_script = coalesce(repository.setup_script, other.setup_script),
       variables = other.variables || repository.variables,
       sparse = case when repository.sparse = '{}' then other.sparse else repository.sparse end,
       max_running_sessions = least(repository.max_running_sessions, other.max_running_sessions)
     from repository other where repository.id = $1 and other.id = $2`,
    [kept, other, key],
  );
  await transaction.query(
    `update secret set repository_id = $1 where repository_id = $2
       and not exists (select from secret same where same.repository_id = $1 and same.name = secret.name)`,
    [kept, other],
  );
  await transaction.query(
    `update automation set repository_ids = case when $1 = any(repository_ids)
       then array_remove(repository_ids, $2) else array_replace(repository_ids, $2, $1) end
     where organization_id = $3 and $2 = any(repository_ids)`,
    [kept, other, organization],
  );
}

/**
 * Moves sessions of a deleted row to the remaining one: its secrets are masked for them, and its limits apply to them.
 * A session that has both keeps both clones. A worker that has a session just then may still open a pull request for
 * the row that it knows, which the next server that starts moves too.
 */
async function moveSessions(transaction: Queryable): Promise<void> {
  const pairs = `select gone.id as gone, kept.id as kept, gone.organization_id from repository gone join repository kept
    on kept.organization_id = gone.organization_id and kept.address_key = gone.address_key and kept.deleted_at is null
    where gone.deleted_at is not null`;
  await transaction.query(
    `update session_repository part set repository_id = kept from (${pairs}) as pair where repository_id = gone
       and not exists (select from session_repository same where same.session_id = part.session_id and same.repository_id = kept)`,
  );
  await transaction.query(
    `update pull_request moved set repository_id = kept from (${pairs}) as pair where repository_id = gone
       and not exists (select from session_repository part where part.session_id = moved.session_id and part.repository_id = gone)
       and not exists (select from pull_request same
         where (same.repository_id, same.head, same.target) = (kept, moved.head, moved.target))`,
  );
  await moveConversations(transaction, pairs);
}
