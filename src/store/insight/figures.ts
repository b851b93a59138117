import type { Database } from "../../database/database.ts";
import type { DayRange } from "../../domain/insight/days.ts";
import type { FigureSums } from "../../domain/insight/figures.ts";
import type { InsightDimension } from "../../domain/insight/dimension.ts";

/** Which figures are read. */
export interface FiguresQuery extends DayRange {
  /** Only of work on this repository; null: of all. */
  readonly repositoryId: string | null;
  readonly dimension: InsightDimension | "all";
  /** Null: of all. */
  readonly keys: readonly string[] | null;
  /** The first days of the periods, ascending. One: the whole time. */
  readonly periods: readonly string[];
  /** Whether figures are given for each key. */
  readonly byKey: boolean;
}

/** The sums of one period and key. */
export interface ReadFigures {
  /** First day of the period. */
  readonly from: string;
  /** Empty if figures are not given for each key. */
  readonly key: string;
  readonly sums: FigureSums;
}

interface Row extends Omit<FigureSums, "waits" | "openings" | "mergings"> {
  readonly from: string;
  readonly key: string;
  readonly times: Readonly<
    Record<"wait" | "opening" | "merging", { buckets: number[]; counts: number[] } | undefined>
  > | null;
}

const none = { buckets: [], counts: [] };

/** Adds up an organization's figures of days. Periods and keys without any are left out. */
export async function readFigures(
  database: Database,
  organizationId: string,
  { repositoryId, dimension, from, to, keys, periods, byKey }: FiguresQuery,
): Promise<ReadFigures[]> {
  const { rows } = await database.pool.query<Row>({
    name: "insight_figures",
    text: `with chosen as materialized (
        select width_bucket(day, $6::date[]) as period, case when $7 then key else '' end as part, insight_day.* from insight_day
        where organization_id = $1 and scope = $8 and dimension = $2 and day between $3 and $4
          and ($5::text[] is null or key = any($5))),
      sums as (
        select period, part, sum(sessions)::float8 as sessions, sum(completed)::float8 as completed, sum(failed)::float8 as failed,
          sum(cancelled)::float8 as cancelled, sum(pull_requests)::float8 as "pullRequests", sum(merged)::float8 as merged,
          sum(closed)::float8 as closed, sum(review_rounds)::float8 as "roundsInAll", sum(input_tokens)::float8 as "inputTokens",
          sum(output_tokens)::float8 as "outputTokens", sum(cache_read_tokens)::float8 as "cacheReadTokens",
          sum(cache_write_tokens)::float8 as "cacheWriteTokens", sum(reasoning_tokens)::float8 as "reasoningTokens",
          sum(cost_usd)::float8 as "costUsd"
        from chosen group by period, part),
      timed as (
        select period, part, what, bucket, sum(count)::integer as count
        from chosen cross join lateral (
          select 'wait' as what, * from unnest(wait_buckets, wait_counts) as one (bucket, count)
          union all select 'opening', * from unnest(opening_buckets, opening_counts) as one (bucket, count)
          union all select 'merging', * from unnest(merging_buckets, merging_counts) as one (bucket, count)) as one
        group by period, part, what, bucket),
      histogram as (
        select period, part, jsonb_object_agg(what, jsonb_build_object('buckets', buckets, 'counts', counts)) as times
        from (select period, part, what, jsonb_agg(bucket order by bucket) as buckets, jsonb_agg(count order by bucket) as counts
          from timed group by period, part, what) as one
        group by period, part)
      select ($6::date[])[period]::text as "from", part as key, sessions, completed, failed, cancelled, "pullRequests", merged, closed,
        "roundsInAll", "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens", "costUsd", times
      from sums left join histogram using (period, part) order by period, sessions desc, part`,
    values: [organizationId, dimension, from, to, keys, periods, byKey, repositoryId ?? ""],
  });
  return rows.map(({ from: period, key, times, ...sums }) => ({
    from: period,
    key,
    sums: { ...sums, waits: times?.wait ?? none, openings: times?.opening ?? none, mergings: times?.merging ?? none },
  }));
}

/** The keys of a dimension with the most sessions in these days, then with the highest cost; and their names. */
export async function readKeys(
  database: Database,
  organizationId: string,
  {
    repositoryId,
    dimension,
    from,
    to,
  }: DayRange & Pick<FiguresQuery, "repositoryId"> & { readonly dimension: InsightDimension },
  limit: number,
): Promise<{ readonly key: string; readonly name: string | null }[]> {
  const { rows } = await database.pool.query<{ key: string; name: string | null }>({
    name: "insight_keys",
    text: `with most as (
        select key, sum(sessions) as sessions, sum(cost_usd) as cost from insight_day
        where organization_id = $1 and scope = $6 and dimension = $2 and day between $3 and $4
        group by key order by 2 desc, 3 desc, key limit $5),
      known as (select key, case when key ~ '^[0-9a-f-]{36}$' then key::uuid end as id, sessions, cost from most)
      select key, case $2
          when 'repository' then (select name from repository where repository.id = known.id)
          when 'automation' then (select name from automation where automation.id = known.id)
          when 'person' then coalesce(
            (select name from user_account where user_account.id = known.id), (select name from api_key where api_key.id = known.id))
          else nullif(key, '') end as name
      from known order by sessions desc, cost desc, key`,
    values: [organizationId, dimension, from, to, limit, repositoryId ?? ""],
  });
  return rows;
}
