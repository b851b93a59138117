-- works-from: 0027
-- outside a transaction
-- When the diffs of a session that is over were removed for their age. A session that went on since has new ones.
alter table session add column if not exists diffs_removed_at timestamptz;
drop index concurrently if exists session_diffs_kept;
create index concurrently session_diffs_kept on session (finished_at)
  where status in ('completed', 'failed', 'cancelled') and (diffs_removed_at is null or diffs_removed_at < finished_at);
