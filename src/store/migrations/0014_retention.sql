-- Events of sessions that were over for long can be removed; the session stays, and says so.
alter table session
  -- Number of the last one that was removed: those after it are there. 0: none was.
  add column events_removed_through bigint not null default 0,
  -- When all that there were had been removed. A session that went on since has new ones.
  add column events_removed_at timestamptz;
-- Of columns that change only when a session's status does: appending an event must not touch an index.
create index session_events_kept on session (finished_at)
  where status in ('completed', 'failed', 'cancelled') and (events_removed_at is null or events_removed_at < finished_at);
create index job_over on job (updated_at) where status in ('completed', 'failed', 'cancelled');
