import type { Database } from "../../database/database.ts";

/** The usage of one request to a model. */
export interface UsedModel {
  readonly provider: string;
  /** A name that the server knows, so that their number is bounded. */
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
  /** US dollars; null: the model has no price. */
  readonly costUsd: number | null;
}

/** Counts what a session used of a model, today. A session that was deleted meanwhile is not counted. */
export async function countUsage(
  database: Database,
  { sessionId, organizationId }: { readonly sessionId: string; readonly organizationId: string },
  used: UsedModel,
): Promise<void> {
  await database.pool.query({
    name: "count_usage",
    text: `insert into session_usage as known (session_id, organization_id, day, provider, model, input_tokens, output_tokens,
        cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_usd)
      select id, $2, (now() at time zone 'UTC')::date, $3, $4, $5, $6, $7, $8, $9, $10 from session where id = $1 for key share
      on conflict (session_id, day, provider, model) do update set requests = known.requests + 1,
        input_tokens = known.input_tokens + excluded.input_tokens, output_tokens = known.output_tokens + excluded.output_tokens,
        cache_read_tokens = known.cache_read_tokens + excluded.cache_read_tokens,
        cache_write_tokens = known.cache_write_tokens + excluded.cache_write_tokens,
        reasoning_tokens = known.reasoning_tokens + excluded.reasoning_tokens, cost_usd = known.cost_usd + excluded.cost_usd`,
    values: [
      sessionId,
      organizationId,
      used.provider,
      used.model,
      used.inputTokens,
      used.outputTokens,
      used.cacheReadTokens,
      used.cacheWriteTokens,
      used.reasoningTokens,
      (used.costUsd ?? 0).toFixed(6),
    ],
  });
}
