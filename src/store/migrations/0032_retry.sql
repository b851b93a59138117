-- works-from: 0027
-- A session that failed for a reason that passes by itself is queued, and tried again at a time.

-- Why it will be tried again, or why its attempts failed before: the last failure's code and reason, how many attempts failed for
-- each reason, and since when. Null once a turn has ended, and after a person asked for work.
alter table session add column retry jsonb;
-- When it may be claimed again; null: at once.
alter table session add column retry_at timestamptz;
-- `retry` counts the workers that died with a session, too. Nodes of the version before read this column; nobody writes it any
-- more, and a later migration removes it.
comment on column session.claims_without_progress is 'not used since 0032_retry.sql';
