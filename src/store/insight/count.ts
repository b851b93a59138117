import type { Database, Queryable } from "../../database/database.ts";
import { bucketsOfDoubling } from "../../domain/insight/histogram.ts";

/** A day of an organization whose figures are to be counted again. */
interface MarkedDay {
  readonly organizationId: string;
  readonly day: string;
}

/** Days of one read of the marks. */
const daysAtOnce = 100;
/** Advisory lock of all who count: one at a time. */
const countingLock = 4_747_012;

/**
 * Counts the figures of days again on which something has changed (`mark_insight`), each in its own transaction. It may
 * be killed anywhere, and the next call goes on; if another process counts, it does nothing.
 * @returns how many days were counted
 */
export async function countMarkedDays(database: Database, signal: AbortSignal): Promise<number> {
  let count = 0;
  while (!signal.aborted) {
    const { rows } = await database.pool.query<MarkedDay>(
      `select distinct organization_id as "organizationId", day::text as day from insight_mark limit ${daysAtOnce}`,
    );
    for (const marked of rows) {
      if (signal.aborted) return count;
      if (!(await database.transaction((transaction) => countDay(transaction, marked)))) return count;
      count += 1;
    }
    if (rows.length < daysAtOnce) break;
  }
  return count;
}

/** @returns false if another process counts */
async function countDay(transaction: Queryable, { organizationId, day }: MarkedDay): Promise<boolean> {
  const { rows } = await transaction.query<{ taken: boolean }>("select pg_try_advisory_xact_lock($1) as taken", [
    countingLock,
  ]);
  if (rows[0]?.taken !== true) return false;
  // Changes that are committed from here on have new marks: each statement sees all whose mark it could delete.
  await transaction.query("delete from insight_mark where organization_id = $1 and day = $2", [organizationId, day]);
  const kept = await transaction.query("select from insight_kept_day where organization_id = $1 and day = $2", [
    organizationId,
    day,
  ]);
  if (kept.rowCount === 0)
    await transaction.query({ name: "count_day", text: counting, values: [organizationId, day] });
  return true;
}

/** SQL: a time is on the day. */
const onDay = (column: string): string =>
  `${column} >= $2::date::timestamp at time zone 'UTC' and ${column} < ($2::date + 1)::timestamp at time zone 'UTC'`;

/**
 * SQL of what something of a session counts as, each as (scope, dimension, key).
 * @param repositories SQL of the ids of its repositories, as texts
 * @param models SQL of its models
 */
const placesOf = (session: string, repositories: string, models: string): string => `(
    select scope, dimension, key from (
      select 'all' as dimension, '' as key
      union all select 'agent', coalesce(${session}.agent, '')
      union all select 'automation', coalesce(${session}.automation_id::text, '')
      union all select 'person', coalesce(${session}.requested_by, ${session}.created_by)::text
        where coalesce(${session}.requested_by, ${session}.created_by) is not null
      union all select 'repository', id from (${repositories}) as own (id)
      union all select 'model', model from (${models}) as used (model)) as part,
    (select '' as scope union all select id from (${repositories}) as own (id)) as scopes) as place`;

const repositoriesOf = (id: string): string =>
  `select distinct repository_id::text from session_repository where session_id = ${id}`;
const modelsOf = (id: string): string => `select distinct model from session_usage where session_id = ${id}`;

/** SQL of a time's bucket. @param ms SQL of its length */
const bucketOf = (ms: string): string =>
  `floor(ln(greatest(${ms}, 1)::float8) / ln(2::float8) * ${bucketsOfDoubling} + 1e-9)::integer`;
const msOf = (interval: string): string => `extract(epoch from ${interval}) * 1000`;

const place = "scope, dimension, key";
const sums = [
  "sessions",
  "completed",
  "failed",
  "cancelled",
  "pull_requests",
  "merged",
  "closed",
  "review_rounds",
  "input_tokens",
  "output_tokens",
  "cache_read_tokens",
  "cache_write_tokens",
  "reasoning_tokens",
  "cost_usd",
] as const;
const times = ["wait", "opening", "merging"] as const;
const histograms = times.flatMap((what) => [`${what}_buckets`, `${what}_counts`]);
const figures = [...sums, ...histograms].join(", ");

/** SQL of some of the sums, by name; the others are 0. */
const withSums = (given: Partial<Record<(typeof sums)[number], string>>): string =>
  sums.map((name) => `${given[name] ?? "0"} as ${name}`).join(", ");

/**
 * The figures of one organization ($1) and day ($2). A pull request is merged if that happened within 30 days: docs/insight.md has the
 * definitions. Rows that are what they were are not written again.
 */
const counting = `
  with begun as (
    select ${place}, status, queue_wait_ms, finished_at from session
    cross join lateral ${placesOf("session", repositoriesOf("session.id"), modelsOf("session.id"))}
    where session.organization_id = $1 and not setup_trial and ${onDay("session.created_at")}),
  opened as (
    select ${place}, state, closed_at, pull_request.created_at, pull_request.created_at - session.created_at as opened_after,
      state = 'merged' and closed_at <= pull_request.created_at + interval '30 days' as is_merged,
      (select count(*) from message where message.session_id = pull_request.session_id and position > 1 and withdrawn_at is null
         and message.created_at > pull_request.created_at
         and (closed_at is null or message.created_at <= closed_at)) as rounds
    from pull_request join session on session.id = pull_request.session_id
    cross join lateral ${placesOf("session", "select pull_request.repository_id::text", modelsOf("session.id"))}
    where pull_request.organization_id = $1 and ${onDay("pull_request.created_at")}),
  used as (
    select ${place}, session_usage.* from session_usage join session on session.id = session_id
    cross join lateral ${placesOf("session", repositoriesOf("session.id"), "select session_usage.model")}
    where session_usage.organization_id = $1 and day = $2),
  counted as (
    select ${place}, ${withSums({
      sessions: "count(*)",
      completed: "count(*) filter (where status = 'completed')",
      failed: "count(*) filter (where status = 'failed')",
      cancelled: "count(*) filter (where status = 'cancelled')",
    })} from begun group by ${place}
    union all
    select ${place}, ${withSums({
      pull_requests: "count(*)",
      merged: "count(*) filter (where is_merged)",
      closed: "count(*) filter (where state = 'closed')",
      review_rounds: "sum(rounds)",
    })} from opened group by ${place}
    union all
    select ${place}, ${withSums({
      input_tokens: "sum(input_tokens)",
      output_tokens: "sum(output_tokens)",
      cache_read_tokens: "sum(cache_read_tokens)",
      cache_write_tokens: "sum(cache_write_tokens)",
      reasoning_tokens: "sum(reasoning_tokens)",
      cost_usd: "sum(cost_usd)",
    })} from used group by ${place}),
  timed as (
    select ${place}, 'wait' as what, ${bucketOf("queue_wait_ms")} as bucket
    from begun where queue_wait_ms is not null and finished_at is not null
    union all select ${place}, 'opening', ${bucketOf(msOf("opened_after"))} from opened
    union all select ${place}, 'merging', ${bucketOf(msOf("closed_at - created_at"))} from opened where is_merged),
  histogram as (
    select ${place}, ${times
      .flatMap((what) => [
        `array_agg(bucket order by bucket) filter (where what = '${what}') as ${what}_buckets`,
        `array_agg(count order by bucket) filter (where what = '${what}') as ${what}_counts`,
      ])
      .join(", ")}
    from (select ${place}, what, bucket, count(*)::integer as count from timed group by ${place}, what, bucket) as buckets
    group by ${place}),
  total as (
    select ${place}, ${sums.map((name) => `sum(${name}) as ${name}`).join(", ")} from counted group by ${place}),
  gone as (
    delete from insight_day as known where organization_id = $1 and day = $2
      and not exists (select from total where (total.scope, total.dimension, total.key) = (known.scope, known.dimension, known.key)))
  insert into insight_day as known (organization_id, day, ${place}, ${figures})
  select $1, $2, ${place}, ${sums.join(", ")}, ${histograms.map((name) => `coalesce(${name}, '{}')`).join(", ")}
  from total left join histogram using (${place})
  on conflict (organization_id, scope, dimension, day, key) do update
  set (${figures}) = row (${[...sums, ...histograms].map((name) => `excluded.${name}`).join(", ")})
  where (${[...sums, ...histograms].map((name) => `known.${name}`).join(", ")})
    is distinct from (${[...sums, ...histograms].map((name) => `excluded.${name}`).join(", ")})`;
