-- works-from: 0027
-- outside a transaction
-- The few that the metrics count.
drop index concurrently if exists automation_paused_by_failures;
create index concurrently automation_paused_by_failures on automation (id)
  where paused and paused_reason is not null and deleted_at is null;
drop index concurrently if exists automation_silent;
create index concurrently automation_silent on automation (id) where silent_since is not null and deleted_at is null;
-- A job has one session for each part of it at most, instead of one alone. The one before goes only now, so that at each moment there is
-- one that nodes of the version before rely on; it waits for those that use the table as briefly as other migrations do.
drop index concurrently if exists session_of_job;
create unique index concurrently session_of_job on session (job_id, job_part) where job_id is not null;
do $$ begin loop begin set local lock_timeout = '2s'; alter table session drop constraint if exists session_job_id_key; exit; exception when lock_not_available then perform pg_sleep(1); end; end loop; end $$;
